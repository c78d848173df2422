package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// writerTests test decisions that several handles write at the same time.
// monthly is a meter.
var monthly = storage.Window{Org: "org", Month: november}

var writerTests = []replicaTest{
	{"two handles never write one chain, and Chains and Heads give each whole", func(r *replicas) {
		w := NewWriter()
		want := make(map[[16]byte]uint64)
		for i := range 7 {
			h := r.handle(i % 3 % 2)
			r.commit(w, h, w.Record("org"))
			want[r.tip(h).ID] = r.tip(h).Seq
		}
		if len(want) != 2 {
			r.a.Errorf("%d chains of two handles", len(want))
		}
		for _, h := range []Replica{r.one, r.other} {
			got := make(map[[16]byte]uint64)
			err := h.Chains(r.a.Context(), func(tip receipt.Chain) error {
				heads := uint64(0)
				from := receipt.Chain{ID: tip.ID}
				err := h.Heads(r.a.Context(), tip.ID, 1, func(head receipt.SignedHead) error {
					if heads++; head.Chain != tip.ID || head.Seq != heads || head.Prev != from.Prev {
						return fmt.Errorf("head %d of chain %x in the place of %d of %x", head.Seq, head.Chain, heads, tip.ID)
					}
					from = from.Next(head.Head)
					return nil
				})
				if got[tip.ID] = tip.Seq; heads != tip.Seq || from != tip {
					r.a.Errorf("%d heads to %+v, want %+v", heads, from, tip)
				}
				return err
			})
			r.a.WantErr("Chains", err, nil)
			r.wantSame("chains", got, want)
		}
	}},
	{"what one handle decided the other finds, and appends nothing in its place", func(r *replicas) {
		w := NewWriter()
		first := w.Record("org")
		r.commit(w, r.one, first)
		got, err := r.other.Decided(r.a.Context(), "org", first.IntentID, "")
		r.a.WantErr("Decided", err, nil)
		r.wantSame("Decided", got, first)
		before := r.tip(r.other)
		r.wantSame("what stands", r.commit(w, r.other, w.Again(first)), []*storage.Record{first})
		r.wantSame("the tip", r.tip(r.other), before)
	}},
	{"what several handles have appended all of them count, at once and after one is lost", func(r *replicas) {
		w := NewWriter()
		count := func(h Replica, want int64) {
			got := int64(0)
			day := storage.DayOf(noon)
			err := h.Counts(r.a.Context(), "org", storage.CountedByAction, day, day+1, func(c storage.Count) error {
				for _, n := range c.Hours {
					got += n
				}
				return nil
			})
			r.a.WantErr("Counts", err, nil)
			r.wantSame("the count", got, want)
		}
		for i := range int64(6) {
			r.commit(w, r.handle(int(i%2)), w.Record("org"))
			count(r.one, i+1)
			count(r.other, i+1)
		}
		again := r.TakeOver(r.a.T, r.one)
		count(again, 6)
		r.commit(w, again, w.Record("org"))
		count(r.other, 7)
	}},
	{"of racing Appends of one intent by several handles exactly one is first", func(r *replicas) {
		w := NewWriter()
		const intents = 8
		var firsts [intents]atomic.Int32
		var mu [2]sync.Mutex // a handle allows one Append at a time
		Race(func(racer int) {
			for i := range intents {
				record := w.Record("org", func(r *storage.Record) { r.IntentID = IntentID(1e9 + i) })
				mu[racer%2].Lock()
				earlier := r.commit(w, r.handle(racer%2), record)
				mu[racer%2].Unlock()
				if earlier[0] == nil {
					firsts[i].Add(1)
				}
			}
		})
		for i := range firsts {
			if n := firsts[i].Load(); n != 1 {
				r.a.Errorf("intent %d was first %d times, want once", i, n)
			}
		}
		leaves := uint64(0)
		err := r.one.Chains(r.a.Context(), func(tip receipt.Chain) error {
			return r.one.Heads(r.a.Context(), tip.ID, 1, func(h receipt.SignedHead) error {
				leaves += uint64(h.Size)
				return nil
			})
		})
		r.a.WantErr("Chains", err, nil)
		if leaves != intents {
			r.a.Errorf("the heads have %d leaves, want %d", leaves, intents)
		}
		for _, h := range []Replica{r.one, r.other} {
			n, err := h.Metered(r.a.Context(), "org", november)
			r.a.WantErr("Metered", err, nil)
			r.wantSame("Metered", n, int64(intents))
		}
	}},
	{"a handle whose chain another has taken over gets ErrConflict, and stores nothing", func(r *replicas) {
		w := NewWriter()
		r.commit(w, r.one, w.Record("org"))
		heir := r.TakeOver(r.a.T, r.one)
		r.wantSame("the heir's tip", r.tip(heir), r.tip(r.one))
		r.commit(w, heir, w.Record("org"))
		late := w.Record("org")
		_, err := w.Commit(r.a.Context(), r.one, late)
		r.a.WantErr("Append by who was given up", err, storage.ErrConflict)
		_, err = heir.Decided(r.a.Context(), "org", late.IntentID, "")
		r.a.WantErr("Decided", err, storage.ErrNotFound)
		r.commit(w, heir, late)
	}},
	{"places are given once, whichever handle asks, and those of a lost handle come back", func(r *replicas) {
		one, other := quotas{r.a.T, r.one}, quotas{r.a.T, r.other}
		w := NewWriter()
		var total atomic.Int64
		total.Add(one.grant("org", 100, 1))
		Race(func(racer int) {
			q := []quotas{one, other}[racer%2]
			for n := int64(1); n > 0; {
				n = q.grant("org", 100, int64(racer%5+1))
				total.Add(n)
			}
		})
		one.want("in all", total.Load(), 100)
		one.giveBack("org", 1)
		one.want("that another gave back", other.all("org", 100), 1)

		one.want("of one handle", one.all("lost", 10), 10)
		for range 4 {
			r.commit(w, r.one, w.Record("lost"))
		}
		one.want("while it lives", other.all("lost", 10), 0)
		r.TakeOver(r.a.T, r.one)
		one.want("of the lost handle", other.all("lost", 20), 16)
		other.giveBack("lost", 10)
		n, err := Grant(r.a.Context(), r.one, "lost", november, 20, 1)
		r.a.WantErr("Grant to the lost handle", err, storage.ErrConflict)
		one.want("that the lost handle got", n, 0)
		one.want("that nobody holds", other.all("lost", 20), 10)
	}},
	{"places are ample while all handles hold less than an eighth of what is free, and all hear when they are scarce", func(r *replicas) {
		const limit = 100
		one := storage.Ask{Limit: limit, Need: 1, Want: 1}
		for held := int64(1); held <= limit; held++ {
			got := r.count(r.handle(int(held%2)), monthly, one)
			ample := 8*held < limit-held
			if got.N != 1 || got.Ample != ample || ample && got.Wait != 0 {
				r.a.Fatalf("place %d = %+v, want one, ample: %t", held, got, ample)
			}
			if above := r.count(r.one, monthly, storage.Ask{Limit: storage.NoLimit, Need: 1, Want: 1}); above.N != 1 || above.Ample {
				r.a.Errorf("a place without a limit = %+v, want one, not ample", above)
			}
			r.count(r.one, monthly, storage.Ask{Back: []storage.WindowPart{{N: 1}}})
			for _, h := range []Replica{r.one, r.other} {
				scarce, err := h.Scarce(r.a.Context(), []storage.Window{{Org: "another", Month: november}, monthly})
				r.a.WantErr("Scarce", err, nil)
				r.wantSame(fmt.Sprintf("Scarce with %d places held", held), scarce, []bool{false, !ample})
			}
		}
	}},
	{"at the limit a handle waits for idle places of others, and for its own places it does not", func(r *replicas) {
		const limit = 100
		scarce := time.Now()
		for _, h := range []Replica{r.one, r.other} {
			if got := r.count(h, monthly, storage.Ask{Limit: limit, Need: limit / 2, Want: limit / 2}); got.N != limit/2 {
				r.a.Fatalf("Count of half the limit = %+v", got)
			}
		}
		one := storage.Ask{Limit: limit, Need: 1, Want: 1}
		var waited time.Duration
		for got := r.count(r.one, monthly, one); ; got = r.count(r.one, monthly, one) {
			if got.N != 0 {
				r.a.Fatalf("Count at the limit = %+v", got)
			}
			if waited += got.Wait; got.Wait == 0 {
				break
			}
			time.Sleep(got.Wait)
		}
		if waited == 0 && time.Since(scarce) < 2*time.Second || waited > 5*time.Second {
			r.a.Errorf("the limit was reached for one handle, whose other has places, after %v, want about 2s", waited)
		}
		r.count(r.other, monthly, storage.Ask{Back: []storage.WindowPart{{N: 10}}})
		if got := r.count(r.one, monthly, storage.Ask{Limit: limit, Need: 10, Want: 10}); got.N != 10 {
			r.a.Errorf("Count after 10 came back = %+v, want 10", got)
		}
		r.count(r.other, monthly, storage.Ask{Back: []storage.WindowPart{{N: 40}}})
		if got := r.count(r.one, monthly, storage.Ask{Limit: 60, Need: 1, Want: 1}); got.N != 0 || got.Wait != 0 {
			r.a.Errorf("Count at a limit, where only the asker holds places = %+v, want none at once", got)
		}
	}},
}

func (r *replicas) wantSame(what string, got, want any) {
	r.a.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		r.a.Errorf("%s: -want +got\n%s", what, diff)
	}
}

func (r *replicas) handle(i int) Replica { return []Replica{r.one, r.other}[i] }

func (r *replicas) tip(h Replica) receipt.Chain {
	tip, err := h.Tip(r.a.Context())
	if err != nil {
		r.a.Errorf("Tip = %v", err)
	}
	return tip
}

// commit commits records with h. It repeats the commit while the outcome is unknown. Any other
// error ends the test.
func (r *replicas) commit(w *Writer, h Replica, records ...*storage.Record) []*storage.Record {
	r.a.Helper()
	existing, err := w.Commit(r.a.Context(), h, records...)
	if errors.Is(err, storage.ErrUnknown) {
		existing, err = w.Commit(r.a.Context(), h, records...)
	}
	if err != nil || len(existing) != len(records) {
		r.a.Errorf("Append of %d records = %d, %v", len(records), len(existing), err)
		return make([]*storage.Record, len(records))
	}
	return existing
}
