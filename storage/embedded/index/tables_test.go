package index

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"writ.example/writ/storage/embedded/segment"
)

// health is a Health that a test can set to stopped.
type health struct{ err error }

func (h *health) Stopped() error       { return h.err }
func (h *health) Read(err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// history is a log whose items are names, some with a place in a list. It has its Tables and a model of them.
type history struct {
	fs   vfs.FS
	log  *segment.Log
	x    *Tables
	want map[Name][]Entry // sorted
}

// openHistory opens the log in fs, with small segments.
func openHistory(fs vfs.FS, size int) (h *history, err error) {
	h = &history{fs: fs, want: make(map[Name][]Entry)}
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
	h.x = New(Config{FS: fs, Dir: "data", Segments: h.log, Secret: [32]byte{1}, Health: new(health),
		Log: slog.New(slog.DiscardHandler), Derive: derive})
	if err := h.x.Load(ignore); err != nil {
		return nil, errors.Join(err, h.log.Close())
	}
	h.x.Start(func(func(Name)) error { return nil })
	return h, h.log.Scan(context.Background(), 1, func(f segment.Frame) error { h.model(f); return nil })
}

func derive(f segment.Frame, add func(Entry)) error {
	for i, item := range f.Items {
		e := Entry{Name: Name(binary.BigEndian.Uint64(item)), Frame: f.Number, Item: uint32(i)}
		if e.Name.class() != Keyed {
			e.At = binary.BigEndian.Uint64(item[8:])
		}
		add(e)
	}
	return nil
}

func (h *history) model(f segment.Frame) {
	_ = derive(f, func(e Entry) { // never fails
		i, _ := slices.BinarySearchFunc(h.want[e.Name], e, compare)
		h.want[e.Name] = slices.Insert(h.want[e.Name], i, e)
	})
}

// hashes are keyed names.
func hashes(all ...uint64) (entries []Entry) {
	for _, hash := range all {
		entries = append(entries, Entry{Name: Name(hash &^ 3)})
	}
	return entries
}

// add appends a frame with some entries.
func (h *history) add(t *testing.T, entries ...Entry) {
	t.Helper()
	f := segment.Frame{Head: fmt.Append(nil, entries)}
	for _, e := range entries {
		item := binary.BigEndian.AppendUint64(nil, uint64(e.Name))
		f.Items = append(f.Items, binary.BigEndian.AppendUint64(item, e.At))
	}
	var err error
	f.Number, err = h.log.Append(f.Head, f.Items)
	must(t, err)
	must(t, h.x.AddFrame(f))
	h.model(f)
}

// check compares the Tables with the model, for all names of the model and some others.
func (h *history) check(t *testing.T, what string) {
	t.Helper()
	for name, want := range h.want {
		if name.class() == Keyed && h.x.Lacks(name) {
			t.Fatalf("%s: Lacks(%x), and %v have it", what, name, want)
		}
		if name.class() == Keyed && len(h.want) > 100 && rand.IntN(20) > 0 {
			continue
		}
		for _, name := range []Name{name, name + 4, ^name} {
			for _, back := range []bool{false, true} {
				c := h.x.Cursor(name, back, 0, math.MaxUint64)
				seek := uint64(0)
				if back {
					seek = math.MaxUint64
				}
				c.Seek(seek)
				var got []Entry
				for {
					e, ok, err := c.Next()
					if must(t, err); !ok {
						break
					}
					got = append(got, e)
				}
				if back {
					slices.Reverse(got)
				}
				if !slices.Equal(got, h.want[name]) {
					t.Fatalf("%s: back %t: the entries of %x are\n%v, want\n%v", what, back, name, got, h.want[name])
				}
			}
		}
		h.checkFind(t, what, name)
	}
}

// checkFind looks for the places of a list one after another, in a random order, and from there on.
func (h *history) checkFind(t *testing.T, what string, name Name) {
	t.Helper()
	want := h.want[name]
	for _, back := range []bool{false, true} {
		c := h.x.Cursor(name, back, 0, math.MaxUint64)
		for range min(len(want), 10) {
			at := want[rand.IntN(len(want))].At + uint64(rand.IntN(2))
			same := slices.DeleteFunc(slices.Clone(want), func(e Entry) bool { return e.At != at })
			got, err := c.Find(at, nil)
			if must(t, err); !slices.Equal(got, same) {
				t.Fatalf("%s: back %t: Find(%x, %d) = %v, want %v", what, back, name, at, got, same)
			}
			c.Seek(at)
			next := slices.DeleteFunc(slices.Clone(want), func(e Entry) bool { return !back && e.At < at || back && e.At > at })
			if len(next) > 0 {
				first := next[0].At
				if back {
					first = next[len(next)-1].At
				}
				next = slices.DeleteFunc(next, func(e Entry) bool { return e.At != first })
			}
			if got, err = c.Group(nil); err != nil || !slices.Equal(got, next) {
				t.Fatalf("%s: back %t: the group at %x, %d = %v, %v, want %v", what, back, name, at, got, err, next)
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

// FuzzTables compares Tables with a map: while frames are added, after a crash, and after its tables were lost, cut
// or changed. All hashes of one input are near one another if close is set, so that they are in the wrong blocks.
func FuzzTables(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, near bool) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewCrashableMem()
		h, err := openHistory(fs, 2000+rng.IntN(20_000))
		must(t, err)
		entry := func(frame int) Entry {
			switch {
			case rng.IntN(2) == 0:
				e := Entry{Name: 1<<59 + Name(4*rng.IntN(3)) + 1 + Name(rng.IntN(3)), At: uint64(3*frame + rng.IntN(10))}
				if rng.IntN(50) == 0 {
					e.At = uint64(rng.IntN(3 * (frame + 1)))
				}
				return e
			case near:
				return hashes(1<<60 + uint64(rng.IntN(500)))[0]
			}
			if n := len(h.want); n > 0 && rng.IntN(8) == 0 {
				for again := range h.want {
					return hashes(uint64(again))[0]
				}
			}
			return hashes(rng.Uint64())[0]
		}
		frame := 0
		for range 3 {
			for range 40 + rng.IntN(80) {
				frame++
				entries := make([]Entry, rng.IntN(12))
				for i := range entries {
					entries[i] = entry(frame)
				}
				h.add(t, entries...)
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

// TestTables_Reads counts the blocks that cursors read. They must be those that docs/history-tables.md states,
// however many segments there are.
func TestTables_Reads(t *testing.T) {
	var reads atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileReadAt && IsTable(op.Path) {
			reads.Add(1)
		}
		return nil
	}))
	h, err := openHistory(fs, 600)
	must(t, err)
	list := func(n Name) Name { return 1<<40*n | Name(Rows) }
	const often, seldom, never, settled = 1, 2, 3, 4<<40 | Name(Settled)
	again, once := hashes(1 << 50)[0], hashes(1 << 51)[0]
	const frames = 400
	for n := range uint64(frames) {
		entries := []Entry{{Name: list(often), At: 10 * n}, {Name: settled, At: 10*n - min(n, 1)}}
		if n == 100 || n == 300 {
			entries = append(entries, Entry{Name: list(seldom), At: 10 * n}, again)
		}
		if n == 200 {
			entries = append(entries, once)
		}
		h.add(t, entries...)
	}
	h.close(t)
	want := h.want
	h, err = openHistory(fs, 600)
	must(t, err)
	defer h.close(t)
	h.want = want
	h.x.background.Wait() // until the filter has all lists
	segments := len(h.log.Segments())
	if segments < 60 {
		t.Fatalf("there are %d segments, want many", segments)
	}
	others := segments / 20 // of which the filter is wrong: 0.9 %, and there are few
	all := func(list Name, back bool) (n int) {
		c := h.x.Cursor(list, back, 0, math.MaxUint64)
		at := uint64(0)
		if back {
			at = math.MaxUint64
		}
		for c.Seek(at); ; n++ {
			if _, ok, err := c.Next(); !ok || err != nil {
				must(t, err)
				return n
			}
		}
	}
	newest := uint64(10 * (frames - 40)) // in the file of a table, and not in memory
	for _, test := range []struct {
		what   string
		read   func() int
		n      int // entries
		blocks int
	}{
		{"the newest of a list", func() int {
			c := h.x.Cursor(list(often), true, 0, newest)
			c.Seek(newest)
			group, err := c.Group(nil)
			must(t, err)
			return len(group)
		}, 1, 1},
		{"the oldest of a list", func() int {
			c := h.x.Cursor(list(often), false, 0, math.MaxUint64)
			c.Seek(0)
			group, err := c.Group(nil)
			must(t, err)
			return len(group)
		}, 1, 1},
		{"one by its id", func() int {
			group, err := h.x.Cursor(list(often), false, 1500, 1500).Find(1500, nil)
			must(t, err)
			return len(group)
		}, 1, 1},
		{"settlements of a page", func() (n int) {
			c := h.x.Cursor(settled, true, 0, math.MaxUint64)
			for row := range uint64(3) {
				group, err := c.Find(10*(200-row)-1, nil)
				must(t, err)
				n += len(group)
			}
			return n
		}, 3, 2},
		{"a list that few segments have", func() int { return all(list(seldom), true) }, 2, 2 + others},
		{"a list that no segment has", func() int { return all(list(never), true) }, 0, others},
		{"the newest of an intent", func() int {
			c := h.x.Cursor(again.Name, true, 0, 0)
			c.Seek(0)
			e, ok, err := c.Next()
			if must(t, err); !ok || e.Frame != 301 {
				t.Errorf("the newest entry of %x is %v", again.Name, e)
			}
			return 1
		}, 1, segments/4 + 2},
		{"all of a list", func() int { return all(list(often), false) }, frames, segments},
	} {
		reads.Store(0)
		got := test.read()
		if n := int(reads.Load()); got != test.n || n > test.blocks {
			t.Errorf("%s: %d entries of %d blocks, want %d of at most %d", test.what, got, n, test.n, test.blocks)
		}
	}
}

// TestTables_EveryByte changes each byte of a table's start and entries, and some of the zeros behind them, and cuts the
// table there. Each entry must be found, and the table must be made again.
func TestTables_EveryByte(t *testing.T) {
	fs := vfs.NewMem()
	h, err := openHistory(fs, 600)
	must(t, err)
	for n := range uint64(16) {
		h.add(t, append(hashes(n<<59|n<<4, n<<60|n<<4), Entry{Name: 5, At: n})...)
	}
	h.close(t)
	want, name := h.want, tables(t, fs)[0]
	var whole []byte
	edit(t, fs, name, func(b []byte) []byte { whole = slices.Clone(b); return b })
	used := bytes.LastIndexFunc(whole[:len(whole)-4], func(r rune) bool { return r != 0 })
	for at := range whole {
		if at > used+3 && at < len(whole)-5 && at%997 != 0 {
			continue
		}
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

// TestTables_OtherTable puts the table of another history in the place of a table. Its block sums are right, and it must
// not be used.
func TestTables_OtherTable(t *testing.T) {
	var disks []*vfs.MemFS
	for n := range uint64(2) {
		disk := vfs.NewMem()
		h, err := openHistory(disk, 600)
		must(t, err)
		for i := range uint64(30) {
			h.add(t, hashes(4000*n+4*i)...)
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

// TestTables_NoRoom fails each write, sync and rename of a table. The intents must stay in memory, and the tables must
// be written once there is room.
func TestTables_NoRoom(t *testing.T) {
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
			h.add(t, hashes(4*n, 4*n+80)...)
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

// TestTables_Check checks that Check finds a table that is whole and lacks an intent.
func TestTables_Check(t *testing.T) {
	fs := vfs.NewMem()
	h, err := openHistory(fs, 600)
	must(t, err)
	for n := range uint64(40) {
		h.add(t, hashes(n<<58)...)
	}
	h.x.background.Wait()
	name := tables(t, fs)[1]
	seg := h.log.Segments()[1]
	of, _ := h.x.ident(seg)
	edit(t, fs, name, func([]byte) []byte {
		var all []Entry
		for _, entries := range h.want {
			for _, e := range entries {
				if e.Frame > seg.First && e.Frame < seg.First+uint64(seg.Frames) { // without the first frame
					all = append(all, e)
				}
			}
		}
		slices.SortFunc(all, compare)
		return makeTable(of, seg.First, slices.Values(all))
	})
	h.close(t)
	h, err = openHistory(fs, 600)
	must(t, err)
	defer h.close(t)
	if err := h.x.Check(t.Context()); !errors.Is(err, ErrTable) {
		t.Errorf("Check = %v, want ErrTable", err)
	}
}

// TestTables_Many adds 10,000,000 intents. It must find a part of them, lack nearly all others, and do so after it is
// opened again.
func TestTables_Many(t *testing.T) {
	n := 50_000
	if os.Getenv("WRIT_SOAK") != "" {
		n = 10_000_000
	}
	h, err := openHistory(vfs.NewMem(), 8<<20)
	must(t, err)
	rng := rand.New(rand.NewPCG(7, 7))
	some := make(map[Name][]Entry)
	for added := 0; added < n; added += 1000 {
		f := segment.Frame{}
		for range 1000 {
			f.Items = append(f.Items, binary.BigEndian.AppendUint64(nil, rng.Uint64()&^3))
		}
		f.Number, err = h.log.Append(f.Head, f.Items)
		must(t, errors.Join(err, h.x.AddFrame(f)))
		name := Name(binary.BigEndian.Uint64(f.Items[0]))
		some[name] = []Entry{{Name: name, Frame: f.Number}}
	}
	for range 2 {
		h.want = some
		h.x.background.Wait()
		h.check(t, "many")
		wrong := 0
		for range 100_000 {
			if !h.x.Lacks(Name(rng.Uint64() &^ 3)) {
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
