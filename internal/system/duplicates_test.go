package system

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDuplicates sends one intent a hundred times at once to the real binary. There must be one
// decision and one history row, and the meter must count one. All answers have the same bytes, and
// 99 answers are marked as replays.
func TestDuplicates(t *testing.T) {
	const copies, rounds = 100, 5
	p, data, token := deployed(t)
	s := newSender(t, token, copies)
	answers := make(map[string]string)
	for range rounds {
		in := newIntent("bot", "deploy", "k8s/staging/web")
		got := s.atOnce(t, p.url, slices.Repeat([]intent{in}, copies))
		replayed := 0
		for _, a := range got {
			if a.status != http.StatusOK || a.body != got[0].body {
				t.Errorf("evaluate %s = %d %s, another time %d %s", in.id, a.status, a.body, got[0].status, got[0].body)
			}
			if a.replayed == "true" {
				replayed++
			}
		}
		if replayed != copies-1 {
			t.Errorf("%d of %d answers carry Idempotent-Replayed: true, want %d", replayed, copies, copies-1)
		}
		answers[in.id] = got[0].body
	}
	rows := history(t, p.url, token)
	if len(rows) != rounds {
		t.Errorf("history has %d rows, want %d", len(rows), rounds)
	}
	p.stop(t)
	auditAnswers(t, data, answers, rows)
	auditStore(t, data, rows) // the meter equals the number of rows
}

// TestDuplicates_Conflict sends two different bodies with one intent id at the same time. One body
// is decided. The other body is refused, and the refusals reveal nothing.
func TestDuplicates_Conflict(t *testing.T) {
	const copies = 100
	p, data, token := deployed(t)
	a := newIntent("bot", "deploy", "k8s/staging/first-body")
	b := intent{a.id, []byte(strings.Replace(string(a.body), "first-body", "other-body", 1))}
	got := newSender(t, token, copies).atOnce(t, p.url, slices.Repeat([]intent{a, b}, copies/2))
	decided := make(map[string]int)
	for i, x := range got {
		if x.status == http.StatusOK {
			decided[x.body]++
			if x.body == "" || got[i%2].status != http.StatusOK {
				t.Errorf("answer %d = 200 %s, while the same body was refused before", i, x.body)
			}
			continue
		}
		if x.status != http.StatusConflict || !strings.Contains(x.body, `"code":"intent_conflict"`) {
			t.Errorf("answer %d = %d %s, want 409 intent_conflict", i, x.status, x.body)
		}
		if strings.Contains(x.body, "-body") {
			t.Errorf("refusal %s tells of a body", x.body)
		}
	}
	if len(decided) != 1 || slices.Collect(maps.Values(decided))[0] != copies/2 {
		t.Errorf("answers with a decision, by body = %v, want one, %d times", decided, copies/2)
	}
	rows := history(t, p.url, token)
	p.stop(t)
	auditStore(t, data, rows)
	if len(rows) != 1 {
		t.Errorf("history has %d rows, want 1", len(rows))
	}
}

// atOnce sends all intents at the same time, each over its own connection. If a busy machine
// refuses an intent because of overload, atOnce sends the intent again.
func (s sender) atOnce(t *testing.T, url string, intents []intent) []answer {
	t.Helper()
	answers := make([]answer, len(intents))
	together(len(intents), func(i int) {
		var err error
		for range 10 {
			if answers[i], err = s.evaluate(url, intents[i]); err != nil || answers[i].status != http.StatusServiceUnavailable {
				break
			}
			time.Sleep(time.Second) // the refusal's Retry-After
		}
		if err != nil {
			t.Errorf("evaluate %s: %v", intents[i].id, err)
		}
	})
	return answers
}
