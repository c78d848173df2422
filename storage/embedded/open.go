package embedded

import (
	"cmp"
	"errors"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// openPatience is how long the flush of the log may fail while a store opens.
const openPatience = time.Second

// openPebble opens the database. Opening flushes the log, and Pebble retries a failed
// flush. After openPatience of failures openPebble stops the store and returns the
// failure. Pebble then keeps the directory locked until the process ends.
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
				return nil, cmp.Or(h.stopped(), r.err)
			}
			return r.db, nil
		case <-look.C:
			if err = errors.Join(h.stopped(), h.trouble(func(t trouble) bool { return t == flushing })); err == nil {
				failing = 0
				continue
			}
			failing += openPatience / 10
		}
	}
	h.stop("writing out the log", err)
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
