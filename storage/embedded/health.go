package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage"
)

// health tracks whether the store can commit. It logs each change.
type health struct {
	log     *slog.Logger
	show    func(step string, done, of uint64) // see Options.Progress
	dir     string
	fs      vfs.FS // the file system below failStopFS
	minFree uint64

	// final is the error that has stopped the store for good, or nil.
	final atomic.Pointer[error]
	// troubled is the number of current troubles.
	troubled atomic.Int32

	mu       sync.Mutex
	troubles map[trouble]error
	flushErr error // the error of the last flush
}

// trouble is a kind of temporary trouble.
type trouble string

const (
	lowSpace   trouble = "free space"
	flushing   trouble = "flush"
	compacting trouble = "compaction"
	// reading marks a failed read. It blocks no writes, because the read itself returns the error.
	// The next successful read ends the trouble.
	reading trouble = "read"
	// tipTrouble marks a failure to record the tip. It blocks no writes, because decisions are
	// durable without a recorded tip.
	tipTrouble trouble = "tip"
	// clock marks a clock that stands before the newest decision. It blocks no writes, because only an operator can
	// tell whether the clock is wrong now or was wrong then.
	clock trouble = "clock"
)

func (t trouble) refuses() bool { return t != reading && t != tipTrouble && t != clock }

// unready reports whether t makes the process unready.
func (t trouble) unready() bool { return t != tipTrouble }

// Stopped returns the error that has stopped the store for good, or nil.
func (h *health) Stopped() error {
	if err := h.final.Load(); err != nil {
		return *err
	}
	return nil
}

// Stop ends all use of the store, because memory may differ from the disk.
func (h *health) Stop(activity string, err error) {
	err = fmt.Errorf("%w until it is restarted: %s: %w", storage.ErrUnavailable, activity, err)
	if h.final.CompareAndSwap(nil, &err) {
		h.log.Error("storage stopped: decisions are refused until a restart", "dir", h.dir, "err", err.Error())
	}
}

// report begins trouble t if err is not nil, and ends it if err is nil. Once the store has stopped,
// report records no further troubles, because the stop causes them.
func (h *health) report(t trouble, err error) {
	if err == nil && h.troubled.Load() == 0 {
		return // nearly every read returns here
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, was := h.troubles[t]
	if was == (err != nil) || h.Stopped() != nil {
		return
	}
	if err == nil {
		delete(h.troubles, t)
		h.troubled.Add(-1)
		h.log.Info("storage trouble has passed", "dir", h.dir, "trouble", string(t))
		return
	}
	h.troubles[t] = err
	h.troubled.Add(1)
	switch t {
	case tipTrouble:
		h.log.Error(
			"how far the store has come cannot be noted: while this lasts, damage that follows a crash can go "+
				"unnoticed", "file", tipName(h.dir), "err", err.Error(),
		)
		return
	case clock:
		h.log.Error("not ready: the clock went back", "dir", h.dir, "err", err.Error())
		return
	}
	h.log.Error("storage in trouble: decisions are refused", "dir", h.dir, "trouble", string(t), "err", err.Error())
}

// Read reports the result of a read. It returns the error for the callers of the store, or nil.
func (h *health) Read(err error) error {
	h.report(reading, err)
	if err != nil {
		err = fmt.Errorf("%w: reading: %w", storage.ErrUnavailable, err)
	}
	return err
}

// writable returns the reason to refuse writes, or nil.
func (h *health) writable() error {
	if err := h.Stopped(); err != nil {
		return err
	}
	h.checkSpace()
	if h.troubled.Load() == 0 {
		return nil
	}
	if err := h.trouble(trouble.refuses); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return nil
}

// trouble joins the errors of all troubles for which filter returns true.
func (h *health) trouble(filter func(trouble) bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for t, err := range h.troubles {
		if filter(t) {
			errs = append(errs, fmt.Errorf("%s: %w", t, err))
		}
	}
	return errors.Join(errs...)
}

// checkSpace keeps a reserve of free space, so that Pebble never meets a full disk. It calls statfs
// once, which takes about a microsecond, far less than a sync. Writes resume when the free space is
// a quarter larger than the reserve.
func (h *health) checkSpace() {
	switch free, err := h.free(); {
	case err != nil:
		h.report(lowSpace, err)
	case free < h.minFree:
		h.report(lowSpace, fmt.Errorf("%d bytes are free, fewer than the reserve of %d", free, h.minFree))
	case free >= h.minFree+h.minFree/4:
		h.report(lowSpace, nil)
	}
}

// free returns the number of free bytes. If the file system does not report it, free returns the
// largest number.
func (h *health) free() (uint64, error) {
	u, err := h.fs.GetDiskUsage(h.dir)
	switch {
	case errors.Is(err, vfs.ErrUnsupported):
		return math.MaxUint64, nil
	case err != nil:
		return 0, fmt.Errorf("asking for free space: %w", err)
	}
	return u.AvailBytes, nil
}

// roomToOpen returns an error if the disk has too little free space to open the store. Pebble
// flushes its log when it opens, and on a full disk it retries the flush forever.
func (h *health) roomToOpen() error {
	free, err := h.free()
	if need := h.minFree / 2; err == nil && free < need {
		return fmt.Errorf("the disk is full: %d bytes are free, opening needs %d", free, need)
	}
	return err
}

// Space returns the free space of the file system of a directory, and the reserve below which a store refuses writes.
// If the file system does not say what is free, Space returns the largest number.
func Space(dir string) (free, reserve uint64, err error) {
	h := health{dir: dir, fs: vfs.Default}
	free, err = h.free()
	return free, defaultMinFree, err
}

// canWrite returns an error if the directory is not writable. In such a directory Pebble would
// retry the flush of its log forever.
func (h *health) canWrite() error {
	name := h.fs.PathJoin(h.dir, "writable")
	f, err := h.fs.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("the directory cannot be written to: %w", err)
	}
	return errors.Join(f.Close(), h.fs.Remove(name))
}

// events returns the listener for the results of Pebble's background jobs. Pebble retries a failed
// job.
func (h *health) events() *pebble.EventListener {
	return &pebble.EventListener{
		FlushEnd:        func(i pebble.FlushInfo) { h.flushed(i.Err) },
		CompactionEnd:   func(i pebble.CompactionInfo) { h.compacted(i.Err) },
		BackgroundError: h.backgroundError,
		DataCorruption:  h.corrupted,
	}
}

// corrupted stops the store, because a block of a table has a wrong checksum.
func (h *health) corrupted(i pebble.DataCorruptionInfo) {
	h.Stop("reading "+i.Path,
		fmt.Errorf("the file is damaged: restore the data directory from a backup: %w", i.Details))
}

func (h *health) compacted(err error) {
	if !errors.Is(err, pebble.ErrCancelledCompaction) {
		h.report(compacting, err)
	}
}

// flushed records the result of a flush. A non-nil err alone is no trouble: Pebble also returns an
// unexported error if a flush has nothing to write. Only a failed flush is also reported as a
// background error.
func (h *health) flushed(err error) {
	h.mu.Lock()
	h.flushErr = err
	h.mu.Unlock()
	if err == nil {
		h.report(flushing, nil)
	}
}

func (h *health) backgroundError(err error) {
	h.mu.Lock()
	ofFlush := h.flushErr != nil && errors.Is(err, h.flushErr)
	h.mu.Unlock()
	if ofFlush {
		h.report(flushing, err)
	}
}

// pebbleLogger forwards Pebble's messages. Pebble calls Fatalf if it cannot continue, and expects
// that Fatalf does not return. Here Fatalf does return, and failStopFS makes that safe.
type pebbleLogger struct{ health *health }

func (l pebbleLogger) Infof(format string, args ...any) {
	l.health.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.health.log.Warn("pebble: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.health.Stop("pebble", fmt.Errorf(format, args...))
}
