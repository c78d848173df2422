package segment

import (
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

func content(t testing.TB, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(name)
	must(t, err)
	b, err := io.ReadAll(f)
	must(t, errors.Join(err, f.Close()))
	return b
}

// with returns a copy of fs in which one file has the content b.
func with(t testing.TB, fs *vfs.MemFS, name string, b []byte) *vfs.MemFS {
	t.Helper()
	fs = fs.CrashClone(vfs.CrashCloneCfg{})
	f, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	must(t, err)
	_, err = f.Write(slices.Clone(b)) // Write may change its argument
	must(t, errors.Join(err, f.Sync(), f.Close()))
	return fs
}

// damages has ways to damage one byte, or all bytes from a position on.
var damages = map[string]func(b []byte, at int) []byte{
	"cut":          func(b []byte, at int) []byte { return b[:at] },
	"zeroed":       func(b []byte, at int) []byte { b[at] = 0; return b },
	"zeros after":  func(b []byte, at int) []byte { clear(b[at:]); return b },
	"a bit turned": func(b []byte, at int) []byte { b[at] ^= 16; return b },
	"left out":     func(b []byte, at int) []byte { return slices.Delete(b, at, at+1) },
	"reordered": func(b []byte, at int) []byte {
		if at+1 < len(b) {
			b[at], b[at+1] = b[at+1], b[at]
		}
		return b
	},
	"a block reordered": func(b []byte, at int) []byte {
		if at+16 <= len(b) {
			copy(b[at:at+16], slices.Concat(b[at+8:at+16], b[at:at+8]))
		}
		return b
	},
}

// lastSegment writes a log of at least the given number of frames. It returns the name and the
// content of the active segment. before and begin are where the last two frames begin. end is where
// the last frame ends.
func lastSegment(t testing.TB, last uint64) (fs *vfs.MemFS, name string, b []byte, before, begin, end int) {
	t.Helper()
	fs = newDisk(t)
	l := openTest(t, fs)
	for fill(t, l, last); l.active().frames < 3; last++ {
		fill(t, l, last+1)
	}
	s := l.active()
	name, before, begin, end = s.name, int(s.offsets[s.frames-2]), int(s.offsets[s.frames-1]), int(s.end)
	closeTest(t, l)
	return fs, name, content(t, fs, name), before, begin, end
}

// TestDamage_LastFrame damages the last frame, which has three items. The log must either end
// before this frame or have the whole frame. Afterwards it must accept new frames.
func TestDamage_LastFrame(t *testing.T) {
	const last = 9
	fs, name, whole, _, begin, end := lastSegment(t, last)
	for what, change := range damages {
		for at := begin; at < end; at++ {
			damaged := change(slices.Clone(whole), at)
			disk := with(t, fs, name, damaged)
			l, err := openLog(disk)
			if err != nil {
				t.Fatalf("%s at %d: Open = %v", what, at-begin, err)
			}
			left := uint64(last - 1)
			if slices.Equal(damaged, whole) {
				left = last
			}
			wantFrames(t, l, left)
			fill(t, l, left+2)
			closeTest(t, l)
			l = openTest(t, disk)
			wantFrames(t, l, left+2)
			closeTest(t, l)
		}
	}
}

// TestDamage_EarlierFrame damages a frame that was durable before a later frame was written. Open
// must find the damage.
func TestDamage_EarlierFrame(t *testing.T) {
	fs, name, whole, before, begin, _ := lastSegment(t, 9)
	for what, change := range damages {
		if what == "cut" || what == "zeros after" || what == "left out" { // these damage the later frame as well
			continue
		}
		for at := before; at < begin; at++ {
			damaged := change(slices.Clone(whole), at)
			if slices.Equal(damaged, whole) || what == "a block reordered" && at+16 > begin || what == "reordered" && at+1 == begin {
				continue
			}
			disk := with(t, fs, name, damaged)
			for _, change := range []func(*Options){func(*Options) {}, readOnly} {
				if l, err := openLog(disk, change); !errors.Is(err, ErrDamaged) {
					t.Errorf("%s at %d: Open = %v, %v, want ErrDamaged", what, at-before, l, err)
				}
			}
			if !slices.Equal(content(t, disk, name), damaged) {
				t.Errorf("%s at %d: Open changed the file", what, at-before)
			}
		}
	}
}

// TestDamage_SealedSegment damages each byte of a sealed segment. Opening or reading the log must
// return an error.
func TestDamage_SealedSegment(t *testing.T) {
	const last = 45
	fs, _, _, _, _, _ := lastSegment(t, last)
	name := fs.PathJoin("log", fileName(2))
	whole := content(t, fs, name)
	for what, change := range damages {
		for at := range whole {
			damaged := change(slices.Clone(whole), at)
			if slices.Equal(damaged, whole) {
				continue
			}
			l, err := openLog(with(t, fs, name, damaged))
			if err == nil {
				_, err = scannedOnly(t, l)
				closeTest(t, l)
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%s at %d of %d: %v, want ErrDamaged", what, at, len(whole), err)
			}
		}
	}
}

func scannedOnly(t testing.TB, l *Log) (frames []Frame, err error) {
	t.Helper()
	err = l.Scan(t.Context(), 1, func(f Frame) error { frames = append(frames, f); return nil })
	return frames, err
}

// TestDamage_LostSegment checks that Open notices a segment that is missing or replaced by another
// segment.
func TestDamage_LostSegment(t *testing.T) {
	fs, active, _, _, _, _ := lastSegment(t, 45)
	l := openTest(t, fs)
	all := l.Segments()
	closeTest(t, l)
	for _, s := range all {
		name := fs.PathJoin("log", fileName(s.Number))
		disk := fs.CrashClone(vfs.CrashCloneCfg{})
		must(t, disk.Remove(name))
		l, err := openLog(disk, readOnly)
		if name == active { // only a caller that knows the number of frames notices this
			if err != nil || l.Last() != s.First-1 {
				t.Errorf("Open without the last segment = %v", err)
			}
			continue
		}
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("Open without segment %d = %v, want ErrDamaged", s.Number, err)
		}
		other := fs.PathJoin("log", fileName(s.Number%uint64(len(all)-1)+1))
		if l, err := openLog(with(t, fs, name, content(t, fs, other)), readOnly); !errors.Is(err, ErrDamaged) {
			t.Errorf("Open with another one as segment %d = %v, %v, want ErrDamaged", s.Number, l, err)
		}
	}
}

// TestDamage_AnotherLog checks that Open does not accept a frame of another log.
func TestDamage_AnotherLog(t *testing.T) {
	fs, name, whole, _, begin, end := lastSegment(t, 9)
	_, _, other, _, _, _ := lastSegment(t, 9)
	l := openTest(t, with(t, fs, name, slices.Concat(whole[:begin], other[begin:end])))
	defer closeTest(t, l)
	wantFrames(t, l, 8)
}

// TestOpen_WipesWhatFollows loses a frame and writes a new frame in its place. The old frames after
// the lost frame must not appear again.
func TestOpen_WipesWhatFollows(t *testing.T) {
	fs := newDisk(t)
	l := openTest(t, fs)
	fill(t, l, 3)
	same := testFrame(4)
	for range 3 { // these frames are not synced
		if _, err := l.Append(same.Head, same.Items); err != nil {
			t.Fatal(err)
		}
	}
	name, at := l.active().name, l.active().offsets[3]
	closeTest(t, l)
	b := content(t, fs, name)
	b[at]++
	fs = with(t, fs, name, b)
	l = openTest(t, fs)
	fill(t, l, 4)
	closeTest(t, l)
	l = openTest(t, fs)
	defer closeTest(t, l)
	wantFrames(t, l, 4)
}

// FuzzOpen opens logs with arbitrary file contents. The log must either have a prefix of the
// appended frames, or be ErrDamaged.
func FuzzOpen(f *testing.F) {
	fs, name, whole, _, _, _ := lastSegment(f, 33)
	sealed := fs.PathJoin("log", fileName(1))
	first := content(f, fs, sealed)
	f.Add(whole, true)
	f.Add(first, false)
	f.Add(whole[:len(whole)-9], true)
	f.Add(slices.Concat(whole, whole), true)
	f.Fuzz(func(t *testing.T, b []byte, last bool) {
		file := sealed
		if last {
			file = name
		}
		l, err := openLog(with(t, fs, file, b))
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("Open = %v, want ErrDamaged", err)
			}
			return
		}
		defer closeTest(t, l)
		frames, err := scannedOnly(t, l)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatalf("Scan = %v, want ErrDamaged", err)
		}
		if !reflect.DeepEqual(want(1, uint64(len(frames))), frames) {
			t.Errorf("-appended +read\n%s", cmp.Diff(want(1, uint64(len(frames))), frames))
		}
		n := l.Last()
		if _, err := l.Append([]byte("head"), nil); err != nil {
			t.Errorf("Append = %v", err)
		}
		if f, err := l.Frame(n+1, new(Room)); err != nil || string(f.Head) != "head" {
			t.Errorf("Frame = %v, %v, want what was appended", f, err)
		}
	})
}
