package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

const (
	// lease is how long a handle keeps its slot after a beat. [Store.Barrier] gives up a handle of which no
	// beat was seen for that long. Such a handle must no longer trust its caches. Therefore lease
	// is longer than [storage.MaxAge].
	lease = storage.MaxAge + 500*time.Millisecond
	// beatEvery is how often a slot is renewed.
	beatEvery = 500 * time.Millisecond
	// beatPatience is how long a beat may take. If two consecutive beats each take less, no other handle
	// takes this one for silent between them. After a failed beat, a handle gives up no other handle for a
	// while. The others need this time to write their beats.
	beatPatience = lease / 2
)

// slot is the slot of this handle.
type slot struct {
	// The next three fields are set once.
	id     int64
	chain  [16]byte
	holder string // empty: no slot is taken

	last atomic.Pointer[heardRow] // the last row that was heard
	news chan struct{}            // signals that last is another
	// silent has the slots that a beat has found silent or not cleaned up, for settle.
	silent chan []slotRow
	// proven is the age of the handle at its newest beat that was read in the change stream.
	proven atomic.Int64
	// fresh is the last age of the handle at which the stream was not late.
	fresh atomic.Int64
	// sound is an age of the handle. All beats since this age have succeeded. beaten is the age at
	// the start of the last successful beat.
	sound, beaten atomic.Int64
	// beats counts the beats that have succeeded.
	beats atomic.Uint64
	// until is the earliest time at which the slot expires, in milliseconds of the server's
	// clock.
	until atomic.Int64
	// ahead is how far the clock of this process was ahead of the primary's at the last beat.
	ahead atomic.Int64
	// led is the age at the start of the last beat after which this handle led, or 0. A handle
	// leads if no slot before its own has a holder.
	led atomic.Int64

	renewing sync.Mutex // held while the slot is renewed
	// beat is the last beat whose write was confirmed. tries are the beats after it, of which any may
	// have been written.
	beat  string
	tries []string
	// confirmed is the age of the handle in beat.
	confirmed atomic.Int64
	epoch     []byte // the epoch of the database, set once
	// foreign is the reason why the database is no more the one that this handle knew.
	foreign atomic.Pointer[error]
}

// until is an expression for the time at which a slot expires if it is renewed now.
var until = later(lease.Milliseconds())

// beatOf returns the text of a beat of a holder, with the current age of the handle.
func (s *database) beatOf(holder string) string {
	return holder + "/" + strconv.FormatInt(s.age(), 10)
}

// ageOf returns the age in a beat of this handle.
func (l *slot) ageOf(beat string) (age int64, ok bool) {
	holder, text, _ := strings.Cut(beat, "/")
	age, err := strconv.ParseInt(text, 10, 64)
	return age, err == nil && holder == l.holder
}

// age returns the age of the handle in nanoseconds.
func (s *database) age() int64 { return int64(time.Since(s.began)) }

// ago returns the time since the handle had an age.
func (s *database) ago(age *atomic.Int64) time.Duration { return time.Duration(s.age() - age.Load()) }

func (s *database) slots() *mongo.Collection { return s.db.Collection(replicasName) }

// take takes a free slot. If no slot is free, it adds one and takes it.
func (l *slot) take(ctx context.Context, s *Store) error {
	holder := uuid.NewString()
	sessions, err := s.nameSessions(ctx)
	if err != nil {
		return err
	}
	for {
		var row slotRow
		taken := doc(slotHolder, holder, slotUntil, until, slotBeat, s.beatOf(holder), slotTold, never,
			slotLast, "$$REMOVE", slotSessions, sessions)
		err := s.slots().FindOneAndUpdate(ctx, doc(slotHolder, "", slotDead, ""), mongo.Pipeline{doc("$set", taken)},
			after().SetSort(doc("_id", 1))).Decode(&row)
		if errors.Is(err, mongo.ErrNoDocuments) {
			if err := s.addSlot(ctx); err != nil {
				return err
			}
			continue
		}
		if err == nil {
			l.id, l.holder = row.ID, holder
			copy(l.chain[:], row.Chain)
			l.confirm(&row)
			l.sound.Store(s.age())
			l.beaten.Store(s.age())
			l.fresh.Store(s.age())
		}
		return err
	}
}

func (s *Store) addSlot(ctx context.Context) error {
	var last slotRow
	err := s.slots().FindOne(ctx, doc(), options.FindOne().SetSort(doc("_id", -1))).Decode(&last)
	if err := ifAny(err); err != nil {
		return err
	}
	chain := uuid.New()
	_, err = s.slots().InsertOne(ctx,
		slotRow{ID: last.ID + 1, Chain: chain[:], Until: time.Unix(0, 0), Told: never, Sessions: []sessionID{}})
	return notNew(err)
}

// writerSeq is the sequence in the _id of the row that names the writer of a chain. Heads begin at 1.
const writerSeq = -1

// closed begins the name in this row after a holder was given up. The name of the holder follows.
const closed = "-"

func writerKey(chain [16]byte) headID { return headKey(chain, writerSeq) }

// takeChain writes the name of this handle into the row of its chain, and reads the end of the chain. If the
// handle was given up since it took its slot, the row has changed and takeChain returns errLost: after the row
// was read, a beat proves that the handle still had its slot. After the beat, giving up changes the row.
func (l *slot) takeChain(ctx context.Context, s *Store) error {
	var tip receipt.Chain
	var row headRow
	key := doc("_id", writerKey(l.chain))
	err := s.latest(ctx, "", "reading the chain", func(ctx context.Context) (err error) {
		if err = s.heads().FindOne(ctx, key).Decode(&row); ifAny(err) != nil {
			return err
		}
		tip, err = s.tipOf(ctx, l.chain)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.renew(ctx); err != nil {
		return err
	}
	if row.Holder == "" {
		_, err = s.heads().InsertOne(ctx, append(key, doc(headSigned, []byte{}, headHolder, l.holder, headMeters,
			bson.A{}, headLast, number(tip.Seq))...))
	} else {
		var r *mongo.UpdateResult
		r, err = s.heads().UpdateOne(ctx, append(key, doc(headHolder, row.Holder)...),
			set(headHolder, l.holder, headLast, number(tip.Seq)))
		if err == nil && r.MatchedCount == 0 {
			err = errLost
		}
	}
	if mongo.IsDuplicateKeyError(err) {
		err = errLost
	}
	if err == nil {
		s.log.tip, s.log.sure = tip, true
		s.log.stored.Store(&tip)
	}
	return err
}

// freeFor is how long a slot stays without a holder. A handle that is opened in this time continues its chain.
const freeFor = 24 * time.Hour

// removeSlots removes the slots that had no holder for freeFor. Their chains stay, and [database.chains] finds
// them by the counters of their counted heads, which also a chain without heads gets.
func (s *Store) removeSlots(ctx context.Context) error {
	free := doc(slotHolder, "", slotDead, "", slotUntil, doc("$lt", time.Now().Add(-freeFor)))
	rows, err := find[slotRow](ctx, s.slots(), free)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if len(row.Chain) != len(s.slot.chain) {
			return fmt.Errorf("%w: slot %d has a chain of %d bytes", errCorrupt, row.ID, len(row.Chain))
		}
		chain := [16]byte(row.Chain)
		err := errors.Join(s.countChain(ctx, chain, true), s.makeCounter(ctx, countedKey(chain), counterN, int64(0)))
		if err != nil {
			return err
		}
		if _, err := s.slots().DeleteOne(ctx, append(doc("_id", row.ID, "chain", row.Chain), free...)); err != nil {
			return err
		}
	}
	return nil
}

// errLost means that this handle was given up and commits nothing more. Another handle may already
// write its chain.
var errLost = fmt.Errorf("%w: %w: this replica was silent for too long and was given up: start it again",
	storage.ErrUnavailable, storage.ErrConflict)

// mine selects the slot if this handle still holds it.
func (l *slot) mine() bson.D {
	return doc("_id", l.id, slotHolder, l.holder)
}

// maySettle reports whether this handle's own beats have
// succeeded for longer than a lease. If its own beats failed, the replica set was unavailable. Then
// the other handles need time to renew their slots.
func (s *Store) maySettle() bool { return s.ago(&s.slot.sound) > lease }

// Leads implements storage.Documents. The holder of the first slot leads after a wait. Its beats
// must first succeed until a previous leader must have stopped leading.
func (s *Store) Leads() bool { return s.slot.led.Load() > 0 && s.ago(&s.slot.led) <= storage.MaxAge }

// lead determines whether this handle leads, from the slots of others that were read after a beat. began is the
// age at the start of this beat.
func (l *slot) lead(others []slotRow, began int64) {
	if slices.ContainsFunc(others, func(row slotRow) bool { return row.ID < l.id && row.Holder != "" }) {
		began = 0
	}
	l.led.Store(began)
}

// beatOnce renews the slot, looks at the other handles and gives back owed places.
func (s *Store) beatOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	began := s.age()
	if err := s.renew(ctx); err != nil {
		s.slot.sound.Store(s.age())
		return err
	}
	s.slot.beaten.Store(began)
	s.slot.beats.Add(1)
	s.health.report(passing, s.checkStream())
	silent, unread := s.look(ctx)
	if unread == nil {
		select {
		case s.slot.silent <- silent:
		default: // settle is at work
		}
	}
	return errors.Join(unread, s.repay(ctx))
}

// untilBeat waits for the next multiple of beatEvery on the clock. It returns false if ctx ends. Handles whose
// clocks agree write their beats together: then the members replicate one batch, and each stream wakes once.
func untilBeat(ctx context.Context) bool {
	now := time.Now()
	t := time.NewTimer(now.Truncate(beatEvery).Add(beatEvery).Sub(now))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// beat calls beatOnce regularly until ctx ends or this handle was given up.
func (s *Store) beat(ctx context.Context) {
	for untilBeat(ctx) {
		if s.slot.foreign.Load() != nil {
			return
		}
		err := s.beatOnce(ctx)
		if ctx.Err() == nil {
			s.health.report(beating, err)
		}
		if errors.Is(err, errLost) || errors.Is(err, errRestored) {
			s.end(err)
			return
		}
	}
}
