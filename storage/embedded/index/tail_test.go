package index

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
)

func framed(rows ...kv) *Keys {
	k := new(Keys)
	for _, r := range rows {
		k.End(append(k.Buf, r.k...))
		k.End(append(k.Buf, r.v...))
	}
	return k
}

// each returns the keys and values that memtable.each visits.
func each(t *memtable) (all []string) {
	t.each(nil, func(k, v string) bool {
		all = append(all, k+"="+v)
		return true
	})
	return all
}

// TestTail checks that keys are found as soon as they are added. A snapshot must contain only
// earlier keys. Keys must be written to Pebble in order, each with its last value. Meters must not
// be written.
func TestTail(t *testing.T) {
	tl := &tail{memtables: []*memtable{newMemtable()}}
	tl.add(1, framed(kv{"k1", "a"}, kv{"hb", "1"}, kv{"ix", "2"}, kv{"m1", "3"}))
	before := tl.snapshot(nil)
	tl.add(2, framed(kv{"hb", "4"}, kv{"ha", "5"}, kv{"iw", "6"}, kv{"m1", "7"}))
	tl.freeze()
	frozen := tl.memtables[0]
	tl.add(3, framed(kv{"hc", "8"}, kv{"iv", "9"}))
	if memtables := tl.snapshot(&pebble.IterOptions{LowerBound: []byte("C"), UpperBound: []byte("D")}); len(memtables) > 0 || !tl.memtables[1].behind() {
		t.Errorf("who reads documents has %d memtables, and waited until they were in order", len(memtables))
	}
	for k, want := range map[string]string{
		"D1": "none", "k1": "a", "hb": "4", "ha": "5", "hc": "8", "ix": "2", "iw": "6", "iv": "9", "m1": "7", "hz": "none", "iz": "none",
	} {
		got, found := tl.get([]byte(k))
		if !found {
			got = "none"
		}
		if got != want {
			t.Errorf("get(%s) = %s, want %s", k, got, want)
		}
	}
	if v, found := before[0].get([]byte("hb")); v != "1" || !found {
		t.Errorf("an iteration has %q, %v, want what was there when it began", v, found)
	}
	if got, want := each(frozen), []string{"ha=5", "hb=4", "iw=6", "ix=2", "k1=a"}; !slices.Equal(got, want) {
		t.Errorf("each = %q, want %q", got, want)
	}
	if n := frozen.len(); n != 7 { // hb was added twice
		t.Errorf("len = %d, want 7", n)
	}
}

func TestRowList_Sorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		tr := newMemtable()
		prefix := "h" + strings.Repeat("p", r.IntN(12))
		want := make(map[string]bool)
		for n := range r.IntN(60) * (1 + 9*r.IntN(2)) { // some tables are large enough to be sorted byte by byte
			k := []byte(prefix + []string{"", "a", "bench-1", "0c1d9f0e-0000-4000-8000-0000000000aa", "0c1d9f0e-0000-4000-8000-0000000000ab"}[r.IntN(5)])
			for range r.IntN(30) {
				k = append(k, byte(r.IntN(3))) // includes zeros and many common prefixes
			}
			v := string(rune('a' + n%26))
			for old := range want {
				if strings.HasPrefix(old, string(k)+"=") {
					delete(want, old)
				}
			}
			want[string(k)+"="+v] = true
			tr.add(framed(kv{string(k), v}))
		}
		wanted := slices.SortedFunc(maps.Keys(want), func(a, b string) int {
			return strings.Compare(a[:len(a)-2], b[:len(b)-2])
		})
		if got := each(tr); !slices.Equal(got, wanted) {
			t.Fatalf("sorted as %q, want %q", got, wanted)
		}
	}
}

// TestTail_MetersUnsorted checks that a meter is found, or found missing, while no key is sorted: commits wait while
// keys are.
func TestTail_MetersUnsorted(t *testing.T) {
	tl := &tail{memtables: []*memtable{newMemtable()}}
	tl.add(1, framed(kv{"ha", "1"}, kv{"m1", "2"}))
	tl.add(2, framed(kv{"hb", "3"}, kv{"m1", "4"}))
	for k, want := range map[string]string{"m1": "4", "m2": ""} {
		if v, found := tl.get([]byte(k)); v != want || found != (want != "") {
			t.Errorf("get(%s) = %q, %v, want %q", k, v, found, want)
		}
	}
	if last := tl.memtables[0]; last.sorted != 0 {
		t.Errorf("the keys of %d frames are sorted, want none", last.sorted)
	}
}

// TestTail_OneKindSorted checks that the look-up of a key sorts no key of another kind, and that a reader of all
// keys finds every key afterwards.
func TestTail_OneKindSorted(t *testing.T) {
	tl := &tail{memtables: []*memtable{newMemtable()}}
	tl.add(1, framed(kv{"ha", "1"}, kv{"nb", "2"}, kv{"m1", "3"}))
	tl.freeze()
	tl.add(2, framed(kv{"hb", "4"}, kv{"na", "5"}, kv{"nb", "6"}))
	for k, want := range map[string]string{"na": "5", "nb": "6", "nc": ""} {
		if v, found := tl.get([]byte(k)); v != want || found != (want != "") {
			t.Errorf("get(%s) = %q, %v, want %q", k, v, found, want)
		}
	}
	for i, m := range tl.memtables {
		if read := m.others['h'].read; read != 0 || !m.behind() {
			t.Errorf("memtable %d: %d keys of rows are sorted, want none", i, read)
		}
	}
	var all []string
	for _, m := range tl.snapshot(nil) {
		for k, v := range m.keys.Ascend(btreemap.Min[string](), btreemap.Max[string]()) {
			all = append(all, k+"="+v)
		}
	}
	if want := []string{"hb=4", "na=5", "nb=6", "ha=1", "m1=3", "nb=2"}; !slices.Equal(all, want) {
		t.Errorf("all keys are %q, want %q", all, want)
	}
}

// BenchmarkTail_NoMeter measures the look-up of a meter that is not there, after a commit of 64 rows.
func BenchmarkTail_NoMeter(b *testing.B) {
	tl := &tail{memtables: []*memtable{newMemtable()}}
	var id [16]byte
	frame := uint64(0)
	for b.Loop() {
		b.StopTimer()
		var rows []kv
		for range 64 {
			for i := range id {
				id[i] = byte(rand.Uint32())
			}
			rows = append(rows, kv{"h" + string(id[:]), "at"}, kv{"d" + string(id[:]), ""})
		}
		frame++
		if frame%1000 == 0 {
			tl.memtables[0] = newMemtable()
		}
		tl.add(frame, framed(append(rows, kv{"mold", "1"})...))
		b.StartTimer()
		if _, found := tl.get([]byte("mnew")); found {
			b.Fatal("a meter that nobody added is there")
		}
	}
}
