package api

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"
)

// countsAnswer is a countsBody as a client reads it.
type countsAnswer struct {
	Data []countsAt `json:"data"`
}

type countsAt struct {
	At     time.Time        `json:"at"`
	Counts map[string]int64 `json:"counts"`
	Other  int64            `json:"other"`
}

func (h *harness) counts(token, query string) []countsAt {
	h.t.Helper()
	return read[countsAnswer](h.do("GET", "/v1/authorizations/counts"+query, token, nil).wantStatus(http.StatusOK)).Data
}

// wantCounts checks the counts of one hour.
func (h *harness) wantCounts(token, query string, want map[string]int64, other int64) {
	h.t.Helper()
	from := h.clock.Now().UTC().Truncate(time.Hour)
	got := h.counts(token, query+"&from="+from.Format(time.RFC3339)+"&to="+from.Add(time.Hour).Format(time.RFC3339))
	if len(got) != 1 || !got[0].At.Equal(from) || !maps.Equal(got[0].Counts, want) || got[0].Other != other {
		h.t.Errorf("%s = %+v, want %v and %d others at %v", query, got, want, other, from)
	}
}

func TestCounts_AreOfTheHistory(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	h.decisionOf(rival)
	rule := h.rule(acme, `{"agent_id":"agent-2"}`, `{"decision":"deny"}`)
	for i := range 3 {
		h.decision(h.operator(acme), obj{"agent_id": fmt.Sprint("agent-", i%2)})
	}
	h.decision(h.operator(acme), obj{"agent_id": "agent-2"})
	rows := read[page[map[string]any]](h.do("GET", "/v1/authorizations", h.operator(acme), nil).wantStatus(http.StatusOK)).Data
	codes := make(map[string]int64)
	for _, row := range rows {
		code := "policy.allowed"
		for _, f := range asList(row["findings"]) {
			if f := f.(map[string]any); f["decides"] == true {
				code = f["code"].(string)
				break
			}
		}
		codes[code]++
	}
	h.wantCounts(h.operator(acme), "?by=decision", map[string]int64{"allow": 3, "deny": 1}, 0)
	h.wantCounts(h.operator(acme), "?by=rule_id", map[string]int64{rule: 1}, 0)
	h.wantCounts(h.operator(acme), "?by=code", codes, 0)
	h.wantCounts(h.operator(acme), "?by=agent_id", map[string]int64{"agent-0": 2, "agent-1": 1, "agent-2": 1}, 0)
	h.wantCounts(h.operator(rival), "?by=decision", map[string]int64{"allow": 1}, 0)
	if days := h.counts(h.operator(acme), "?by=decision&step=1d"); len(days) != 30 || days[29].Counts["allow"] != 3 {
		t.Errorf("by day = %+v, want 30 days with 3 allows on the last", days)
	}
	if hours := h.counts(h.operator(acme), "?by=decision"); len(hours) != 24 || hours[23].Counts["deny"] != 1 {
		t.Errorf("by hour = %+v, want 24 hours with a deny in the last", hours)
	}
	key, _ := h.bound("agent-2", "history:read")
	h.wantCounts(key, "?by=decision", map[string]int64{"deny": 1}, 0)
	h.wantCounts(key, "?by=agent_id", map[string]int64{"agent-2": 1}, 0)
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func TestCounts_NameTheMostFrequentValues(t *testing.T) {
	h := start(t)
	h.register(acme)
	want := make(map[string]int64)
	for i := range maxCounted + 2 {
		agent := fmt.Sprintf("agent-%03d", i)
		h.decision(h.operator(acme), obj{"agent_id": agent})
		if i < maxCounted {
			h.decision(h.operator(acme), obj{"agent_id": agent})
			want[agent] = 2
		}
	}
	h.wantCounts(h.operator(acme), "?by=agent_id", want, 2)
}

func TestCounts_RefuseAWrongQuery(t *testing.T) {
	h := start(t)
	for query, field := range map[string]string{
		"": "by", "?by=resource": "by", "?by=decision&step=1m": "step", "?by=decision&from=yesterday": "from",
		"?by=decision&from=2026-11-21T10:00:00Z&to=2026-11-21T10:00:00Z": "to",
		"?by=decision&from=2026-10-01T00:00:00Z&to=2026-11-21T00:00:00Z": "from",
		"?by=decision&from=0001-01-02T00:00:00Z&to=0001-01-03T00:00:00Z": "from",
		"?by=decision&agent_id=a": "agent_id",
	} {
		h.do("GET", "/v1/authorizations/counts"+query, h.operator(acme), nil).wantField(field)
	}
}
