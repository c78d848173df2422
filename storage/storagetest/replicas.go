package storagetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"writ.example/writ/storage"
)

// Replica is one of several handles on a store.
type Replica interface {
	storage.Documents
	storage.Log
	storage.Counter
	storage.Quotas
}

// Cluster is a store with several handles. Its methods can also cause faults between the handles.
type Cluster interface {
	// OpenHandle returns a new handle. It is closed when t ends.
	OpenHandle(t *testing.T) Replica
	// TakeOver returns a new handle that continues the chain of h. h has lost its chain, but it can
	// still call the store.
	TakeOver(t *testing.T, h Replica) Replica
	// Cut hides the writes of other handles from h until Mend is called.
	Cut(h Replica)
	Mend(h Replica)
}

// RunReplicas tests the part of the contract that concerns several handles on one store. open must
// return a new, empty store.
func RunReplicas(t *testing.T, open func(t *testing.T) Cluster) {
	for _, test := range slices.Concat(replicaTests, writerTests, windowTests) {
		t.Run(test.rule, func(t *testing.T) {
			c := open(t)
			one, other := c.OpenHandle(t), c.OpenHandle(t)
			test.run(&replicas{
				Cluster: c, one: one, other: other,
				a: &docs{Checks: Checks{t}, Documents: one}, b: &docs{Checks: Checks{t}, Documents: other},
			})
		})
	}
}

// replicas has two handles on one store. a and b are the documents of these handles.
type replicas struct {
	Cluster
	one, other Replica
	a, b       *docs
}

// patience is how long a test waits for a change to reach a handle.
const patience = 30 * time.Second

func (d *docs) wait(what string, done func() bool) {
	d.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			d.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// next waits until h has n new changes, and takes all new changes.
func (h *Heard) next(d *docs, n int) []storage.Change {
	d.Helper()
	d.wait("changes", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.changes) >= n
	})
	return h.Take()
}

// leader waits until one of handles leads, and returns its index. If two handles lead, it reports
// an error.
func (r *replicas) leader(handles []Replica) (leader int) {
	r.a.Helper()
	r.a.wait("a leader", func() bool {
		leader = -1
		for i, h := range handles {
			if !h.Leads() {
				continue
			}
			if leader >= 0 && handles[leader].Leads() { // it must still lead
				r.a.Errorf("handles %d and %d lead", leader, i)
			}
			leader = i
		}
		return leader >= 0
	})
	return leader
}

// replicaTest is the test of one rule of the contract for several handles.
type replicaTest struct {
	rule string
	run  func(r *replicas)
}

var replicaTests = []replicaTest{
	{"what one handle commits the other reads and hears, each once and in order, its own before it returns", func(r *replicas) {
		a, b := r.a.watch(), r.b.watch()
		var want []storage.Change
		for i, id := range []string{"p", "q", "r", "s"} {
			writer, own := r.a, a
			if i%2 == 1 {
				writer, own = r.b, b
			}
			want = append(want, changeOf(writer.update("org", put("org", id)), id))
			own.mu.Lock()
			if n := len(own.changes); n == 0 || own.changes[n-1] != want[i] {
				writer.Errorf("changes when Update has returned = %+v, want its own last", own.changes)
			}
			own.mu.Unlock()
			r.a.WantErr("Barrier", writer.Barrier(r.a.Context()), nil)
		}
		for _, d := range []*docs{r.a, r.b} {
			d.wantIDs(rulesOf("org"), "p", "q", "r", "s")
		}
		r.a.wantChanges("what a heard", a.next(r.a, 4), want...)
		r.b.wantChanges("what b heard", b.next(r.b, 4), want...)
		revision := r.a.update("org", put("org", "t"))
		r.b.wantChanges("what b heard, once", b.next(r.b, 1), changeOf(revision, "t"))
		r.a.wantChanges("what a heard, once", a.next(r.a, 1), changeOf(revision, "t"))
	}},
	{"a revision is greater than every earlier one of its organization, whoever made it", func(r *replicas) {
		last := make(map[string]uint64)
		for i := range 12 {
			org := []string{"org", "other", ""}[i%3]
			revision := []*docs{r.a, r.b}[i%2].update(org, put(org, "r"))
			if revision <= last[org] {
				r.a.Errorf("revision %d of %q after %d", revision, org, last[org])
			}
			last[org] = revision
		}
	}},
	{"a handle hears all changes of an organization in their order, whoever writes beside", func(r *replicas) {
		heard := []*Heard{r.a.watch(), r.b.watch()}
		var mu sync.Mutex
		made := make(map[string][]uint64)
		Race(func(racer int) {
			d := []*docs{r.a, r.b}[racer%2]
			for i := range 4 {
				org := []string{"org", "other", "third"}[(racer+i)%3]
				revision, err := d.Update(d.Context(), org, put(org, "r"))
				if err != nil {
					d.Errorf("Update = %v", err)
					return
				}
				mu.Lock()
				made[org] = append(made[org], revision)
				mu.Unlock()
			}
		})
		for i, d := range []*docs{r.a, r.b} {
			got := make(map[string][]uint64)
			for _, c := range heard[i].next(d, 4*Racers) {
				got[c.Org] = append(got[c.Org], c.Revision)
			}
			for org, revisions := range made {
				if slices.Sort(revisions); !slices.Equal(got[org], revisions) {
					d.Errorf("handle %d has heard of the revisions %v of %s, want %v", i, got[org], org, revisions)
				}
			}
		}
	}},
	{"after a gap there is EverythingChanged, and what follows is told", func(r *replicas) {
		b := r.b.watch()
		r.Cut(r.other)
		r.a.update("org", put("org", "missed"))
		r.Mend(r.other)
		heardAll := false
		r.b.wait("EverythingChanged", func() bool {
			for _, c := range b.Take() {
				heardAll = heardAll || c.Kind == storage.EverythingChanged
			}
			return heardAll
		})
		r.b.wantIDs(rulesOf("org"), "missed")
		revision := r.a.update("org", put("org", "heard"))
		r.b.wantChanges("changes after the gap", b.next(r.b, 1), changeOf(revision, "heard"))
	}},
	{"FreshFor grows while a handle may miss changes, and is small again after", func(r *replicas) {
		r.b.wait("freshness", func() bool { return r.b.FreshFor() <= storage.MaxAge })
		r.Cut(r.other)
		r.b.wait("staleness", func() bool { return r.b.FreshFor() > storage.MaxAge })
		r.Mend(r.other)
		r.b.wait("freshness", func() bool { return r.b.FreshFor() <= storage.MaxAge })
	}},
	{"Barrier waits for a live handle that has not heard", func(r *replicas) {
		b := r.b.watch()
		r.Cut(r.other)
		r.a.update("org", put("org", "r"))
		short, cancel := context.WithTimeout(r.a.Context(), 20*time.Millisecond)
		defer cancel()
		if err := r.a.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
			r.a.Errorf("Barrier while another has not heard = %v, want %v", err, context.DeadlineExceeded)
		}
		r.Mend(r.other)
		r.a.WantErr("Barrier", r.a.Barrier(r.a.Context()), nil)
		if len(b.Take()) == 0 {
			r.a.Error("Barrier returned, and the other handle has heard nothing")
		}
	}},
	{"Barrier waits for a change that an Update has found, so that it wrote nothing", func(r *replicas) {
		third := &docs{Checks: Checks{r.a.T}, Documents: r.OpenHandle(r.a.T)}
		b := r.b.watch()
		r.Cut(r.other)
		third.update("org", put("org", "r"))
		r.a.update("org", func(tx storage.Tx) error {
			_, err := tx.Get(storage.RuleKind, "org", "r")
			return err
		})
		short, cancel := context.WithTimeout(r.a.Context(), 20*time.Millisecond)
		defer cancel()
		if err := r.a.Barrier(short); !errors.Is(err, context.DeadlineExceeded) {
			r.a.Errorf("Barrier while another has not heard = %v, want %v", err, context.DeadlineExceeded)
		}
		r.Mend(r.other)
		r.a.WantErr("Barrier", r.a.Barrier(r.a.Context()), nil)
		if len(b.Take()) == 0 {
			r.a.Error("Barrier returned, and the other handle has heard nothing")
		}
	}},
	{"one handle leads, and another when that is lost", func(r *replicas) {
		handles := []Replica{r.one, r.other}
		leader := r.leader(handles)
		lost := handles[leader]
		handles[leader] = r.TakeOver(r.a.T, lost)
		r.a.wait("the lost handle to lead no more", func() bool { return !lost.Leads() })
		r.leader(handles)
	}},
	{"updates of one organization are as if one ran after the other, whoever makes them", func(r *replicas) {
		Race(func(racer int) {
			d := []*docs{r.a, r.b}[racer%2]
			if _, err := d.Update(d.Context(), "org", countRule); err != nil {
				d.Errorf("Update = %v", err)
			}
		})
		r.a.wantCount(Racers)
		r.b.wantCount(Racers)
	}},
	{"of racing Puts of one id in a Global collection by two organizations one succeeds", func(r *replicas) {
		errs := make(chan error, 2)
		for org, d := range map[string]*docs{"a": r.a, "b": r.b} {
			go func() {
				_, err := d.Update(d.Context(), org, putToken(org, "t"))
				errs <- err
			}()
		}
		if first, second := <-errs, <-errs; (first == nil) == (second == nil) {
			r.a.Errorf("Updates = %v and %v, want one success", first, second)
		}
	}},
}
