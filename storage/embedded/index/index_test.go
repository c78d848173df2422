package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
)

// health is a Health that a test can set to stopped.
type health struct{ err error }

func (h *health) Stopped() error           { return h.err }
func (h *health) Stop(_ string, err error) { h.err = err }
func (h *health) Read(err error) error     { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens an index in a directory of fs. It is closed with the test.
func open(t *testing.T, fs vfs.FS, h *health) *Index {
	t.Helper()
	o := &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatValueSeparation}
	db, err := pebble.Open("data", o)
	must(t, err)
	x, err := New(Config{
		DB: db, Dir: "data", Options: o, Health: h, Log: slog.New(slog.DiscardHandler), Sync: h.Stopped, Indexed: []byte("I"),
		Mark: func(frame uint64) []byte { return binary.BigEndian.AppendUint64([]byte("z"), frame) },
	})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return x
}

// keys returns the keys and values that scan visits.
func keys(t *testing.T, scan func(f Visit) error) (all []string) {
	t.Helper()
	must(t, scan(func(k, v []byte) (bool, error) {
		all = append(all, fmt.Sprintf("%s=%s", k, v))
		return false, nil
	}))
	return all
}

// TestIndex checks the promises of an index in three states: all keys in memory, some keys in
// Pebble, and all keys in Pebble.
func TestIndex(t *testing.T) {
	fs, h := vfs.NewMem(), new(health)
	x := open(t, fs, h)
	x.Start()
	check := func(want ...string) {
		t.Helper()
		ctx, lower, upper := t.Context(), []byte("h"), []byte("i")
		got := keys(t, func(f Visit) error { return x.Scan(ctx, lower, upper, f) })
		back := keys(t, func(f Visit) error { return x.ScanBack(ctx, lower, upper, f) })
		if slices.Reverse(back); !slices.Equal(got, want) || !slices.Equal(back, want) {
			t.Errorf("Scan = %q, ScanBack reversed = %q, want %q", got, back, want)
		}
		for k, want := range map[string]string{"ha": "2", "hb": "1", "m": "7"} {
			if v, err := x.Get([]byte(k)); err != nil || string(v) != want {
				t.Errorf("Get(%s) = %q, %v, want %s", k, v, err, want)
			}
		}
		if v, err := x.Get([]byte("hz")); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Get of no key = %q, %v", v, err)
		}
		it, err := x.Iter()
		must(t, err)
		if v, found, err := it.Seek([]byte("ha")); !found || string(v) != "2" || err != nil {
			t.Errorf("Seek(ha) = %q, %t, %v, want 2", v, found, err)
		}
		if v, found, err := it.Next([]byte("hb")); !found || string(v) != "1" || err != nil {
			t.Errorf("Next(hb) = %q, %t, %v, want 1", v, found, err)
		}
		must(t, it.Close())
	}
	x.Add(1, framed(kv{"ha", "1"}, kv{"hb", "1"}, kv{"m", "3"}))
	x.Add(2, framed(kv{"ha", "2"}, kv{"m", "7"}))
	all := []string{"ha=2", "hb=1"}
	check(all...)
	must(t, x.Flush())
	check(all...)
	many := new(Keys)
	for n := range 2 * batchedKeys {
		many.End(fmt.Appendf(many.Buf, "x%06d", n))
		many.End(many.Buf)
	}
	x.Add(3, many)
	check(all...)
	must(t, x.Close())
	if n := x.Indexed(); n != 3 {
		t.Errorf("Indexed = %d, want 3", n)
	}
	check(all...)
	if marks := keys(t, func(f Visit) error { return x.Scan(t.Context(), []byte("z"), nil, f) }); len(marks) != 1 {
		t.Errorf("there are %d marks, want that of the last frame: %q", len(marks), marks)
	}
	again, err := New(x.c)
	if err != nil || again.Indexed() != 3 {
		t.Errorf("New = %v, want the number that was written", err)
	}
}

// TestRebuild checks that Write writes the keys that were added.
func TestRebuild(t *testing.T) {
	x := open(t, vfs.NewMem(), new(health))
	r := x.Rebuild()
	must(t, r.Write())
	must(t, r.Add(framed(kv{"ha", "1"})))
	if _, err := x.Get([]byte("ha")); !r.Has([]byte("ha")) || r.Has([]byte("hb")) || !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("before Write, Get = %v", err)
	}
	must(t, r.Write())
	if v, err := x.Get([]byte("ha")); r.Has([]byte("ha")) || string(v) != "1" || err != nil {
		t.Errorf("after Write, Get = %q, %v", v, err)
	}
}

// TestStopped checks that all methods return an error once the store has stopped.
func TestStopped(t *testing.T) {
	h := &health{}
	x := open(t, vfs.NewMem(), h)
	x.Add(1, framed(kv{"ha", "1"}))
	h.err = errors.New("stopped")
	_, err := x.Get([]byte("ha"))
	_, none := x.Get([]byte("hb"))
	_, iter := x.Iter()
	for what, err := range map[string]error{"Get": err, "Get of no key": none, "Iter": iter, "Flush": x.Flush(), "Write": x.Write(x.c.DB.NewBatch())} {
		if !errors.Is(err, h.err) {
			t.Errorf("%s = %v, want %v", what, err, h.err)
		}
	}
	if err := x.Close(); err != nil || x.Indexed() != 0 {
		t.Errorf("Close = %v with frame %d indexed, want nothing written", err, x.Indexed())
	}
}
