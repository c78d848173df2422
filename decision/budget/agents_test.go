package budget

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// taggerOf returns a scrubber with these keys, the newest first.
func taggerOf(t testing.TB, keys ...string) *scrub.Tagger {
	t.Helper()
	var all [][]byte
	for _, key := range keys {
		all = append(all, []byte(strings.Repeat(key, 32)))
	}
	return must.Get(must.Get(scrub.New())(t).Tagger(all...))(t)
}

const (
	agentID = "0193f4a0-0000-7000-8000-00000000000a"
	mail    = "bot@corp.example"
)

// TestDecision_Agents_AreCountedAsOne checks "An agent is one" of decisions.md: all names of an agent
// share its windows, also across its registration and restarts.
func TestDecision_Agents_AreCountedAsOne(t *testing.T) {
	for _, name := range []string{"e1", mail} {
		upper := strings.ToUpper(name)
		wide := strings.Map(func(r rune) rune {
			if r == 'e' || r == 'b' {
				return r + 0xfee0
			}
			return r
		}, name)
		all := []engine.AgentNames{
			{Sent: name}, {Sent: upper}, {Sent: wide}, // then it registers
			{Sent: upper, ID: agentID, ExternalID: upper}, {Sent: agentID, ID: agentID, ExternalID: upper},
			{Sent: strings.ToUpper(agentID), ID: agentID, ExternalID: upper}, {Sent: wide, ID: agentID, ExternalID: upper},
		}
		for what, windows := range map[string]storage.Windows{"alone": nil, "shared": storagetest.NewMemory().Open().Windows()} {
			t.Run(what+" "+name, func(t *testing.T) {
				h, scrubber, c := &history{}, taggerOf(t, "n", "o"), counter(t, byAgent)
				c.Revision = 7
				k := New(Config{History: h, Windows: windows, Scrub: scrubber})
				for i, names := range all {
					at := noon
					r := must.Get(k.Read(t.Context(), "acme", []*condition.Counter{c}, &engine.Input{Intent: email(names.Sent), Names: names}, at))(t)
					if got := r.Counts()[0].N; got != int64(i+1) {
						t.Fatalf("%+v: %d with this one, want %d", names, got, i+1)
					}
					if !reserve(t, r) {
						t.Fatal("another has changed the counter")
					}
					r.Commit()
					h.rows = append(h.rows, row(scrubber.Name(names.Keyed(), names.Key()), at, nil))
					if i%2 == 1 { // restart
						k = New(Config{History: h, Windows: windows, Scrub: scrubber})
					}
				}
			})
		}
	}
}

// TestDecision_Agents_SettlementsFindTheWindow checks that a settlement, which knows only the name in
// the history, changes the window of the agent under every key of the scrubber that was not removed.
func TestDecision_Agents_SettlementsFindTheWindow(t *testing.T) {
	less, more := int64(400), int64(2500)
	perAgent := `{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["agent_id"],"window":"24h"},"gt":20000}`
	for name, tt := range map[string]struct {
		s    storage.Settlement
		want int64
	}{
		"failed":            {storage.Settlement{Outcome: "failed", Releases: true}, 1000},
		"executed for less": {storage.Settlement{Outcome: storage.Executed, AmountMinor: &less, Currency: "EUR", Releases: true}, 1400},
		"executed for more": {storage.Settlement{Outcome: storage.Executed, AmountMinor: &more, Currency: "EUR"}, 3500},
	} {
		for _, sent := range []string{mail, "Bot@CORP.example", "ｂot@corp.example", "AKIA" + "QWERTYUIOP234567"} {
			for _, wrote := range []string{"n", "o"} {
				for _, shared := range []bool{false, true} {
					t.Run(fmt.Sprint(name, " ", sent, " by ", wrote, ", shared ", shared), func(t *testing.T) {
						h, store, c := &history{}, storagetest.NewMemory(), counter(t, perAgent)
						c.Revision = 7
						store.SetClock(func() time.Time { return noon })
						counters := []*condition.Counter{c}
						open := func(keys ...string) *Counters {
							cfg := Config{History: h, Scrub: taggerOf(t, keys...)}
							if shared {
								cfg.Windows = store.Open().Windows()
							}
							return New(cfg)
						}
						k := open("n", "o")
						settler := k
						if shared { // it has not read the window, and still writes under the old key
							settler = open("o", "n")
						}
						in := &engine.Input{Intent: email(sent)}
						in.Intent.Cost = &engine.Cost{AmountMinor: 1000, Currency: "EUR"}
						r := must.Get(k.Read(t.Context(), "acme", counters, in, noon))(t)
						if !reserve(t, r) {
							t.Fatal("another has changed the counter")
						}
						r.Commit()
						key := in.AgentNames().Key()
						decided := row(taggerOf(t, wrote).Name(sent, key), noon, nil)
						if strings.Contains(decided.AgentID, key) {
							t.Fatalf("the row shows %q", decided.AgentID)
						}
						h.rows = []*storage.Record{decided}
						must.Get(settler.Settling(t.Context(), counters, "acme", decided.DecisionID, tt.s, noon))(t).End(t.Context(), true)
						if shared {
							k.leases.Return(t.Context(), true)
						}
						got := must.Get(k.Simulate(t.Context(), "acme", counters, in, noon))(t)[0].N
						if got != tt.want {
							t.Errorf("the live counter has %d with the next, want %d", got, tt.want)
						}
					})
				}
			}
		}
	}
}

// TestDecision_Counters_FoldActionTypes checks that a counter counts action types as a denied type
// denies them.
func TestDecision_Counters_FoldActionTypes(t *testing.T) {
	k, c := New(Config{History: &history{}}), counter(t, byAgent)
	for i, action := range []string{"email.send", "Email.Send", "EMAIL..send", "email_send", "e-mail.send"} {
		in := email("a")
		in.ActionType = action
		r := read(t, k, c, in, noon)
		want := int64(i + 1)
		if action == "e-mail.send" { // another type
			want = condition.Uncounted
		}
		if got := r.Counts()[0].N; got != want {
			t.Errorf("%s: %d with this one, want %d", action, got, want)
		}
		if reserve(t, r) {
			r.Commit()
		}
	}
}
