package index

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRecent compares recent with a sorted list of the same entries, while entries are added, some twice.
func TestRecent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	entry := func() Entry {
		return Entry{Name: Name(rnd.Uint64N(40) << 58), At: rnd.Uint64N(10), Frame: rnd.Uint64N(5), Item: rnd.Uint32N(2)}
	}
	r, want := newRecent(), []Entry(nil)
	for n := range 3 * freshLen * runTier * runTier * runTier * runTier {
		e := entry()
		r.add(e)
		if at, found := slices.BinarySearchFunc(want, e, compare); !found {
			want = slices.Insert(want, at, e)
		}
		if n%997 != 0 && n != freshLen*runTier-1 {
			continue
		}
		if got := slices.Collect(r.all()); !slices.Equal(got, want) {
			t.Fatalf("after %d entries all() has %d others", n+1, len(want))
		}
		from := entry()
		if n%2 == 0 {
			from.Frame, from.Item = math.MaxUint64, math.MaxUint32
		}
		for _, back := range []bool{false, true} {
			to := Entry{Name: from.Name, At: rnd.Uint64N(10)}
			if !back {
				to.Frame, to.Item = math.MaxUint64, math.MaxUint32
			}
			near := nearest(want, from, to, back)
			got, more := r.near(from, to, back, nil)
			if first := near[:min(len(near), recentRead)]; !slices.Equal(got, first) || !more && len(near) > len(got) {
				t.Fatalf("after %d entries near(%v, %v, %t) = %v, %t, want %v of %d", n+1, from, to, back, got, more, first,
					len(near))
			}
		}
	}
	if n := len(slices.Concat(r.tiers[:]...)); n != 3 || len(r.tiers[4]) != 3 || len(r.fresh) != 0 {
		t.Errorf("in the end there are %d runs and %d fresh entries, want 3 runs", n, len(r.fresh))
	}
}

// nearest returns what of sorted entries is from one to another.
func nearest(all []Entry, from, to Entry, back bool) (near []Entry) {
	all = slices.Clone(all)
	if back {
		slices.Reverse(all)
		from, to = to, from
	}
	for _, e := range all {
		if compare(from, e) <= 0 && compare(e, to) <= 0 {
			near = append(near, e)
		}
	}
	return near
}

// BenchmarkRecent adds the entries of decisions: a random name, and two that are in order.
func BenchmarkRecent(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := make([]Name, 1<<17)
	for i := range names {
		names[i] = Name(rnd.Uint64())
	}
	b.ReportAllocs()
	r := newRecent()
	for n := 0; b.Loop(); n++ {
		if n%len(names) == 0 {
			r = newRecent()
		}
		at := uint64(n)
		r.add(Entry{Name: names[n%len(names)], Frame: at})
		r.add(Entry{Name: 1, At: at, Frame: at})
		r.add(Entry{Name: 5, At: at, Frame: at})
	}
	if len(slices.Collect(r.all())) == 0 {
		b.Error("there is no entry")
	}
}

// BenchmarkRecent_Near reads the next entries of a list, and the entry of a random name.
func BenchmarkRecent_Near(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r, names := newRecent(), make([]Name, 100_000)
	for n := range names {
		names[n] = Name(rnd.Uint64())
		at := uint64(n)
		r.add(Entry{Name: names[n], Frame: at})
		r.add(Entry{Name: 1, At: at, Frame: at})
		r.add(Entry{Name: 5, At: at, Frame: at})
	}
	for name, from := range map[string]func(n int) Entry{
		"list": func(n int) Entry { return Entry{Name: 1, At: uint64(n * 64 % len(names))} },
		"name": func(n int) Entry { return Entry{Name: names[n%len(names)]} },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var got []Entry
			for n := 0; b.Loop(); n++ {
				e := from(n)
				got, _ = r.near(e, Entry{Name: e.Name, At: math.MaxUint64}, false, got[:0])
			}
			if len(got) == 0 {
				b.Error("there is no entry")
			}
		})
	}
}
