package ledger

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

// ids makes decision ids. They are UUIDv7 by method 3 of RFC 9562: the 12 bits after the
// version hold the fraction of the millisecond. Unlike uuid.NewV7, ids takes the time
// from its caller. Its results strictly increase, unless the clock goes back by more than
// [storage.MaxSkew]. In that case the results go back too. If they stayed in the future
// after a clock that jumped ahead, later receipts would be valid too long and decisions
// would be metered in the wrong month.
type ids struct {
	// last is the time of the last id, in units of 1/4096 ms since 1970.
	last atomic.Int64
}

// next returns an id and its time. The time is now, or a little later if an earlier id
// has now or a later time.
func (s *ids) next(now time.Time) (uuid.UUID, time.Time) {
	tick := s.advance(now)
	var id uuid.UUID
	rand.Read(id[8:]) // never returns an error: it crashes the process instead
	binary.BigEndian.PutUint64(id[:8], uint64(tick>>12)<<16|0x7000|uint64(tick&0xfff))
	id[8] = id[8]&0x3f | 0x80
	return id, time.UnixMilli(tick >> 12).UTC()
}

func (s *ids) advance(now time.Time) int64 {
	ms := now.UnixMilli()
	below := int64(now.Nanosecond()) % int64(time.Millisecond)
	want := ms<<12 | below<<12/int64(time.Millisecond)
	for {
		last := s.last.Load()
		tick := max(want, last+1)
		if last-want > int64(storage.MaxSkew/time.Millisecond)<<12 {
			tick = want
		}
		if s.last.CompareAndSwap(last, tick) {
			return tick
		}
	}
}
