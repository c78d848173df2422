package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

// testSize is a segment size with room for a few frames.
const testSize = 2000

func openTest(t testing.TB, fs vfs.FS, change ...func(*Options)) *Log {
	t.Helper()
	l, err := openLog(fs, change...)
	must(t, err)
	return l
}

func openLog(fs vfs.FS, change ...func(*Options)) (*Log, error) {
	o := Options{FS: fs, Size: testSize}
	for _, f := range change {
		f(&o)
	}
	return Open("log", o)
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readOnly(o *Options) { o.ReadOnly = true }

func newDisk(t testing.TB) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	must(t, fs.MkdirAll("log", 0o700))
	must(t, errors.Join(syncDir(fs, "."), syncDir(fs, "log")))
	return fs
}

func closeTest(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// testFrame returns a frame of three items. The number determines the sizes of the items.
func testFrame(number uint64) Frame {
	item := func(n uint64) []byte { return bytes.Repeat([]byte{byte(number), byte(n)}, int(number*7+n*31)%90) }
	return Frame{Number: number, Head: fmt.Appendf(nil, "head %d", number), Items: [][]byte{item(1), item(2), item(3)}}
}

// fill appends frames up to a number.
func fill(t testing.TB, l *Log, last uint64) {
	t.Helper()
	for l.Last() < last {
		f := testFrame(l.Last() + 1)
		n, err := l.Append(f.Head, f.Items)
		if err == nil {
			err = l.Sync()
		}
		if err != nil || n != f.Number {
			t.Fatalf("Append = %d, %v, want %d", n, err, f.Number)
		}
	}
}

// want returns the frames of a range of numbers, including both bounds.
func want(from, last uint64) (frames []Frame) {
	for n := from; n <= last; n++ {
		frames = append(frames, testFrame(n))
	}
	return frames
}

// scanned returns the frames that Scan reads. Frame must return the same frames.
func scanned(t testing.TB, l *Log, from uint64) (frames []Frame, err error) {
	t.Helper()
	err = l.Scan(t.Context(), from, func(f Frame) error {
		frames = append(frames, f)
		one, err := l.Frame(f.Number, new(Room))
		if err != nil || !reflect.DeepEqual(f, one) {
			t.Errorf("Frame(%d) = %v, -Scan +Frame\n%s", f.Number, err, cmp.Diff(f, one))
		}
		return nil
	})
	return frames, err
}

func wantFrames(t testing.TB, l *Log, last uint64) {
	t.Helper()
	got, err := scanned(t, l, 1)
	if err != nil || !reflect.DeepEqual(want(1, last), got) || l.Last() != last {
		t.Errorf("Scan = %v, last %d, want %d, -want +got\n%s", err, l.Last(), last, cmp.Diff(want(1, last), got))
	}
}

// TestLog checks that all appended frames can be read. It reads them from the log that appended
// them, after the log is opened again, and read-only.
func TestLog(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		t.Run(fmt.Sprintf("prepare=%t", prepare), func(t *testing.T) {
			fs := newDisk(t)
			for last := uint64(0); last < 120; last += 17 {
				l := openTest(t, fs, func(o *Options) { o.Prepare = prepare })
				fill(t, l, last)
				wantFrames(t, l, last)
				if got, err := scanned(t, l, last/2); err != nil || last > 1 && !cmp.Equal(got, want(last/2, last)) {
					t.Errorf("Scan from %d = %d frames, %v", last/2, len(got), err)
				}
				closeTest(t, l)
				l = openTest(t, fs, readOnly)
				wantFrames(t, l, last)
				closeTest(t, l)
			}
			l := openTest(t, fs)
			defer closeTest(t, l)
			if all := l.Segments(); len(all) < 5 || all[3].First != all[2].First+uint64(all[2].Frames) || !all[3].Sealed || all[len(all)-1].Sealed {
				t.Errorf("Segments = %+v, want several, all sealed but the last", all)
			}
			for _, number := range []uint64{0, l.Last() + 1} {
				if f, err := l.Frame(number, new(Room)); !errors.Is(err, ErrDamaged) {
					t.Errorf("Frame(%d) = %v, %v, want ErrDamaged", number, f, err)
				}
			}
			enough := errors.New("enough")
			if err := l.Scan(t.Context(), 1, func(Frame) error { return enough }); !errors.Is(err, enough) {
				t.Errorf("Scan = %v, want the error of its function", err)
			}
		})
	}
}

// TestLog_LargeFrame checks that a frame larger than a segment gets its own segment.
func TestLog_LargeFrame(t *testing.T) {
	fs := newDisk(t)
	l := openTest(t, fs)
	large := [][]byte{bytes.Repeat([]byte("x"), 3*testSize)}
	for range 3 {
		if _, err := l.Append(nil, large); err != nil {
			t.Fatalf("Append = %v", err)
		}
	}
	if _, err := l.Append([]byte("h"), nil); err != nil {
		t.Fatalf("Append = %v", err)
	}
	closeTest(t, l)
	l = openTest(t, fs)
	defer closeTest(t, l)
	if f, err := l.Frame(2, new(Room)); err != nil || !cmp.Equal(f.Items, large) {
		t.Errorf("Frame = %d items, %v", len(f.Items), err)
	}
	if f, err := l.Frame(4, new(Room)); err != nil || string(f.Head) != "h" || len(f.Items) != 0 {
		t.Errorf("Frame = %v, %v, want one without items", f, err)
	}
}

// TestExample compares the bytes of a frame with the example of docs/history-format.md.
func TestExample(t *testing.T) {
	got, err := appendFrame(nil, Frame{Number: 2, Head: []byte("h"), Items: [][]byte{[]byte("ab"), nil}}, 1, 0)
	clear(got[4:8])
	if want := "wfrm\x00\x00\x00\x00\x06\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00" +
		"\x01h\x02ab\x00\x00\x00"; err != nil || string(got) != want {
		t.Errorf("appendFrame = %q, %v, want %q", got, err, want)
	}
}

// TestCrash checks that a crash at any moment loses no synced frame. If a frame is lost, all later
// frames must be lost too.
func TestCrash(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lost := 0
	for round := range 60 {
		fs := newDisk(t)
		l := openTest(t, fs)
		synced := uint64(rng.IntN(60))
		fill(t, l, synced)
		for range rng.IntN(5) { // these frames are not synced
			f := testFrame(l.Last() + 1)
			if _, err := l.Append(f.Head, f.Items); err != nil {
				t.Fatalf("Append = %v", err)
			}
		}
		crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * (round % 3), RNG: rng})
		again := openTest(t, crashed)
		last := again.Last()
		if wantFrames(t, again, last); last < synced || last > l.Last() {
			t.Errorf("%d frames are left of %d, %d of which were synced", last, l.Last(), synced)
		}
		if last < l.Last() {
			lost++
		}
		fill(t, again, last+9)
		closeTest(t, again)
		again = openTest(t, crashed)
		wantFrames(t, again, last+9)
		closeTest(t, again)
		closeTest(t, l)
	}
	if lost == 0 {
		t.Error("no frame was ever lost: the test tests nothing")
	}
}

// TestRewrite checks that Rewrite replaces items of a sealed segment. After a crash the segment
// must have either all old items or all new items.
func TestRewrite(t *testing.T) {
	fs := newDisk(t)
	l := openTest(t, fs)
	fill(t, l, 60)
	gone := []byte("x")
	f := func(f Frame) ([][]byte, error) {
		items := slices.Clone(f.Items)
		items[1] = gone
		return items, nil
	}
	must(t, errors.Join(l.Rewrite(t.Context(), 2, f), l.Rewrite(t.Context(), 2, f)))
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	closeTest(t, l)
	for _, fs := range []vfs.FS{fs, crashed} {
		l := openTest(t, fs)
		second := l.Segments()[1]
		frames, err := scanned(t, l, 1)
		if err != nil || len(frames) != 60 {
			t.Errorf("Scan = %d frames, %v, want 60", len(frames), err)
		}
		for _, f := range frames {
			want := testFrame(f.Number)
			if f.Number >= second.First && f.Number < second.First+uint64(second.Frames) {
				want.Items[1] = gone
			}
			if diff := cmp.Diff(want, f); diff != "" {
				t.Errorf("frame %d: -want +got\n%s", f.Number, diff)
			}
		}
		if last := l.Segments(); second.Bytes >= last[2].Bytes {
			t.Errorf("the segment takes %d bytes, and the next %d", second.Bytes, last[2].Bytes)
		}
		fill(t, l, 70)
		closeTest(t, l)
	}
	l = openTest(t, fs)
	defer closeTest(t, l)
	few := func(Frame) ([][]byte, error) { return nil, nil }
	if err := l.Rewrite(t.Context(), 1, few); err == nil {
		t.Error("Rewrite with fewer items = nil, want an error")
	}
	for _, number := range []uint64{0, uint64(len(l.Segments())), 99} {
		if err := l.Rewrite(t.Context(), number, f); err == nil {
			t.Errorf("Rewrite of segment %d, which is not sealed, = nil, want an error", number)
		}
	}
}

// TestConcurrent is for the race detector. It reads while frames are appended and segments are
// sealed and rewritten.
func TestConcurrent(t *testing.T) {
	fs := newDisk(t)
	l := openTest(t, fs, func(o *Options) { o.Prepare = true })
	fill(t, l, 20)
	done := make(chan error, 3)
	go func() {
		for range 60 {
			if _, err := scannedOnly(t, l); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	go func() {
		for n := range uint64(500) {
			if f, err := l.Frame(n%l.Last()+1, new(Room)); err != nil || !reflect.DeepEqual(f, testFrame(f.Number)) {
				done <- fmt.Errorf("Frame = %v, %w", f, err)
				return
			}
		}
		done <- nil
	}()
	go func() {
		for range 30 {
			if err := l.Rewrite(t.Context(), 1, func(f Frame) ([][]byte, error) { return f.Items, nil }); err != nil {
				done <- err
				return
			}
		}
		done <- l.Sync()
	}()
	fill(t, l, 300)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wantFrames(t, l, 300)
	closeTest(t, l)
}
