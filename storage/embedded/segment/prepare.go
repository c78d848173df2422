package segment

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/internal/pace"
)

// category is the vfs's category for the log's writes.
const category = vfs.WriteCategoryUnspecified

// spareName is the name of the prepared file that becomes the next segment.
const spareName = "segment.new"

// spare is a file that is being filled with zeros.
type spare struct {
	name  string
	hurry chan struct{} // closed when somebody waits for the file
	done  chan struct{} // closed when file or err is set
	file  vfs.File
	err   error
}

// prepare begins to make the next segment in the background.
func (l *Log) prepare() {
	if !l.o.Prepare || l.spare != nil {
		return
	}
	s := &spare{name: l.o.FS.PathJoin(l.dir, spareName), hurry: make(chan struct{}), done: make(chan struct{})}
	l.spare = s
	go func() {
		defer close(s.done)
		s.file, s.err = zeroFile(l.o.FS, s.name, l.o.Size, s.hurry)
	}()
}

// zeroFile makes a file with the given number of zeros. It takes at most a fifth of a processor, until hurry is closed.
func zeroFile(fs vfs.FS, name string, size int, hurry <-chan struct{}) (vfs.File, error) {
	f, err := openNew(fs, name)
	if err != nil {
		return nil, err
	}
	var p pace.Pace
	const slice = 16 * len(zeros)
	for at := 0; at < size && err == nil; at += slice {
		p.Rest(4, hurry)
		err = writeZeros(f, int64(at), min(slice, size-at))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), fs.Remove(name))
	}
	return f, nil
}

// zeros are written 16 KiB at a time. Linux caches a write in pages that are up to as large as the
// write. A later commit into such a page counts as a write of the whole page. With zeros of one
// MiB, each commit would count as one MiB. Linux would then throttle commits on a busy disk.
var zeros [16 << 10]byte

func writeZeros(f vfs.File, from int64, n int) (err error) {
	for at := 0; at < n && err == nil; at += len(zeros) {
		_, err = f.WriteAt(zeros[:min(len(zeros), n-at)], from+int64(at))
	}
	return err
}

// openNew creates an empty file for reads and writes at offsets. It replaces an existing file.
func openNew(fs vfs.FS, name string) (vfs.File, error) {
	if f, err := fs.Create(name, category); err != nil {
		return nil, err
	} else if err := f.Close(); err != nil {
		return nil, err
	}
	return fs.OpenReadWrite(name, category)
}

// ready reports whether the file of s is finished.
func (s *spare) ready() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.done:
		return s.file != nil
	default:
		return false
	}
}

// wait waits until the file of s is finished.
func (s *spare) wait() {
	close(s.hurry)
	<-s.done
}

// discard waits until the file of s is finished, and removes the file.
func (s *spare) discard(fs vfs.FS) error {
	s.wait()
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), fs.Remove(s.name))
}

// newFile returns a new durable file that begins with header. It uses the spare file if there is
// one, otherwise an empty file. If the spare file could not be made, for example on a full disk,
// newFile continues: the frame may still fit.
func (l *Log) newFile(name string, header []byte) (f vfs.File, err error) {
	from, spare := name, l.spare
	if l.spare = nil; spare != nil {
		spare.wait()
	}
	if spare != nil && spare.file != nil {
		f, from = spare.file, spare.name
	} else if f, err = openNew(l.o.FS, name); err != nil {
		return nil, err
	}
	return f, l.put(f, header, from, name)
}

// put writes content at the start of the file f, makes f durable and renames it to name. It closes
// f if it fails.
func (l *Log) put(f vfs.File, content []byte, from, name string) error {
	_, err := f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	if err == nil && from != name {
		err = l.o.FS.Rename(from, name)
	}
	if err == nil {
		err = syncDir(l.o.FS, l.dir)
	}
	if err != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
