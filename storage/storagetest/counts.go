package storagetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

var countTests = []test{
	{"the sums of Counts must be those of a scan, whatever was appended, imported, abandoned and removed", func(w *world) {
		day := storage.DayOf(noon)
		imported := false
		for step := range 60 {
			at := noon.Add(time.Duration(step) * time.Hour)
			some := func(r *storage.Record) {
				n := rand.N(1 << 20)
				r.DecidedAt = at.Add(time.Duration(n%100) * time.Minute)
				r.DecisionID = decisionID(r.DecidedAt, int64(n))
				r.Decision = engine.Decision(n%3 + 1)
				r.AgentID, r.ActionType = fmt.Sprint("agent.", n%5), []string{"", "$read", "a.b"}[n%3]
				r.Findings = nil
				if n%4 > 0 {
					r.Findings = []storage.Finding{{Code: "other"}, {Code: fmt.Sprint("rule.", n%2), Decides: true, RuleID: []string{"", "r"}[n%2]}}
				}
			}
			switch rand.N(5) {
			case 0, 1:
				w.commit(w.record("org", some), w.record("other", some), w.record("org", some))
			case 2:
				rows := w.elsewhere("org", 3)
				w.imports(rows, nil)
				w.Must("Import again", w.Import(w.ctx, "org", rows, nil))
				imported = true
			case 3:
				_, err := w.RemoveRecords(w.ctx, "org", at, storage.Expired{Records: 1 + rand.N(4), Settled: 4})
				w.Must("RemoveRecords", err)
			case 4:
				if imported {
					_, err := w.RemoveImported(w.ctx, "org", 1+rand.N(4))
					w.Must("RemoveImported", err)
				}
			}
			CheckCounts(w.T, w.Store, "org", "other")
		}
		w.remove("org", noon.AddDate(1, 0, 0), 1<<20, len(w.history("org", storage.Filter{}, 100)))
		CheckCounts(w.T, w.Store, "org", "other")
		w.WantSame("counts of nobody", w.counted("nobody", storage.CountedByDecision, 0, day+100), map[string]int64{})
	}},
	{"Counts are of the days from from on and before to", func(w *world) {
		w.commit(w.record("org"))
		day := storage.DayOf(noon)
		for _, test := range []struct {
			from, to storage.Day
			want     int64
		}{{day, day + 1, 1}, {day - 1, day, 0}, {day + 1, day + 2, 0}, {day, day, 0}, {day + 1, day, 0}, {-5, 1 << 20, 1}} {
			got := w.counted("org", storage.CountedByAction, test.from, test.to)
			if n := got["deploy"]; n != test.want {
				w.Errorf("Counts from %d to %d = %d, want %d", test.from, test.to, n, test.want)
			}
		}
		fault := errors.New("enough")
		w.WantErr("Counts", w.Counts(w.ctx, "org", storage.CountedByAction, day, day+1, func(storage.Count) error { return fault }), fault)
	}},
}

// counted returns the sums of counts by value.
func (w *world) counted(org string, by storage.CountedBy, from, to storage.Day) map[string]int64 {
	w.Helper()
	sums := make(map[string]int64)
	w.Must("Counts", w.Counts(w.ctx, org, by, from, to, func(c storage.Count) error {
		for _, n := range c.Hours {
			sums[c.Value] += n
		}
		return nil
	}))
	maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	return sums
}

// orgs returns the organizations that have had records, sorted.
func (w *world) orgs() []string { return slices.Sorted(maps.Keys(w.records)) }
