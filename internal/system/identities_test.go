package system

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/internal/scrub/scrubtest"
	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
)

// identities is a server and its rows. The test checks how the history distinguishes agents.
type identities struct {
	t    *testing.T
	data datadir.Dir
	p    *process
	api  client
	mode string
	want map[string][]string // intents by folded agent id, newest first
}

// TestIdentities_AFilterFindsItsRowsAndNoOthers checks "Equal values stay equal, different ones
// stay different, and a filter for the value finds its rows". It checks the list and the CSV of the
// real server, in both audit modes, before and after a rotation of the scrub key.
func TestIdentities_AFilterFindsItsRowsAndNoOthers(t *testing.T) {
	for _, mode := range []string{"minimal", "full"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			data, operator := newData(t)
			w := &identities{t: t, data: data, mode: mode, want: make(map[string][]string)}
			w.start(operator)
			register(t, w.p.url, operator)
			w.evaluate()
			w.check()
			before := w.shown("bob@acme.example")
			w.p.stop(t)

			w.rotate()
			w.start(operator)
			w.check()
			w.evaluate()
			w.check()
			after := w.shown("bob@acme.example")
			if len(before) != 1 || len(after) != 2 || !slices.Contains(after, before[0]) {
				t.Fatalf("the tags of one agent = %q before, %q after the rotation, want a second one", before, after)
			}
			for _, tag := range after { // the shown id is a filter for the rows that show it
				if got := w.shown(tag); !slices.Equal(got, []string{tag}) {
					t.Errorf("the rows of %s show %q", tag, got)
				}
			}
			w.p.stop(t)
		})
	}
}

// identifiedAgents returns agent ids. Two of the ids differ only in case, so they belong to one
// agent.
func identifiedAgents() []string {
	return append([]string{"bot", "alice@acme.example", "bob@acme.example", "Bob@acme.example", "x/bob@acme.example",
		"bob%40acme.example", "4111111111111111", "4111 1111 1111 1111", "[redacted:email-address]"}, someCanaries()...)
}

// someCanaries returns secrets that are valid agent ids.
func someCanaries() (ids []string) {
	for i, c := range scrubtest.Canaries(7) {
		if i%3 == 0 && !c.Lines && len(c.Value) < 100 {
			ids = append(ids, c.Value, "bot-"+c.Value)
		}
	}
	return ids
}

func (w *identities) start(operator string) {
	w.p = start(w.t, w.data, "--audit="+w.mode, exportingPlan(w.t))
	w.api = newClient(w.t, w.p.url, operator)
}

// evaluate decides one intent for each agent id.
func (w *identities) evaluate() {
	w.t.Helper()
	s := newSender(w.t, w.api.token, 1)
	for _, agent := range identifiedAgents() {
		resource := "prod/web"
		if strings.Contains(agent, "@acme") {
			resource = "https://crm.example/users/" + agent + "/mail"
		}
		in := newIntent(agent, "deploy", resource)
		s.decide(w.t, w.p.url, in)
		key := engine.FoldID(agent)
		w.want[key] = append([]string{in.id}, w.want[key]...)
	}
}

// rotate puts a new scrub key before the existing keys, as the documentation says.
func (w *identities) rotate() {
	w.t.Helper()
	old, err := os.ReadFile(w.data.ScrubKey())
	must(w.t, err)
	key := make([]byte, 32)
	rand.Read(key)
	fresh := base64.StdEncoding.AppendEncode(nil, key)
	must(w.t, os.WriteFile(w.data.ScrubKey(), slices.Concat(fresh, []byte("\n"), old), 0o600))
}

// check checks the filter for each agent.
func (w *identities) check() {
	w.t.Helper()
	for _, agent := range identifiedAgents() {
		want := w.want[engine.FoldID(agent)]
		var got []string
		for _, r := range w.list(agent) {
			got = append(got, r.IntentID)
			if strings.Contains(agent, "@acme") && strings.Contains(fmt.Sprint(r), "acme") {
				w.t.Errorf("the row of %q = %v, want no address", agent, r)
			}
		}
		if !slices.Equal(got, want) {
			w.t.Errorf("the rows of %q are of the intents %q, want %q", agent, got, want)
		}
		if exported := w.export(agent); !slices.Equal(exported, want) {
			w.t.Errorf("the CSV of %q has the intents %q, want %q", agent, exported, want)
		}
	}
}

// list returns the rows of an agent.
func (w *identities) list(agent string) []*storage.Record {
	w.t.Helper()
	var page struct {
		Data []*storage.Record `json:"data"`
	}
	w.api.do(w.t, http.MethodGet, "/v1/authorizations?limit=500&agent_id="+url.QueryEscape(agent), nil, http.StatusOK, &page)
	return page.Data
}

// shown returns the distinct agent ids that an agent's rows show.
func (w *identities) shown(agent string) (ids []string) {
	for _, r := range w.list(agent) {
		ids = append(ids, r.AgentID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// export returns the intents in the CSV that is filtered for an agent.
func (w *identities) export(agent string) (intents []string) {
	w.t.Helper()
	got, err := w.api.send(http.MethodGet, w.p.url+"/v1/authorizations/export?agent_id="+url.QueryEscape(agent), nil)
	must(w.t, err)
	rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	if err != nil || got.status != http.StatusOK || len(rows) == 0 {
		w.t.Fatalf("the CSV of %q = %d %q, %v", agent, got.status, got.body, err)
	}
	column := slices.Index(rows[0], "intent_id")
	for _, row := range rows[1:] {
		intents = append(intents, row[column])
	}
	return intents
}
