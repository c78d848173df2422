package ledger

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"writ/storage"
)

// ids makes decision ids: UUIDv7 of RFC 9562 with its method 3, where the 12
// bits after the version go on with the time below a millisecond. Unlike
// uuid.NewV7 it takes the time from its caller. The ids of one ids strictly
// increase, unless the clock goes back by more than [storage.MaxSkew]. If the clock
// jumps ahead and back, ids must not stay in the future: later receipts would be valid
// too long and be metered in the wrong month.
type ids struct {
	// last is the time of the last id: milliseconds since 1970, and below them
	// 12 bits of 1/4096 ms.
	last atomic.Int64
}

// next returns an id and its time. The time is now, or a little later if an earlier id
// has now or a later time.
func (s *ids) next(now time.Time) (uuid.UUID, time.Time) {
	tick := s.advance(now)
	var id uuid.UUID
	rand.Read(id[8:]) // never fails: it would crash the process
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
