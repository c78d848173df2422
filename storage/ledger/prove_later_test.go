package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// aging is a history of which a state is kept for a number of rows. Each time that it is renewed, it has changed.
type aging struct {
	*storagetest.MemoryLog
	most, left int64
	change     func()
	renewed    int
}

func (a *aging) EachRow(ctx context.Context, org, after, upTo string, f func(*storage.Record) error) error {
	return a.MemoryLog.EachRow(ctx, org, after, upTo, func(r *storage.Record) error {
		if atomic.AddInt64(&a.left, -1) < 0 {
			return fmt.Errorf("reading rows: %w", storage.ErrPast)
		}
		return f(r)
	})
}

func (a *aging) Renew(context.Context) error {
	a.left = a.most
	a.renewed++
	a.change()
	return nil
}

// TestProve_InSeveralStates proves a history that is read in several states. Meanwhile rows are decided, settled and
// removed, and a new chain begins. A row that is lost meanwhile must be missed.
func TestProve_InSeveralStates(t *testing.T) {
	for name, loses := range map[string]bool{"whole": false, "a row is lost": true} {
		t.Run(name, func(t *testing.T) {
			log, at := storagetest.NewMemoryLog(), &clock{now: noon}
			now := func(c *Config) { c.Now = at.Now }
			l := open(t, fakeOn(log), now)
			const rows = 60
			var ids []string
			for i := range rows {
				at.set(noon.Add(time.Duration(i) * time.Hour))
				ids = append(ids, mustDecide(t, l, []string{"acme", "rival"}[i%2], intent(i)).Record.DecisionID)
			}
			at.set(noon.Add(30 * 24 * time.Hour))
			settle := func(i int) {
				t.Helper()
				s := storage.Settlement{Outcome: "failed", RecordedAt: at.Now()}
				if _, _, err := l.Settle(t.Context(), []string{"acme", "rival"}[i%2], ids[i], s); err != nil {
					t.Fatal(err)
				}
			}
			settle(rows - 1)
			h := &aging{MemoryLog: log, most: 11, left: 11}
			h.change = func() {
				n := h.renewed
				mustDecide(t, l, "acme", intent(1000+n)) // under a later head
				if n == 1 {
					mustDecide(t, open(t, fakeOn(log), now), "rival", intent(2000)) // in another chain
					settle(rows - 2)
				}
				if n > 4 {
					return
				}
				for _, org := range []string{"acme", "rival"} { // the oldest
					must(t, l.Retain(t.Context(), org, noon.Add(29*24*time.Hour), storage.Expired{Records: 5, Settled: 1}))
					for range 5 {
						must(t, log.Bury(org))
					}
				}
				if loses && n == 2 {
					log.Records = slices.DeleteFunc(log.Records, func(r *storage.Record) bool { return r.DecisionID == ids[rows-3] })
				}
			}
			proof, err := Prove(t.Context(), h, ProveConfig{Keys: testKeys(t, testSigner(1))})
			if loses {
				if broken := (*storage.BreakError)(nil); !errors.As(err, &broken) || !strings.Contains(err.Error(), "leaves are missing") {
					t.Errorf("Prove without a row = %+v, %v, want a break", proof, err)
				}
				return
			}
			if err != nil || proof.Renewed == 0 || len(proof.Ends) != 1 || proof.Rows > rows || proof.Removed == 0 {
				t.Errorf("Prove in %d states = %+v, %v, want the chain of the first", h.renewed, proof, err)
			}
			t.Logf("%d states, %d rows and %d removed of %d", h.renewed+1, proof.Rows, proof.Removed, rows)
		})
	}
}

// TestProve_OfNoProgress checks a history of which no state is kept for long enough to read a row.
func TestProve_OfNoProgress(t *testing.T) {
	log := storagetest.NewMemoryLog()
	mustDecide(t, open(t, fakeOn(log)), "acme", intent(1))
	h := &aging{MemoryLog: log, change: func() {}}
	_, err := Prove(t.Context(), h, ProveConfig{Keys: testKeys(t, testSigner(1))})
	if broken := (*storage.BreakError)(nil); !errors.Is(err, storage.ErrPast) || errors.As(err, &broken) {
		t.Errorf("Prove = %v, want %v", err, storage.ErrPast)
	}
}

var _ Renewable = (*aging)(nil)
