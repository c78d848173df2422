package embedded

import (
	"cmp"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/storage/embedded/index"
)

// openPatience is how long the flush of Pebble's log may fail while a store opens.
const openPatience = time.Second

// openPebble opens the database. Opening flushes the log, and Pebble retries a failed flush. If the
// flush fails for openPatience, openPebble stops the store and returns the failure. Pebble then
// keeps the directory locked until the process ends.
func openPebble(dir string, o *pebble.Options, h *health) (_ *pebble.DB, err error) {
	type opened struct {
		db  *pebble.DB
		err error
	}
	done := make(chan opened, 1)
	go func() {
		db, err := pebble.Open(dir, o)
		done <- opened{db, err}
	}()
	look := time.NewTicker(openPatience / 10)
	defer look.Stop()
	for failing := time.Duration(0); failing < openPatience; {
		select {
		case r := <-done:
			if r.err != nil {
				return nil, cmp.Or(h.Stopped(), r.err)
			}
			return r.db, nil
		case <-look.C:
			if err = errors.Join(h.Stopped(), h.trouble(func(t trouble) bool { return t == flushing })); err == nil {
				failing = 0
				continue
			}
			failing += openPatience / 10
		}
	}
	h.Stop("writing out the log", err)
	go func() {
		r := <-done
		if r.db == nil {
			return
		}
		if err := r.db.Close(); err != nil {
			o.Logger.Errorf("closing what opened too late: %v", err)
		}
	}()
	return nil, err
}

// pebbleOptions returns options with filters on every level, for keys that do not exist. Writes stall once four
// memtables are full. A failing flush is noticed long before that. Pebble reserves the memory of memtables
// in the cache, so the cache is several memtables larger than the filters need. Larger memtables made commits slower,
// because they exceed the processor's caches and take most of Pebble's cache.
//
// Most keys begin with the organization. Therefore a run of level 0 overlaps the whole next level,
// and every compaction of level 0 rewrites the overlap. Such a compaction waits for eight runs rather
// than two, which writes a quarter of the bytes. The filters keep look-ups in eight runs cheap.
func pebbleOptions(filesystem vfs.FS, h *health, lock *pebble.Lock) *pebble.Options {
	o := &pebble.Options{
		FS:                          filesystem,
		Lock:                        lock,
		Merger:                      index.Merger,
		Logger:                      pebbleLogger{h},
		EventListener:               h.events(),
		FormatMajorVersion:          pebble.FormatValueSeparation,
		CacheSize:                   128 << 20,
		MemTableSize:                16 << 20,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       16, // twice the runs
		L0StopWritesThreshold:       64,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}
