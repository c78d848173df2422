package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage/embedded/segment"
)

// history is a log whose items are hashes, with its Intents and with a model of them.
type history struct {
	fs   vfs.FS
	log  *segment.Log
	x    *Intents
	want map[uint64][]uint64 // the frames of a hash, the newest first
}

// openHistory opens the log in fs, with small segments.
func openHistory(fs vfs.FS, size int) (h *history, err error) {
	h = &history{fs: fs, want: make(map[uint64][]uint64)}
	if err := fs.MkdirAll("data", 0o700); err != nil {
		return nil, err
	}
	if root, err := fs.OpenDir("/"); err != nil {
		return nil, err
	} else if err := errors.Join(root.Sync(), root.Close()); err != nil {
		return nil, err
	}
	if h.log, err = segment.Open("data", segment.Options{FS: fs, Size: size}); err != nil {
		return nil, err
	}
	h.x = NewIntents(IntentsConfig{FS: fs, Dir: "data", Segments: h.log, Secret: [32]byte{1}, Health: new(health),
		Log: slog.New(slog.DiscardHandler), Hashes: func(f segment.Frame, add func(uint64)) error {
			for _, item := range f.Items {
				if len(item) == 8 {
					add(binary.BigEndian.Uint64(item))
				}
			}
			return nil
		}})
	if err := h.x.Load(ignore); err != nil {
		return nil, errors.Join(err, h.log.Close())
	}
	h.x.Start(func(func(uint64)) error { return nil })
	return h, h.log.Scan(context.Background(), 1, func(f segment.Frame) error { h.model(f); return nil })
}

func (h *history) model(f segment.Frame) {
	for _, item := range f.Items {
		if hash := binary.BigEndian.Uint64(item); !slices.Contains(h.want[hash], f.Number) {
			h.want[hash] = slices.Insert(h.want[hash], 0, f.Number)
		}
	}
}

// add appends a frame with some hashes.
func (h *history) add(t *testing.T, hashes ...uint64) {
	t.Helper()
	f := segment.Frame{Head: fmt.Append(nil, hashes)}
	for _, hash := range hashes {
		f.Items = append(f.Items, binary.BigEndian.AppendUint64(nil, hash))
	}
	var err error
	f.Number, err = h.log.Append(f.Head, f.Items)
	must(t, err)
	must(t, h.x.AddFrame(f))
	h.model(f)
}

// check compares the Intents with the model, for all hashes of the model and some others.
func (h *history) check(t *testing.T, what string) {
	t.Helper()
	for hash, want := range h.want {
		if h.x.Lacks(hash) {
			t.Fatalf("%s: Lacks(%x), and frames %d have it", what, hash, want)
		}
		for _, hash := range []uint64{hash, hash + 1, ^hash} {
			var got []uint64
			must(t, h.x.Find(hash, func(frame uint64) (bool, error) { got = append(got, frame); return false, nil }))
			if !slices.Equal(got, h.want[hash]) {
				t.Fatalf("%s: Find(%x) = %d, want %d", what, hash, got, h.want[hash])
			}
		}
	}
}

func (h *history) close(t *testing.T) {
	t.Helper()
	must(t, errors.Join(h.x.Close(), h.log.Close()))
}

func tables(t *testing.T, fs vfs.FS) (names []string) {
	t.Helper()
	all, err := fs.List("data")
	must(t, err)
	for _, name := range all {
		if IsTable(name) {
			names = append(names, "data/"+name)
		}
	}
	slices.Sort(names)
	return names
}

func edit(t *testing.T, fs vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	b := make([]byte, info.Size())
	_, err = f.ReadAt(b, 0)
	must(t, errors.Join(err, f.Close()))
	f, err = fs.Create(name, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(change(b))
	must(t, errors.Join(err, f.Close()))
}

// FuzzIntents compares an Intents with a map: while frames are added, after a crash, and after its tables were lost, cut
// or changed. All hashes of one input are near one another if close is set, so that they are in the wrong blocks.
func FuzzIntents(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, near bool) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewCrashableMem()
		h, err := openHistory(fs, 2000+rng.IntN(40_000))
		must(t, err)
		hash := func() uint64 {
			if near {
				return 1<<60 + uint64(rng.IntN(500))
			}
			if n := len(h.want); n > 0 && rng.IntN(8) == 0 {
				for again := range h.want {
					return again
				}
			}
			return rng.Uint64()
		}
		for range 3 {
			for range 100 + rng.IntN(200) {
				hashes := make([]uint64, rng.IntN(12))
				for i := range hashes {
					hashes[i] = hash()
				}
				h.add(t, hashes...)
			}
			h.check(t, "added")
			must(t, h.log.Sync())
			crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			again, err := openHistory(crashed, 4000)
			must(t, err)
			again.want = h.want
			again.check(t, "crashed")
			again.close(t)
			h.close(t)
			for _, name := range tables(t, fs) {
				switch rng.IntN(4) {
				case 0:
					must(t, fs.Remove(name))
				case 1:
					edit(t, fs, name, func(b []byte) []byte { return b[:rng.IntN(len(b))] })
				case 2:
					edit(t, fs, name, func(b []byte) []byte { b[rng.IntN(len(b))] ^= 1 << rng.IntN(8); return b })
				}
			}
			want := h.want
			h, err = openHistory(fs, 4000)
			must(t, err)
			h.want = want
			h.check(t, "damaged")
		}
		h.close(t)
	})
}

// TestIntents_EveryByte changes each byte of a table, and cuts the table there. Each hash must be found, and the table
// must be made again.
func TestIntents_EveryByte(t *testing.T) {
	fs := vfs.NewMem()
	h, err := openHistory(fs, 600)
	must(t, err)
	for n := range uint64(16) {
		h.add(t, n<<59|n, n<<60|n)
	}
	h.close(t)
	want, name := h.want, tables(t, fs)[0]
	var whole []byte
	edit(t, fs, name, func(b []byte) []byte { whole = slices.Clone(b); return b })
	for at := range whole {
		for what, change := range map[string]func([]byte) []byte{
			"changed": func(b []byte) []byte { b[at] ^= 0x11; return b },
			"cut":     func(b []byte) []byte { return b[:at] },
		} {
			edit(t, fs, name, change)
			h, err := openHistory(fs, 600)
			must(t, err)
			h.want = want
			h.check(t, fmt.Sprintf("byte %d %s", at, what))
			h.close(t)
			edit(t, fs, name, func(b []byte) []byte {
				if !bytes.Equal(b, whole) {
					t.Fatalf("byte %d %s: the table was not made again", at, what)
				}
				return b
			})
		}
	}
}

// TestIntents_OtherTable puts the table of another history in the place of a table. Its block sums are right, and it must
// not be used.
func TestIntents_OtherTable(t *testing.T) {
	var disks []*vfs.MemFS
	for n := range uint64(2) {
		disk := vfs.NewMem()
		h, err := openHistory(disk, 600)
		must(t, err)
		for i := range uint64(30) {
			h.add(t, 1000*n+i)
		}
		h.close(t)
		disks = append(disks, disk)
	}
	for _, name := range tables(t, disks[0]) {
		var other []byte
		edit(t, disks[1], name, func(b []byte) []byte { other = b; return b })
		edit(t, disks[0], name, func([]byte) []byte { return other })
	}
	h, err := openHistory(disks[0], 600)
	must(t, err)
	defer h.close(t)
	h.check(t, "with other tables")
}

// TestIntents_NoRoom fails each write, sync and rename of a table. The intents must stay in memory, and the tables must
// be written once there is room.
func TestIntents_NoRoom(t *testing.T) {
	for _, failing := range []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename} {
		full := false
		disk := vfs.NewMem()
		fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if full && op.Kind == failing && IsTable(op.Path) {
				return errorfs.ErrInjected
			}
			return nil
		}))
		h, err := openHistory(fs, 600)
		must(t, err)
		full = true
		for n := range uint64(40) {
			h.add(t, n, n+20)
		}
		h.x.background.Wait()
		h.check(t, "without room")
		if n := len(tables(t, disk)); n > 0 {
			t.Errorf("%v: there are %d tables", failing, n)
		}
		full = false
		h.close(t)
		if got, want := len(tables(t, disk)), len(h.log.Segments())-1; got != want {
			t.Errorf("%v: there are %d tables, want %d", failing, got, want)
		}
	}
}

// TestIntents_Check checks that Check finds a table that is whole and lacks an intent.
func TestIntents_Check(t *testing.T) {
	fs := vfs.NewMem()
	h, err := openHistory(fs, 600)
	must(t, err)
	for n := range uint64(40) {
		h.add(t, n<<58)
	}
	h.close(t)
	name := tables(t, fs)[1]
	edit(t, fs, name, func(b []byte) []byte {
		content := binary.LittleEndian.Uint64(b[len(tableMagic):])
		entries := make([]entry, 0, 10)
		for i := tableHeaderLen; i+entryLen <= len(b)-4; i += entryLen {
			entries = append(entries, entry{binary.LittleEndian.Uint64(b[i:]), binary.LittleEndian.Uint32(b[i+8:])})
		}
		return appendTable(nil, content, entries[1:])
	})
	h, err = openHistory(fs, 600)
	must(t, err)
	defer h.close(t)
	if err := h.x.Check(t.Context()); !errors.Is(err, ErrTable) {
		t.Errorf("Check = %v, want ErrTable", err)
	}
}

// TestIntents_Many adds 10,000,000 intents. It must find a part of them, lack nearly all others, and do so after it is
// opened again.
func TestIntents_Many(t *testing.T) {
	n := 50_000
	if os.Getenv("WRIT_SOAK") != "" {
		n = 10_000_000
	}
	h, err := openHistory(vfs.NewMem(), 8<<20)
	must(t, err)
	rng := rand.New(rand.NewPCG(7, 7))
	some := make(map[uint64][]uint64)
	for added := 0; added < n; added += 1000 {
		f := segment.Frame{}
		for range 1000 {
			f.Items = append(f.Items, binary.BigEndian.AppendUint64(nil, rng.Uint64()))
		}
		f.Number, err = h.log.Append(f.Head, f.Items)
		must(t, errors.Join(err, h.x.AddFrame(f)))
		some[binary.BigEndian.Uint64(f.Items[0])] = []uint64{f.Number}
	}
	for range 2 {
		h.want = some
		h.x.background.Wait()
		h.check(t, "many")
		wrong := 0
		for range 100_000 {
			if !h.x.Lacks(rng.Uint64()) {
				wrong++
			}
		}
		if wrong > 4000 {
			t.Errorf("the filter may have %d of 100,000 intents that are not there", wrong)
		}
		fs := h.fs
		h.close(t)
		if h, err = openHistory(fs, 8<<20); err != nil {
			t.Fatal(err)
		}
	}
	h.close(t)
}
