package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// TestStore_SurvivesItsPrimary kills or freezes the primary of three members while two handles
// append and update. Afterwards every acknowledged write must be in the history.
func TestStore_SurvivesItsPrimary(t *testing.T) {
	t.Parallel()
	set := sharedThree(t)
	for name, fault := range map[string]struct{ begin, end func(int) error }{
		"killed": {set.Kill, set.Restart},
		"frozen": {set.Freeze, set.Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			o := newDatabase(t, set)
			o.URI += "&timeoutMS=2000"
			tr := trace(t)
			handles := []*recorded{tr.of(openTest(t, o)), tr.of(openTest(t, o))}
			l := &load{T: t, writer: storagetest.NewWriter(), acknowledged: make(map[string]*storage.Record)}
			var heard [2]revisions
			for i, s := range handles {
				defer s.Watch(heard[i].add)()
			}
			stop := l.begin(handles)
			l.wait(100)
			primary, err := set.Primary(t.Context())
			if err == nil {
				err = fault.begin(primary)
			}
			must(t, err)
			began, before := time.Now(), l.acks.Load()
			l.wait(before + 20) // some batches were acknowledged before the fault
			t.Logf("20 batches took %v", time.Since(began).Round(10*time.Millisecond))
			l.wait(before + 100)
			must(t, fault.end(primary))
			l.wait(before + 200)
			stop()
			for i, s := range handles {
				must(t, s.Barrier(t.Context()))
				// A handle that waits for its own row longer than timeoutMS tells EverythingChanged.
				got := slices.DeleteFunc(heard[i].list(), func(n uint64) bool { return n == 0 })
				if !slices.IsSorted(got) || len(got) == 0 {
					t.Errorf("handle %d has heard of the revisions %v, want increasing ones", i, got)
				}
			}
			l.check(handles[0].Store)
		})
	}
}

// revisions is a list of the revisions that a watcher has received, with 0 for EverythingChanged.
type revisions struct {
	mu  sync.Mutex
	all []uint64
}

func (r *revisions) add(c storage.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, c.Revision)
}

// watchRevisions collects the revisions that s reports from now on, until the test ends.
// EverythingChanged is recorded as revision 0.
func watchRevisions(t *testing.T, s *Store) *revisions {
	t.Helper()
	heard := new(revisions)
	t.Cleanup(s.Watch(func(c storage.Change) {
		if c.Kind == storage.EverythingChanged {
			c.Revision = 0
		}
		heard.add(c)
	}))
	return heard
}

func (r *revisions) list() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

const orgs = 3

// load writes until it is stopped and remembers the acknowledged records.
type load struct {
	*testing.T
	writer *storagetest.Writer
	acks   atomic.Int64
	flips  atomic.Int64

	mu           sync.Mutex
	acknowledged map[string]*storage.Record // by intent id
}

// begin starts goroutines that append and update with the handles, until stop is called.
func (l *load) begin(handles []*recorded) (stop func()) {
	ctx, cancel := context.WithCancel(l.Context())
	var done sync.WaitGroup
	for _, s := range handles {
		done.Go(func() { l.append(ctx, s) })
		done.Go(func() { l.update(ctx, s.Store) })
	}
	return func() {
		cancel()
		done.Wait()
	}
}

// wait waits until acks batches were acknowledged.
func (l *load) wait(acks int64) {
	l.Helper()
	for end := time.Now().Add(2 * time.Minute); l.acks.Load() < acks; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			l.Fatalf("%d batches were acknowledged in two minutes, want %d", l.acks.Load(), acks)
		}
	}
}

// append appends batches until ctx ends. It repeats a batch until the batch is acknowledged, even
// after ctx has ended. Otherwise a batch could be stored while the history is read. The two handles
// decide some equal intents.
func (l *load) append(ctx context.Context, s *recorded) {
	for n := 0; ctx.Err() == nil; n++ {
		batch := make([]*storage.Record, 4)
		for i := range batch {
			batch[i] = l.writer.Record(fmt.Sprint("org-", i%orgs))
		}
		batch[0] = l.writer.Record("org-0", func(r *storage.Record) { r.IntentID = storagetest.IntentID(1e9 + n) })
		existing, err := l.writer.Commit(l.Context(), s, batch...)
		for err != nil {
			if errors.Is(err, storage.ErrConflict) || l.Context().Err() != nil {
				l.Errorf("Append = %v", err)
				return
			}
			pause(l.Context(), 20) // avoids a busy loop when refusals are immediate
			existing, err = l.writer.Commit(l.Context(), s, batch...)
		}
		l.mu.Lock()
		for i, r := range batch {
			if existing[i] != nil {
				r = existing[i]
			}
			if was := l.acknowledged[r.IntentID]; was != nil && was.DecisionID != r.DecisionID {
				l.Errorf("intent %s was decided as %s and as %s", r.IntentID, was.DecisionID, r.DecisionID)
			}
			l.acknowledged[r.IntentID] = r
		}
		l.mu.Unlock()
		l.acks.Add(1)
	}
}

// update updates documents until ctx ends. An update that returns an error may have been
// committed.
func (l *load) update(ctx context.Context, s *Store) {
	for ctx.Err() == nil {
		_, err := s.Update(ctx, "org", putRule)
		if err == nil {
			l.flips.Add(1)
		}
		pause(ctx, 6)
	}
}

// check compares the history with the acknowledged records and with the heads.
func (l *load) check(s *Store) {
	l.Helper()
	heads, leaves := make(map[receipt.SignedHead]bool), 0
	err := s.Chains(l.Context(), func(tip receipt.Chain) error {
		var chain []receipt.SignedHead
		err := s.Heads(l.Context(), tip.ID, 1, func(h receipt.SignedHead) error {
			chain, heads[h] = append(chain, h), true
			leaves += int(h.Size)
			return nil
		})
		if reached, chainErr := receipt.VerifyChain(receipt.Chain{ID: tip.ID}, slices.Values(chain), l.writer.Keys(l)); reached != tip || chainErr != nil {
			l.Errorf("VerifyChain = head %d, %v, want %d", reached.Seq, chainErr, tip.Seq)
		}
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
	rows := make(map[string]*storage.Record)
	for i := range orgs {
		l.list(s, fmt.Sprint("org-", i), heads, rows)
	}
	for intent, want := range l.acknowledged {
		if got := rows[intent]; got == nil || got.DecisionID != want.DecisionID {
			l.Errorf("intent %s was acknowledged as %s, and %v is stored", intent, want.DecisionID, got)
		}
	}
	metered := 0
	err = s.Meters(l.Context(), 202611, func(_ string, n int64) error { metered += int(n); return nil })
	if err != nil || leaves != len(rows) || metered != len(rows) {
		l.Errorf("there are %d rows, the heads have %d leaves and the meters %d decisions, %v", len(rows), leaves, metered, err)
	}
	l.Logf("%d batches and %d updates acknowledged, %d rows", l.acks.Load(), l.flips.Load(), len(rows))
}

// list reads the history of org into rows, by intent, and compares it with the heads.
func (l *load) list(s *Store, org string, heads map[receipt.SignedHead]bool, rows map[string]*storage.Record) {
	l.Helper()
	for p := (storage.Page{Limit: 500}); ; {
		records, next, err := s.ListRecords(l.Context(), org, storage.Filter{}, p)
		if err != nil {
			l.Fatal(err)
		}
		for _, r := range records {
			rows[r.IntentID] = r
			if h, err := r.Receipt.SignedHead(); err != nil || !heads[h] {
				l.Errorf("decision %s is under head %d, which is not stored, %v", r.DecisionID, h.Seq, err)
			}
		}
		if p.After = next; next == "" {
			return
		}
	}
}
