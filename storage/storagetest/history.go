package storagetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

var historyTests = []test{
	{"ListRecords returns org's records that f selects, newest first", func(w *world) {
		var records []*storage.Record
		for i := range 60 {
			records = append(records, w.record("org", func(r *storage.Record) {
				r.AgentID = fmt.Sprintf("agent-%d", i%2)
				r.PolicyID = fmt.Sprintf("policy-%d", i%5)
				r.ActionType = fmt.Sprintf("type.%d", i%7)
				r.SessionID, r.Credential = fmt.Sprintf("session-%d", i%3), fmt.Sprintf("key-%d", i%4)
				r.ApprovalID = "" // a row without one
				if i%6 == 1 {
					r.ApprovalID = decisionID(noon, int64(i%12))
				}
				found := storage.Finding{Code: "rule.deny", RuleID: fmt.Sprintf("rule-%d", i%5), Outcome: engine.Deny}
				if r.Findings = nil; i%3 > 0 {
					r.Findings = []storage.Finding{{Code: "action.denied", Outcome: engine.Deny}, found}[i%2:]
				}
			}))
		}
		w.commit(records[30:]...) // lists are sorted by id, not by commit
		w.commit(records[:30]...)
		w.check()
		slices.Reverse(records)
		for _, f := range filters(records) {
			want := selected(records, f)
			for _, limit := range []int{1, 4, 60} {
				w.WantSame(fmt.Sprintf("ListRecords(%+v)", f), w.history("org", f, limit), want)
			}
		}
	}},
	{"the pages of every filter equal a scan of random rows of several organizations", func(w *world) {
		n := 3000
		if os.Getenv("WRIT_SOAK") != "" {
			n = 1_000_000
		}
		rows := make(map[string][]*storage.Record)
		for i := range n {
			org := fmt.Sprintf("org-%d", i*7%3)
			rows[org] = append(rows[org], w.record(org, func(r *storage.Record) {
				n := rand.N(1 << 20)
				r.AgentID, r.SessionID = fmt.Sprintf("agent-%d", n%2), fmt.Sprintf("session-%d", n%3)
				r.Credential = fmt.Sprintf("key-%d", n%4)
				if n%5 > 0 {
					r.Findings = []storage.Finding{{Code: "rule.deny", RuleID: fmt.Sprintf("rule-%d", n%5), Outcome: engine.Deny}}
				}
			}))
		}
		for org, records := range rows {
			for part := range slices.Chunk(records, 500) {
				w.commit(part...)
			}
			slices.Reverse(records)
			for _, f := range filters(records) {
				got, want := w.history(org, f, 100), selected(records, f)
				if !slices.EqualFunc(got, want, sameDecision) {
					w.WantSame(fmt.Sprintf("ListRecords(%+v)", f), got, want)
				}
			}
		}
	}},
	{"a page ends after MaxRead rows that f does not select, and the list goes on", func(w *world) {
		// No index has the rows of a pair, and each part of a pair has more than MaxRead rows.
		records := make([]*storage.Record, 2*(storage.MaxRead+1))
		for i := range records {
			records[i] = w.record("org", func(r *storage.Record) {
				r.AgentID, r.PolicyID = fmt.Sprint("agent-", i%2), fmt.Sprint("policy-", i%2)
			})
		}
		for part := range slices.Chunk(records, storage.MaxPage) {
			w.commit(part...)
		}
		f := storage.Filter{AgentIDs: []string{"agent-0"}, PolicyID: "policy-1"}
		page, next, err := w.ListRecords(w.ctx, "org", f, storage.Page{Limit: 1})
		w.Must("ListRecords", err)
		if len(page) != 0 || next == "" {
			w.Errorf("page of rows that f does not select = %d records, next %q; want none and a cursor", len(page), next)
		}
		w.WantSame("the rest", w.history("org", f, 1), []*storage.Record(nil))
		// The ids of these rows may be of a time that f selects.
		first, last := records[0].DecidedAt, records[len(records)-1].DecidedAt
		for _, f := range []storage.Filter{
			{To: first}, {From: last.Add(time.Millisecond)}, {To: first, AgentIDs: []string{"agent-0"}},
			{RuleID: "none"}, {Code: "none", AgentIDs: []string{"agent-0"}}, {SessionID: "none"}, {ActionTypes: []string{"none"}},
			{Credential: "none"},
		} {
			page, next, err := w.ListRecords(w.ctx, "org", f, storage.Page{Limit: 1})
			w.Must("ListRecords", err)
			if len(page) != 0 || next == "" {
				w.Errorf("page of %+v = %d records, next %q; want none and a cursor", f, len(page), next)
			}
			w.WantSame("the rest", w.history("org", f, 1), []*storage.Record(nil))
		}
		f.PolicyID = "policy-0"
		if got := len(w.history("org", f, storage.MaxPage)); got != storage.MaxRead+1 {
			w.Errorf("pages of %+v = %d records, want %d", f, got, storage.MaxRead+1)
		}
	}},
	{"From and To select DecidedAt in [From, To), whatever the id's own time within MaxSkew", func(w *world) {
		for i, skew := range []time.Duration{0, time.Millisecond, -storage.MaxSkew, storage.MaxSkew, time.Second} {
			w.commit(w.record("org", func(r *storage.Record) {
				r.DecidedAt = noon.Add(time.Duration(i) * time.Hour)
				r.DecisionID = decisionID(r.DecidedAt.Add(skew), int64(i))
			}))
			w.check()
			f := storage.Filter{From: noon.Add(time.Duration(i) * time.Hour)}
			f.To = f.From.Add(1)
			if got := w.history("org", f, 10); len(got) != 1 {
				w.Errorf("ListRecords of one nanosecond with skew %v = %d records, want 1", skew, len(got))
			}
			f.From = f.To
			f.To = f.From.Add(time.Minute)
			if got := w.history("org", f, 10); len(got) != 0 {
				w.Errorf("ListRecords of the minute after, with skew %v = %d records, want 0", skew, len(got))
			}
		}
		backwards := storage.Filter{From: noon.AddDate(1, 0, 0), To: noon.AddDate(-1, 0, 0)}
		if got := w.history("org", backwards, 10); len(got) != 0 {
			w.Errorf("ListRecords from late to early = %d records, want 0", len(got))
		}
		for _, f := range []storage.Filter{{From: time.Unix(-1<<40, 0)}, {To: noon.AddDate(5000, 0, 0)}} {
			if got := w.history("org", f, 10); len(got) != 5 {
				w.Errorf("ListRecords(%+v) = %d records, want 5", f, len(got))
			}
		}
	}},
	{"a full page holds exactly Limit records and an empty next ends the list", func(w *world) {
		for range 6 {
			w.commit(w.record("org"))
		}
		got, next, err := w.ListRecords(w.ctx, "org", storage.Filter{}, storage.Page{Limit: 3})
		if len(got) != 3 || next == "" || err != nil {
			w.Fatalf("first page = %d records, next %q, %v; want 3, a cursor, nil", len(got), next, err)
		}
		got, next, err = w.ListRecords(w.ctx, "org", storage.Filter{}, storage.Page{Limit: 3, After: next})
		if len(got) != 3 || next != "" || err != nil {
			w.Fatalf("last page = %d records, next %q, %v; want 3, none, nil", len(got), next, err)
		}
	}},
	{"records that are committed between two pages neither repeat nor hide others", func(w *world) {
		var want []*storage.Record
		for range 6 {
			r := w.record("org")
			w.commit(r)
			want = append(want, r)
		}
		slices.Reverse(want)
		got, next, err := w.ListRecords(w.ctx, "org", storage.Filter{}, storage.Page{Limit: 3})
		w.Must("ListRecords", err)
		w.commit(w.record("org"))
		rest, _, err := w.ListRecords(w.ctx, "org", storage.Filter{}, storage.Page{Limit: 10, After: next})
		w.Must("ListRecords", err)
		w.WantSame("both pages", append(got, rest...), want)
	}},
	{"Record returns the record of a decision, or ErrNotFound", func(w *world) {
		r := w.record("org")
		w.commit(r)
		for _, id := range []string{"", "x", r.IntentID, decisionID(noon, 99), r.DecisionID + " ", "{" + r.DecisionID + "}"} {
			_, err := w.Record(w.ctx, "org", id)
			w.WantErr("Record("+id+")", err, storage.ErrNotFound)
		}
		w.check()
	}},
	{"whoever reads a record gets its settlement, Unapproved as the decision has it", func(w *world) {
		for _, d := range []engine.Decision{engine.Allow, engine.ApprovalRequired, engine.Deny} {
			for _, outcome := range []string{storage.Executed, "failed", "skipped"} {
				r := w.record("org")
				r.Decision = d
				r.Receipt.Decision = d.String()
				w.commit(w.record("org"), r)
				amount := int64(0)
				w.settle(r, storage.Settlement{Outcome: outcome, AmountMinor: &amount, RecordedAt: noon.Add(time.Hour)})
				if want := d != engine.Allow && outcome == storage.Executed; r.Settlement.Unapproved != want {
					w.Errorf("Unapproved of %s of %s = %t, want %t", outcome, d, !want, want)
				}
			}
		}
		w.check()
	}},
}

// sameDecision reports whether a and b are of one decision. It takes less time than [Checks.WantSame].
func sameDecision(a, b *storage.Record) bool { return a.DecisionID == b.DecisionID }

// filters returns filters that combine all conditions.
func filters(records []*storage.Record) []storage.Filter {
	middle := records[len(records)/2].DecidedAt
	return []storage.Filter{
		{AgentIDs: []string{"agent-1"}},
		{PolicyID: "policy-3"},
		{ActionTypes: []string{"type.6"}},
		{AgentIDs: []string{"agent-"}},
		{AgentIDs: []string{"agent-1", "agent-9"}, ActionTypes: []string{"type.2", "type.5", "type.9"}},
		{AgentIDs: []string{"agent-0"}, PolicyID: "policy-2", ActionTypes: []string{"type.1"}},
		{Decision: engine.Deny, AgentIDs: []string{"agent-0"}},
		{IntentID: records[7].IntentID},
		{IntentID: records[7].IntentID, SessionID: "none"},
		{SessionID: "session-1"},
		{Credential: "key-2"},
		{Credential: "key-2", Decision: engine.Allow},
		{ApprovalID: decisionID(noon, 7)},
		{RuleID: "rule-3"},
		{Code: "action.denied", RuleID: "rule-3"},
		{Code: "rule.deny", AgentIDs: []string{"agent-1"}},
		{Code: "policy.allowed"},
		{Code: "none"},
		{From: middle},
		{To: middle},
		{From: middle, To: middle.Add(5 * time.Millisecond)},
		{Decision: engine.Allow, From: middle.Add(-9 * time.Millisecond), To: middle},
	}
}
