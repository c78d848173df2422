package embedded

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ/storage"
	"writ/storage/storagetest"
)

// waitKnown waits until the filter has the stored intents.
func waitKnown(t *testing.T, s *Store) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for !s.known.ready.Load() {
		select {
		case <-ctx.Done():
			t.Fatal("the filter of intents was not filled")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestIntentFilter_HasWhatIsStored: the filter lacks no stored intent, however it came to be
// stored, before and after the store is opened again.
func TestIntentFilter_HasWhatIsStored(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	s := openTest(t, fs, nil)
	waitKnown(t, s)
	var all []*storage.Record
	for range 50 {
		r := w.Record("a")
		if !s.known.lacks(hashIntent(orgKey(kindIntent, "a").text(r.IntentID))) {
			t.Errorf("the filter may have intent %s, which is not stored", r.IntentID)
		}
		if _, err := w.Commit(t.Context(), s, r, w.Record("b")); err != nil {
			t.Fatalf("Commit = %v", err)
		}
		all = append(all, r)
	}
	removed, err := s.RemoveRecords(t.Context(), "b", all[0].DecidedAt.AddDate(1, 0, 0), storage.Expired{Records: 20})
	if removed.Records != 20 || err != nil {
		t.Fatalf("RemoveRecords = %+v, %v, want 20", removed, err)
	}
	for run := range 3 {
		n := 0
		err := s.scan(t.Context(), key{byte(kindIntent)}, key{byte(kindIntent) + 1}, func(k, _ []byte) (bool, error) {
			n++
			if s.known.lacks(hashIntent(k)) {
				t.Errorf("run %d: the filter lacks %q", run, k)
			}
			return false, nil
		})
		if n != 100 || err != nil {
			t.Errorf("run %d: there are %d intents, %v, want 100", run, n, err)
		}
		existing, err := w.Commit(t.Context(), s, w.Again(all[run]))
		if err != nil || existing[0] == nil || existing[0].DecisionID != all[run].DecisionID {
			t.Errorf("run %d: Commit of a stored intent = %v, %v, want decision %s", run, existing, err, all[run].DecisionID)
		}
		closeTest(t, s)
		s = openTest(t, fs, nil)
		if run == 0 {
			s.known.ready.Store(false) // as before it is filled
			continue
		}
		waitKnown(t, s)
	}
	closeTest(t, s)
}

// TestIntentFilter_MayBeWrong: an intent that only looks stored is decided.
func TestIntentFilter_MayBeWrong(t *testing.T) {
	w := storagetest.NewWriter()
	s := openTest(t, vfs.NewMem(), nil)
	waitKnown(t, s)
	r := w.Record("a")
	s.known.add(hashIntent(orgKey(kindIntent, "a").text(r.IntentID)))
	if existing, err := w.Commit(t.Context(), s, r); err != nil || existing[0] != nil {
		t.Errorf("Commit = %v, %v, want it to be first", existing, err)
	}
	closeTest(t, s)
}

// TestIntentTable_SameHash: of two intents with one hash the second goes to the other keys,
// and both are found and written in order.
func TestIntentTable_SameHash(t *testing.T) {
	tr := newTree()
	first, second := kv{"i first", "1"}, kv{"i second", "2"}
	for range 2 {
		if !tr.intents.add(7, first) {
			t.Error("add has no place for an intent")
		}
	}
	if tr.intents.add(7, second) {
		t.Error("add has a place for another intent of the same hash")
	}
	tr.keys.ReplaceOrInsert(second.k, second.v)
	tr.keys.ReplaceOrInsert("h", "3")
	tr.keys.ReplaceOrInsert("k", "4")
	tr.intents.add(hashIntent([]byte("i third")), kv{"i third", "5"})
	var got []string
	tr.each(nil, func(k, v string) bool {
		if found, _ := tr.get(key(k)); v != "1" && found != v {
			t.Errorf("get(%q) = %q, want %q", k, found, v)
		}
		got = append(got, k+"="+v)
		return true
	})
	if want := []string{"h=3", "i first=1", "i second=2", "i third=5", "k=4"}; !slices.Equal(got, want) {
		t.Errorf("each = %q, want %q", got, want)
	}
}

func TestIntentTable_Sorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var table intentTable
		table.place = make(map[uint64]uint32)
		prefix := strings.Repeat("p", r.IntN(12))
		want := make(map[string]bool)
		for range r.IntN(60) {
			k := []byte(prefix)
			for range r.IntN(12) {
				k = append(k, byte(r.IntN(3))) // zeros too, and many that begin alike
			}
			want[string(k)] = true
			table.add(hashIntent(k), kv{k: string(k)})
		}
		var got []string
		for _, i := range table.sorted(nil) {
			got = append(got, table.rows[i.place].k)
		}
		if wanted := slices.Sorted(maps.Keys(want)); !slices.Equal(got, wanted) {
			t.Fatalf("sorted as %q, want %q", got, wanted)
		}
	}
}
