package storagetest

import (
	"fmt"
	"sync/atomic"
	"time"

	"writ.example/writ/storage"
)

// anHour is a window of one hour. No test takes longer than the window.
var anHour = storage.Window{Org: "org", Counter: "count in 3600s", Of: []string{"a"}, Part: time.Minute, Parts: 60}

func (r *replicas) count(h Replica, w storage.Window, ask storage.Ask) storage.Granted {
	r.a.Helper()
	granted, err := h.Windows().Count(r.a.Context(), w, ask)
	if err != nil {
		r.a.Errorf("Count(%+v) = %v", ask, err)
	}
	return granted
}

func (r *replicas) begin(h Replica, w storage.Window, parts ...storage.WindowPart) {
	r.a.Helper()
	r.a.WantErr("Begin", h.Windows().Begin(r.a.Context(), w, parts), nil)
}

// ask returns an Ask for one place in w at the current time, within a limit.
func ask(w storage.Window, limit int64) storage.Ask {
	return storage.Ask{At: w.At(time.Now()), Limit: limit, Need: 1, Want: 1}
}

func (r *replicas) wantGranted(what string, got storage.Granted, n, total int64) {
	r.a.Helper()
	if got.N != n || got.Total != total {
		r.a.Errorf("%s: %d places granted to a total of %d, want %d and %d", what, got.N, got.Total, n, total)
	}
}

var windowTests = []replicaTest{
	{"a window is not found until it is begun, and is begun once", func(r *replicas) {
		now := anHour.At(time.Now())
		_, err := r.one.Windows().Count(r.a.Context(), anHour, ask(anHour, 20))
		r.a.WantErr("Count before Begin", err, storage.ErrNotFound)
		r.begin(r.one, anHour, storage.WindowPart{At: now - 61, N: 2}, storage.WindowPart{At: now - 62 - 1, N: 100}, storage.WindowPart{At: now, N: 3})
		r.begin(r.other, anHour, storage.WindowPart{At: now, N: 50})
		first := r.count(r.one, anHour, ask(anHour, 20))
		r.wantGranted("the first", first, 1, 6)
		r.wantGranted("by another handle", r.count(r.other, anHour, ask(anHour, 20)), 1, 7)
		looked := r.count(r.other, anHour, storage.Ask{At: now})
		r.wantGranted("looking", looked, 0, 7)
		if first.Begun == "" || looked.Begun != first.Begun {
			r.a.Errorf("Begun %q and %q of one window", first.Begun, looked.Begun)
		}
		for _, other := range []storage.Window{
			{Org: "other", Counter: anHour.Counter, Of: anHour.Of, Part: anHour.Part, Parts: anHour.Parts},
			{Org: anHour.Org, Counter: anHour.Counter, Of: []string{"b"}, Part: anHour.Part, Parts: anHour.Parts},
			{Org: anHour.Org, Counter: anHour.Counter + anHour.Of[0], Of: []string{""}, Part: anHour.Part, Parts: anHour.Parts},
		} {
			_, err := r.one.Windows().Count(r.a.Context(), other, ask(other, 20))
			r.a.WantErr(fmt.Sprintf("Count of %+v", other), err, storage.ErrNotFound)
		}
		another := ask(anHour, 20)
		another.Begun = "another"
		_, err = r.one.Windows().Count(r.a.Context(), anHour, another)
		r.a.WantErr("Count of another window of that name", err, storage.ErrNotFound)
	}},
	{"a window is found by each of its names, and gets those that it lacks when it counts", func(r *replicas) {
		named := func(names ...string) storage.Window {
			w := anHour
			w.Of = names
			return w
		}
		r.begin(r.one, named("a", "b"))
		r.wantGranted("by the first name", r.count(r.one, named("a"), ask(anHour, 20)), 1, 1)
		r.wantGranted("by the second", r.count(r.other, named("b"), ask(anHour, 20)), 1, 2)
		r.begin(r.other, named("b", "c"), storage.WindowPart{At: anHour.At(time.Now()), N: 9})
		_, err := r.one.Windows().Count(r.a.Context(), named("c"), ask(anHour, 20))
		r.a.WantErr("Count by a name that it lacks", err, storage.ErrNotFound)
		got := r.count(r.other, named("c", "b"), ask(anHour, 20))
		r.wantGranted("with another name", got, 1, 3)
		r.wantGranted("by the name that it lacked", r.count(r.one, named("c"), storage.Ask{
			At: got.At, Back: []storage.WindowPart{{At: got.At, N: 1}},
		}), 0, 2)
		r.wantGranted("by the first name", r.count(r.other, named("a"), ask(anHour, 20)), 1, 3)
	}},
	{"racing Begins of several names make one window", func(r *replicas) {
		Race(func(racer int) {
			w := anHour
			if w.Of = []string{"a", "b"}; racer%2 == 1 {
				w.Of = []string{"b", "c"}
			}
			r.begin(r.handle(racer%2), w)
			r.count(r.handle(racer%2), w, ask(w, 4))
		})
		w := anHour
		w.Of = []string{"b"}
		if got := r.count(r.one, w, ask(w, 4)); got.N != 0 || got.Total != 4 {
			r.a.Errorf("%+v, want none of a total of 4", got)
		}
	}},
	{"of racing Counts by several handles exactly Limit places are granted", func(r *replicas) {
		var total atomic.Int64
		Race(func(racer int) {
			h := r.handle(racer % 2)
			r.begin(h, anHour)
			for n := int64(1); n > 0; {
				a := ask(anHour, 50)
				a.Want = int64(racer%5 + 1)
				n = r.count(h, anHour, a).N
				total.Add(n)
			}
		})
		if n := total.Load(); n != 50 {
			r.a.Errorf("%d places were granted, want 50", n)
		}
	}},
	{"far from its limit a window grants what is wanted, near it what is needed, and beyond it nothing", func(r *replicas) {
		r.begin(r.one, anHour)
		want := func(limit, need, want int64) storage.Granted {
			a := ask(anHour, limit)
			a.Need, a.Want = need, want
			return r.count(r.one, anHour, a)
		}
		r.wantGranted("far from the limit", want(1_000_000, 1, 100), 100, 100)
		r.wantGranted("a sixteenth of what is left", want(260, 1, 100), 10, 110)
		r.wantGranted("what is needed", want(130, 15, 100), 15, 125)
		r.wantGranted("that does not fit", want(130, 6, 100), 0, 125)
		r.wantGranted("that fits", want(130, 5, 100), 5, 130)
		r.wantGranted("of a limit that was lowered", want(20, 1, 1), 0, 130)
		r.wantGranted("of none", want(1<<62, 1000, 1000), 1000, 1130)
	}},
	{"places are given back by any handle, and no more than a part has", func(r *replicas) {
		r.begin(r.one, anHour)
		var got storage.Granted
		for range 3 {
			got = r.count(r.one, anHour, ask(anHour, 3))
		}
		r.wantGranted("the third", got, 1, 3)
		back := ask(anHour, 3)
		back.Back = []storage.WindowPart{{At: got.At, N: 1}, {At: got.At - 1, N: 1}}
		r.wantGranted("in exchange for another", r.count(r.other, anHour, back), 1, 3)
		r.wantGranted("and no more", r.count(r.other, anHour, ask(anHour, 3)), 0, 3)
		r.wantGranted("all", r.count(r.other, anHour, storage.Ask{At: got.At, Back: []storage.WindowPart{{At: got.At, N: 5}}}), 0, 0)
		r.wantGranted("anew", r.count(r.one, anHour, ask(anHour, 3)), 1, 1)
	}},
	{"places leave with their window, and not before", func(r *replicas) {
		w := storage.Window{Org: "org", Counter: "short", Of: []string{""}, Part: 10 * time.Millisecond, Parts: 60}
		r.begin(r.one, w)
		first := time.Now()
		for range 5 {
			r.wantGranted("one of five", storage.Granted{N: r.count(r.one, w, ask(w, 5)).N}, 1, 0)
		}
		r.a.wait("places that have left", func() bool { return r.count(r.other, w, ask(w, 5)).N > 0 })
		if length := time.Duration(w.Parts-1) * w.Part; time.Since(first) < length {
			r.a.Errorf("a place left after %v, want %v at least", time.Since(first), length)
		}
	}},
	{"no clock of a handle lets more through, and the places of a lost handle stay taken", func(r *replicas) {
		r.begin(r.one, anHour)
		var total int64
		for i, skew := range []int64{0, 30, 0, -30, 1000, -1000, 0, 100, -100, 0} {
			a := ask(anHour, 4)
			a.At += skew
			total += r.count(r.handle(i%2), anHour, a).N
		}
		heir := r.TakeOver(r.a.T, r.one)
		total += r.count(heir, anHour, ask(anHour, 4)).N
		if total != 4 {
			r.a.Errorf("%d places were granted, want 4", total)
		}
	}},
}
