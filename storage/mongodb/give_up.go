package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"writ.example/writ/storage"
)

// sights are the beats of other handles that this handle has seen, by slot. The clocks of the members of a
// replica set differ, and so a slot's own time of expiry does not tell whether its holder is silent. A
// handle is silent if this handle has seen no new beat of it for a lease, by its own clock.
type sights struct {
	mu    sync.Mutex
	beats map[int64]sight
}

// sight is a beat. since is the age of this handle when it has first seen it, and beats is how many beats of its own
// had succeeded then.
type sight struct {
	beat  string
	since int64
	beats uint64
}

// silent records the beat of a slot and reports whether its holder is silent. A holder that was given up is
// silent.
func (s *Store) silent(row *slotRow) bool {
	if row.Holder == "" {
		return true
	}
	s.sights.mu.Lock()
	defer s.sights.mu.Unlock()
	if s.sights.beats == nil {
		s.sights.beats = make(map[int64]sight)
	}
	seen, ok := s.sights.beats[row.ID]
	if !ok || seen.beat != row.Beat {
		s.sights.beats[row.ID] = sight{row.Beat, s.age(), s.slot.beats.Load()}
		return false
	}
	return time.Duration(s.age()-seen.since) > lease
}

// mayGiveUp reports whether this handle may give up the holder of a slot, which is silent. It may, too, if as many
// beats of its own have succeeded since the holder's last as two leases have, with failures between them. On a busy
// machine a beat fails now and then, and until a dead handle is given up its open transactions block others.
func (s *Store) mayGiveUp(row *slotRow) bool {
	s.sights.mu.Lock()
	defer s.sights.mu.Unlock()
	return s.maySettle() || s.slot.beats.Load()-s.sights.beats[row.ID].beats > uint64(2*lease/beatEvery)
}

// used selects the slots of other handles that are held or not cleaned up.
func (l *slot) used() bson.D {
	return doc("_id", doc("$ne", l.id), "$or", bson.A{doc(slotHolder, doc("$ne", "")), doc(slotDead, doc("$ne", ""))})
}

// look reads the slots of the other handles. It returns those whose holders are silent or are not cleaned up. If
// maySettle allows it, look also determines whether this handle leads.
func (s *Store) look(ctx context.Context) ([]slotRow, error) {
	began := s.slot.beaten.Load() // before the slots are read
	rows, err := find[slotRow](ctx, s.slots(), s.slot.used(), options.Find().SetProjection(doc(slotKeys, 0)))
	if err != nil {
		return nil, err
	}
	if s.maySettle() {
		s.slot.lead(rows, began)
	}
	return slices.DeleteFunc(rows, func(row slotRow) bool { return !s.silent(&row) }), nil
}

// settle gives up the handles that a beat has found silent, until ctx ends. The beats do not wait for it.
func (s *Store) settle(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case silent := <-s.slot.silent:
			bounded, cancel := context.WithTimeout(ctx, s.timeout)
			err := s.giveUpAll(bounded, silent)
			if cancel(); ctx.Err() == nil {
				s.health.report(settling, err)
			}
		}
	}
}

// giveUpSilent looks at the other handles and gives up silent ones.
func (s *Store) giveUpSilent(ctx context.Context) error {
	silent, err := s.look(ctx)
	if err != nil {
		return err
	}
	return s.giveUpAll(ctx, silent)
}

// giveUpAll gives up silent handles if mayGiveUp allows it. It also cleans up after every handle that was given up
// earlier, if that is still needed. A handle that can't be cleaned up yet does not keep others from it.
func (s *Store) giveUpAll(ctx context.Context, silent []slotRow) error {
	var errs []error
	for _, row := range silent {
		if row.Holder != "" {
			if !s.mayGiveUp(&row) {
				continue
			}
			s.health.log.Warn("another replica is silent and is given up", "slot", row.ID)
			if err := s.giveUp(ctx, &row); err != nil {
				errs = append(errs, err)
				continue
			}
			if row.Dead == row.Holder {
				s.metrics.givenUp.Inc()
			}
		}
		errs = append(errs, s.settleDead(ctx, &row))
	}
	return errors.Join(errs...)
}

// giveUp takes a slot away from its holder. It does nothing if the slot has another holder or another beat
// by now.
func (s *Store) giveUp(ctx context.Context, row *slotRow) error {
	held := doc("_id", row.ID, slotHolder, row.Holder, slotBeat, row.Beat)
	r, err := s.slots().UpdateOne(ctx, held, set(slotHolder, "", slotDead, row.Holder))
	if err == nil && r.MatchedCount > 0 {
		row.Dead = row.Holder
	}
	return err
}

// errOpen means that a transaction of a handle that was given up is still open.
var errOpen = fmt.Errorf("%w: a transaction of a replica that was given up is still open: the server ends it after "+
	"transactionLifetimeLimitSeconds, or at once if the MongoDB user of writ has the privilege killAnySession",
	storage.ErrUnavailable)

// unauthorized is the server's error code for a missing privilege.
const unauthorized = 13

// settleDead cleans up after a holder that was given up. It ends the transactions of the holder,
// which could otherwise block others for a minute. The holder may have another MongoDB user, whose
// transactions only the privilege killAnySession can end. So settleDead then makes sure that none of them
// can be committed. It counts the uncounted decisions of the holder
// and takes back its places. A later transaction of the holder fails. settleDead is idempotent.
func (s *Store) settleDead(ctx context.Context, row *slotRow) error {
	if row.Dead == "" {
		return nil
	}
	dead := doc("_id", row.ID, slotDead, row.Dead)
	if len(row.Sessions) > 0 {
		err := s.db.RunCommand(ctx, doc("killSessions", row.Sessions)).Err()
		if err != nil && !hasCode(err, unauthorized) {
			return err
		}
	}
	if err := s.fence(ctx, dead, [16]byte(row.Chain), row.Dead); err != nil {
		return err
	}
	if err := s.countChain(ctx, [16]byte(row.Chain), false); err != nil {
		return err
	}
	if err := s.freePlaces(ctx, row.Dead); err != nil {
		return err
	}
	_, err := s.slots().UpdateOne(ctx, dead,
		set(slotDead, "", slotSessions, bson.A{}))
	return err
}

// fencePatience is how long fence tries to pass an open transaction.
const fencePatience = time.Second

// fence returns once no transaction of a holder can add a head to its chain any more. It takes the holder's
// name out of the row of the chain. A transaction that has changed this row conflicts with fence, which then
// returns errOpen. A transaction that was begun before can no longer change it, and a later one does not find
// the name.
//
// held selects the slot while the holder is not cleaned up yet. Otherwise there is nothing to do: another handle
// has done it, and the chain may have a new writer.
func (s *Store) fence(ctx context.Context, held bson.D, chain [16]byte, holder string) error {
	ctx, cancel := context.WithTimeout(ctx, fencePatience)
	defer cancel()
	err := s.transaction(ctx, &s.counts, func(ctx context.Context) error {
		if err := s.slots().FindOne(ctx, held).Err(); err != nil {
			return ifAny(err)
		}
		tip, err := s.tipOf(ctx, chain)
		if err != nil {
			return err
		}
		_, err = s.heads().UpdateOne(ctx, doc("_id", writerKey(chain)),
			doc("$set", doc(headHolder, closed+holder, headLast, number(tip.Seq)),
				"$setOnInsert", doc(headSigned, []byte{}, headMeters, bson.A{})),
			options.UpdateOne().SetUpsert(true))
		return err
	})
	if hasLabel(err, transient) || mongo.IsTimeout(err) {
		return fmt.Errorf("%w: %w", errOpen, err)
	}
	return err
}

// sessionID names a session of a user to killSessions. Without the user the server would end a session of
// the caller's user, and would end nothing for another user without an error.
type sessionID struct {
	ID   bson.RawValue `bson:"id"`
	User []byte        `bson:"uid"`
}

// nameSessions returns the names of this handle's sessions.
func (s *Store) nameSessions(ctx context.Context) (named []sessionID, err error) {
	admin := s.client.Database("admin", options.Database().SetReadConcern(readconcern.Local()))
	cursor, err := admin.Aggregate(ctx, mongo.Pipeline{doc("$listLocalSessions", doc()), doc("$limit", 1)})
	if err != nil {
		return nil, fmt.Errorf("reading which user this is: %w", err)
	}
	var own []struct {
		ID sessionID `bson:"_id"`
	}
	if err := cursor.All(ctx, &own); err != nil {
		return nil, fmt.Errorf("reading which user this is: %w", err)
	}
	if len(own) == 0 {
		return nil, errors.New("the server lists no session of this user")
	}
	for _, session := range s.sessions {
		named = append(named, sessionID{session.ID().Lookup("id"), own[0].ID.User})
	}
	return named, nil
}

// checkPrivilege logs a warning if this handle can't end the transactions of another handle with another
// MongoDB user.
func (s *Store) checkPrivilege(ctx context.Context) error {
	rows, err := find[slotRow](ctx, s.slots(), s.slot.used())
	if err != nil {
		return err
	}
	for _, row := range rows {
		s.silent(&row) // it may be silent from now on
		if len(row.Sessions) == 0 {
			continue
		}
		id := uuid.New() // of no session
		none := doc("id", bson.Binary{Subtype: bson.TypeBinaryUUID, Data: id[:]}, "uid", row.Sessions[0].User)
		if hasCode(s.db.RunCommand(ctx, doc("killSessions", bson.A{none})).Err(), unauthorized) {
			s.health.log.Warn("another replica has another MongoDB user: if it dies, kill switches can wait until the "+
				"server ends its transactions: grant this user killAnySession on the cluster", "slot", row.ID)
			return nil
		}
	}
	return nil
}

// release counts the decisions of this handle, takes back its places and frees its slot. If another
// handle has given this handle up, the slot stays unchanged. This handle must have no operation
// under way. If the outcome of the last batch is unknown, release first makes sure that the batch does not
// become stored later, when another handle may write the chain.
func (l *slot) release(ctx context.Context, s *Store) error {
	s.log.mu.Lock()
	sure := s.log.sure
	s.log.mu.Unlock()
	if !sure {
		if err := s.fence(ctx, l.mine(), l.chain, l.holder); err != nil {
			return err
		}
	}
	if err := s.countChain(ctx, l.chain, false); err != nil {
		return err
	}
	if err := s.freePlaces(ctx, l.holder); err != nil {
		return err
	}
	_, err := s.slots().UpdateOne(ctx, l.mine(), set(slotHolder, "", slotSessions, bson.A{}))
	return err
}
