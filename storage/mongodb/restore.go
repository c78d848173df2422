package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// A restore takes a database back under the handles that use it. A handle then knows of revisions and
// heads that are gone, and new ones get their numbers. So each beat compares what the database has with
// what the handle knows: the beat it wrote last, the epoch of the counter of revisions, the row of
// changes it heard last, the counter of the organization of this row, and the end of its chain. After any
// difference the handle decides nothing more.

// errRestored means that the database is not the one that this handle knew.
var errRestored = fmt.Errorf("%w: the database was restored, or a part of it was lost, while this replica used it: "+
	"stop all replicas, restore the whole database and start them again", storage.ErrUnavailable)

// errSetBack refuses a batch. The next beat determines whether the database was restored.
var errSetBack = fmt.Errorf("%w: the chain of this replica is not as this replica left it", storage.ErrUnavailable)

func restored(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errRestored, fmt.Sprintf(format, args...))
}

// abandon makes every operation return a reason from now on, and tells the watchers that everything may
// have changed. It returns the reason. watchers.mu may be held.
func (s *Store) abandon(reason error) error {
	if s.slot.foreign.CompareAndSwap(nil, &reason) {
		s.end(reason)
		s.done.Go(func() {
			s.watchers.mu.Lock()
			defer s.watchers.mu.Unlock()
			s.watchers.Tell(storage.Change{Kind: storage.EverythingChanged})
		})
	}
	return *s.slot.foreign.Load()
}

// end calls lost once. This handle commits nothing more.
func (s *Store) end(reason error) {
	s.over.Do(func() {
		s.health.report(beating, reason)
		if s.lost != nil {
			s.lost(reason)
		}
	})
}

// beginHearing reads the state of the database from which on this handle hears changes.
func (s *Store) beginHearing(ctx context.Context) error {
	var counter counterRow
	err := s.latest(ctx, "", "reading the counter of revisions", func(ctx context.Context) error {
		return s.db.Collection(countersName).FindOne(ctx, doc("_id", epochCounter)).Decode(&counter)
	})
	if err != nil {
		return err
	}
	at, err := s.now(ctx)
	if err != nil {
		return err
	}
	s.slot.epoch = counter.Epoch
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	s.watchers.at = at
	s.slot.last.Store(&heardRow{at: at})
	return nil
}

// renew writes a beat, if the slot has the beat that this handle wrote last, and compares the database
// with this handle's knowledge. The driver makes the reads follow the write, so they are never of an
// earlier state, also on a new primary.
func (s *Store) renew(ctx context.Context) error {
	l := &s.slot
	ctx, cancel := context.WithTimeout(ctx, beatPatience)
	defer cancel()
	l.renewing.Lock()
	defer l.renewing.Unlock()
	if err := s.available(); errors.Is(err, errRestored) {
		return err
	}
	last, tip, covers := l.last.Load(), s.log.stored.Load(), s.watchers.unheard.Load()
	session, err := s.client.StartSession()
	if err != nil {
		return err
	}
	defer session.EndSession(context.WithoutCancel(ctx))
	causal := mongo.NewSessionContext(ctx, session)
	beat := l.nextBeat(s.database)
	var row slotRow
	began := time.Now()
	err = s.slots().FindOneAndUpdate(causal, append(l.mine(), anyOf(slotBeat, append(l.tries, l.beat))...),
		mongo.Pipeline{set(slotUntil, until, slotBeat, beat)},
		after().SetProjection(doc(slotUntil, 1, slotBeat, 1))).Decode(&row)
	if errors.Is(err, mongo.ErrNoDocuments) {
		err = s.whoseSlot(ctx)
	} else if err == nil {
		l.confirm(&row)
		s.compareClocks(&row, began)
		err = s.compare(causal, last, tip)
	}
	if errors.Is(err, errRestored) {
		return s.abandon(err)
	}
	if err == nil {
		s.watchers.compared.Store(covers)
	}
	return err
}

// maxTries is the largest number of beats whose outcome is unknown at the same time. After them a beat is
// written again.
const maxTries = 32

// nextBeat returns the beat to write next. renewing is held.
func (l *slot) nextBeat(s *database) string {
	if len(l.tries) < maxTries {
		l.tries = append(l.tries, s.beatOf(l.holder))
	}
	return l.tries[len(l.tries)-1]
}

// confirm records that the slot has a beat of this handle. renewing is held, or the slot is not used yet.
func (l *slot) confirm(row *slotRow) {
	l.until.Store(row.Until.UnixMilli())
	l.beat, l.tries = row.Beat, nil
	if age, ok := l.ageOf(row.Beat); ok {
		l.confirmed.Store(age)
	}
}

// whoseSlot returns why the slot has no beat that this handle has written. Only the primary of a majority
// can answer it.
func (s *Store) whoseSlot(ctx context.Context) error {
	slots := s.db.Collection(replicasName, options.Collection().SetReadConcern(readconcern.Linearizable()))
	var row slotRow
	err := slots.FindOne(ctx, doc("_id", s.slot.id)).Decode(&row)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return restored("the slot of this replica is gone")
	case err != nil:
		return err
	case row.Holder != s.slot.holder:
		return errLost
	}
	return restored("the slot of this replica has another beat than the last one")
}

// seen is what a beat reads of the database. The fields are of different rows.
type seen struct {
	Counter *counterRow `bson:"counter"`
	Schema  *counterRow `bson:"-"` // the other counters
	Org     counterRow  `bson:"-"`
	Change  *changeRow  `bson:"change"`
	Head    *headRow    `bson:"head"`
}

// compare returns errRestored if the database has not the row that was heard last or not the end of the
// chain, or if its counter is smaller or another. The row may have been trimmed.
func (s *Store) compare(ctx context.Context, last *heardRow, tip *receipt.Chain) error {
	union := func(collection string, id any, as string, fields bson.D) bson.D {
		return doc("$unionWith", doc("coll", collection, "pipeline", bson.A{
			doc("$match", doc("_id", id)), doc("$project", fields), doc("$project", doc("_id", 0, as, "$$ROOT")),
		}))
	}
	stages := mongo.Pipeline{
		doc("$match", anyOf("_id", bson.A{epochCounter, schemaCounter, orderOf(last.key.Org)})),
		doc("$project", doc("_id", 0, "counter", "$$ROOT")),
		union(changesName, last.key, "change", doc(changeID, 1)),
	}
	if tip != nil && tip.Seq > 0 {
		stages = append(stages, union(headsName, headKey(tip.ID, number(tip.Seq)), "head", doc(headSigned, 1)))
	}
	cursor, err := s.db.Collection(countersName).Aggregate(ctx, stages)
	var all seen
	err = each(ctx, cursor, err, func(row *seen) (bool, error) {
		switch {
		case row.Counter == nil:
		case row.Counter.ID == schemaCounter:
			all.Schema = row.Counter
		case row.Counter.ID == orderOf(last.key.Org):
			all.Org = *row.Counter
		default:
			all.Counter = row.Counter
		}
		if row.Change != nil {
			all.Change = row.Change
		}
		if row.Head != nil {
			all.Head = row.Head
		}
		return true, nil
	})
	switch {
	case err != nil:
		return err
	case all.Schema == nil:
		return restored("the counter of the schema is gone")
	case all.Schema.Least > s.schema:
		return fmt.Errorf("%w: %w", errRestored, s.checkVersion(all.Schema))
	case all.Counter == nil:
		return restored("the counter of revisions is gone")
	case !bytes.Equal(all.Counter.Epoch, s.slot.epoch):
		return restored("the counter of revisions was made again")
	case all.Org.N < last.key.Revision:
		return restored("the last revision of organization %q is %d, and this replica has heard of %d", last.key.Org,
			all.Org.N, last.key.Revision)
	case all.Change != nil && last.id != "" && string(all.Change.ID) != last.id:
		return restored("revision %d of organization %q has another row than this replica has heard", last.key.Revision,
			last.key.Org)
	}
	switch {
	case tip == nil || tip.Seq == 0:
		return nil
	case all.Head == nil:
		return restored("head %d of this replica is gone", tip.Seq)
	}
	head, err := all.Head.head()
	if err == nil && (receipt.Chain{ID: tip.ID}).Next(head.Head) != *tip {
		err = restored("head %d of this replica is another", tip.Seq)
	}
	return err
}
