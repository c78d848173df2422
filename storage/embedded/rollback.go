package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/segment"
)

// inspection describes a directory before anything in it is changed. tip is the end of the store,
// and noted is the recorded tip.
type inspection struct {
	tip, noted tip
	// exists reports whether there is a store.
	exists bool
	// stale describes counts that Pebble lacks although the segments have their rows. If stale is
	// not empty, they are made again.
	stale string
	// derived is the last write of derived values. derivedWhole says that no such write is missing.
	derived      uint64
	derivedWhole bool
	// reasons say why the directory may have lost durable writes.
	reasons []string
}

func (i *inspection) addReason(format string, args ...any) {
	i.reasons = append(i.reasons, fmt.Sprintf(format, args...))
}

var (
	// errRolledBack says that durable writes are missing.
	errRolledBack = errors.New("the store has lost what was durable")
	// errLost says that the directory has files of a store but no rows. --accept-rollback has no
	// effect then, because opening the store would remove the files.
	errLost = errors.New("files of a store are there, and nothing names them any more: restore the data directory " +
		"from a backup, " +
		"or move the store's directory away and start with --accept-rollback 0 to begin anew")
)

// inspect reads the store in dir without changing it and compares it with the recorded tip. It must
// not open the store for writing, because that would remove the files that a damaged manifest does
// not name.
func inspect(dir string, o Options, lock *pebble.Lock) (i inspection, err error) {
	defer readPanic(&err)
	noted, notedErr := readTip(dir, o.FS)
	i.noted = noted
	if notedErr != nil && !errors.Is(notedErr, errNoTip) && !errors.Is(notedErr, errDamagedTip) {
		return i, notedErr
	}
	if err := i.read(dir, o, lock, noted); errors.Is(err, errFormat) {
		return i, err
	} else if err != nil {
		if !errors.Is(err, errLost) {
			err = fmt.Errorf("%w: if the store is damaged, restore the data directory from a backup", err)
		}
		return i, fmt.Errorf("%w (%s notes head %d and change %d)", err, tipName(dir), noted.Head, noted.Change)
	}
	if errors.Is(notedErr, errDamagedTip) || errors.Is(notedErr, errNoTip) && i.exists {
		i.addReason("%s, which notes how far the store has come, %v", tipName(dir), notedErr)
	}
	i.compareTip(dir, noted)
	return i, nil
}

// compareTip compares the ends of the store with the recorded tip.
func (i *inspection) compareTip(dir string, noted tip) {
	switch {
	case i.tip.Head < noted.Head:
		i.addReason("it ends at head %d, and %s notes head %d", i.tip.Head, tipName(dir), noted.Head)
	case i.tip.Frame < noted.Frame:
		i.addReason("it ends at frame %d, and %s notes frame %d", i.tip.Frame, tipName(dir), noted.Frame)
	}
	if i.tip.Change < noted.Change {
		i.addReason("its documents end at change %d, and %s notes change %d", i.tip.Change, tipName(dir), noted.Change)
	}
}

// read opens the store read-only.
func (i *inspection) read(dir string, o Options, lock *pebble.Lock, noted tip) (err error) {
	s, err := openReadOnly(dir, o.FS, lock)
	if errors.Is(err, errNoStore) {
		return i.empty(dir, o)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			err = s.health.Stopped()
		}
		err = errors.Join(err, s.closeFiles())
	}()
	i.exists = true
	return i.compare(s, noted)
}

// readOnlyCache is enough for reading each document once, in key order.
const readOnlyCache = 16 << 20

// errNoStore says that a directory has no store of writ's.
var errNoStore = errors.New("there is no store")

// openReadOnly opens a store read-only. Its error is errNoStore, errFormat or a failure to read.
// The caller closes the files of the store.
func openReadOnly(dir string, filesystem vfs.FS, lock *pebble.Lock) (*Store, error) {
	h := &health{log: slog.New(slog.DiscardHandler), dir: dir, fs: filesystem, troubles: make(map[trouble]error)}
	options := pebbleOptions(filesystem, h, lock)
	options.ReadOnly = true
	options.CacheSize = readOnlyCache
	db, err := pebble.Open(dir, options)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil, errNoStore
	}
	if err != nil {
		return nil, err
	}
	s := &Store{health: h, options: options, db: db, state: db}
	v, err := s.get(formatKey)
	if errors.Is(err, storage.ErrNotFound) {
		err = errNoStore
	} else if err == nil {
		err = checkFormat(v)
	}
	if err == nil {
		err = s.openKept()
	}
	if err == nil {
		err = s.openLog(filesystem, segmentSize)
	}
	if err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// empty inspects a directory without a row of writ's. It returns errLost if the directory has
// tables or segments, because a new store has a row before it has tables or segments.
func (i *inspection) empty(dir string, o Options) error {
	names, err := o.FS.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if filepath.Ext(name) == ".sst" || segment.IsFile(name) {
			return errLost
		}
	}
	return nil
}

// compare finds where both streams end, and whether writes are missing in them.
func (i *inspection) compare(s *Store, noted tip) error {
	head, err := s.lastHead()
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("the last head: %w", err)
	}
	if err == nil {
		i.tip.Head, i.tip.Hash = head.Seq, head.Hash()
	}
	if i.tip.Frame = s.log.Last(); i.tip.Frame < s.kept {
		i.addReason("its segments end at frame %d, and frame %d is known", i.tip.Frame, s.kept)
	}
	for _, of := range []stream{headStream, changeStream} {
		if err := i.compareStream(s, of); err != nil {
			return err
		}
	}
	if i.derived, i.derivedWhole, err = s.derivedWrites(); err != nil {
		return err
	}
	if i.tip.Head >= noted.Head && noted.Head > 0 {
		return i.compareHead(s, noted)
	}
	return nil
}

// compareHead compares the recorded head with the stored one.
func (i *inspection) compareHead(s *Store, noted tip) error {
	switch f, err := s.findHead(noted.Head); {
	case errors.Is(err, storage.ErrNotFound) || err == nil && f.head.Seq != noted.Head:
		i.addReason("head %d, which was noted, is missing", noted.Head)
	case err != nil:
		return fmt.Errorf("head %d: %w", noted.Head, err)
	case f.head.Hash() != noted.Hash:
		i.addReason("its head %d is not the one that was noted", noted.Head)
	}
	return nil
}

// compareStream looks for missing writes in a stream.
func (i *inspection) compareStream(s *Store, of stream) error {
	numbers, err := s.marks(of)
	if err != nil {
		return err
	}
	name, last := "frame", s.kept
	if of == changeStream {
		if len(numbers) > 0 {
			i.tip.Change = numbers[len(numbers)-1]
		}
		name, last = "change", i.tip.Change
	}
	broken := ""
	switch n := len(numbers); {
	case n == 0 || numbers[n-1] != last:
		broken = fmt.Sprintf("its last %s is %d, and its writes do not end there", name, last)
	case n > 1:
		broken = fmt.Sprintf("it ends at %s %d, and what followed %s %d is missing", name, last, name, numbers[n-2])
	}
	switch {
	case broken == "":
	case of == headStream && s.log.Last() >= s.kept:
		i.stale = broken
	default:
		i.addReason("%s", broken)
	}
	return nil
}

// findHead returns the frame of the first head whose sequence is not less than seq, or storage.ErrNotFound.
func (s *Store) findHead(seq uint64) (found *frame, err error) {
	// Each frame has at most one head. Where no frame is an import, it has that of its number.
	for low, high, middle := uint64(1), s.log.Last(), seq; low <= high; middle = low + (high-low)/2 {
		f, err := s.headed(min(max(middle, low), high))
		switch {
		case errors.Is(err, storage.ErrNotFound) || err == nil && f.head.Seq < seq:
			low = min(max(middle, low), high) + 1
		case err != nil:
			return nil, err
		default:
			found, high = f, f.number-1
			if f.head.Seq == seq {
				return f, nil
			}
		}
	}
	if found == nil {
		err = storage.ErrNotFound
	}
	return found, err
}

// accept returns nil if inspect found no losses, or if o accepts them.
func (i *inspection) accept(dir string, o Options) error {
	if len(i.reasons) == 0 {
		if o.AcceptRollback != nil {
			o.Log.Warn("--accept-rollback is not needed: the store has lost nothing; remove the flag", "dir", dir,
				"head", i.tip.Head)
		}
		return nil
	}
	what := strings.Join(i.reasons, "; ")
	if o.AcceptRollback != nil && *o.AcceptRollback == i.tip.Head {
		o.Log.Error("the losses of the store are accepted, as --accept-rollback says", "dir", dir, "head",
			i.tip.Head, "lost", what)
		return nil
	}
	return fmt.Errorf("%w: %s: restore the data directory from a backup, or start with --accept-rollback %d "+
		"to go on without what is lost", errRolledBack, what, i.tip.Head)
}
