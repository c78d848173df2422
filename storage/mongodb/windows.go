package mongodb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/google/uuid"

	"writ/storage"
)

// windowRow is a window. It has no holders: what is granted is counted until it is given
// back or has left the window, so nothing is to be done when a handle is lost.
type windowRow struct {
	Key   []byte    `bson:"_id"` // text(org) text(counter) text(of)
	Begun string    `bson:"u"`
	Parts []partRow `bson:"p"`
	// Until is when the window is removed, by an index: all that was counted has left it.
	Until time.Time `bson:"until"`
	// Last is what was granted last, and At the part in which that was counted.
	Last int64 `bson:"last"`
	At   int64 `bson:"at"`
}

type partRow struct {
	At int64 `bson:"a"`
	N  int64 `bson:"n"`
}

// Windows implements storage.Quotas.
func (s *Store) Windows() storage.Windows { return s }

func (s *Store) windowRows() *mongo.Collection { return s.db.Collection(windowsName) }

func windowKey(w *storage.Window) []byte {
	return append(append(storage.Text(w.Org), storage.Text(w.Counter)...), storage.Text(w.Of)...)
}

func checkWindow(ctx context.Context, w *storage.Window) error {
	if w.Part < time.Millisecond || w.Parts < 1 {
		return fmt.Errorf("a window of %d parts of %v", w.Parts, w.Part)
	}
	return errors.Join(ctx.Err(), checkOrg(w.Org))
}

// keptUntil is when a window is removed that nothing is counted in after now: after twice its
// length, for handles whose clocks are behind.
func keptUntil(w *storage.Window) bson.D {
	length := 2 * (w.Parts + 1) * w.Part.Milliseconds()
	return doc("$dateAdd", doc("startDate", "$$NOW", "unit", "millisecond", "amount", length))
}

// Begin implements storage.Windows.
func (s *Store) Begin(ctx context.Context, w storage.Window, parts []storage.WindowPart) error {
	if err := errors.Join(checkWindow(ctx, &w), s.available()); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	rows := make([]partRow, len(parts))
	for i, p := range parts {
		rows[i] = partRow(p)
	}
	_, err := s.windowRows().UpdateOne(bounded, doc("_id", windowKey(&w)), mongo.Pipeline{doc("$set", doc(
		"u", orElse("$u", uuid.NewString()), "p", orElse("$p", literal(rows)), "until", orElse("$until", keptUntil(&w)),
		"last", orElse("$last", int64(0)), "at", orElse("$at", int64(0)),
	))}, options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		err = nil // another handle was faster
	}
	return failed(ctx, "keeping a window", err)
}

// countWindow is Count of what a rule counts.
func (s *Store) countWindow(ctx context.Context, w *storage.Window, ask *storage.Ask) (storage.Granted, error) {
	if err := errors.Join(checkWindow(ctx, w), s.available()); err != nil {
		return storage.Granted{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var row windowRow
	filter := doc("_id", windowKey(w))
	if ask.Begun != "" {
		filter = append(filter, bson.E{Key: "u", Value: ask.Begun})
	}
	peek := ask.Want == 0 && len(ask.Back) == 0
	var found *mongo.SingleResult
	if peek {
		found = s.windowRows().FindOne(bounded, filter)
	} else {
		found = s.windowRows().FindOneAndUpdate(bounded, filter, counts(w, ask), options.FindOneAndUpdate().SetReturnDocument(options.After))
	}
	switch err := found.Decode(&row); {
	case errors.Is(err, mongo.ErrNoDocuments):
		return storage.Granted{}, storage.ErrNotFound
	case err != nil:
		return storage.Granted{}, failed(ctx, "counting in a window", err)
	}
	granted := storage.Granted{N: row.Last, At: row.At, Begun: row.Begun}
	if peek {
		granted.N, granted.At = 0, ask.At
	}
	for _, p := range row.Parts {
		if !peek || p.At >= ask.At-w.Parts-1 {
			granted.Total += p.N
		}
	}
	return granted, nil
}

// counts gives back and grants what ask says. The clock is the server's.
func counts(w *storage.Window, ask *storage.Ask) mongo.Pipeline {
	now := doc("$toLong", doc("$floor", expr("$divide", doc("$toLong", "$$NOW"), w.Part.Milliseconds())))
	low := expr("$subtract", expr("$min", ask.At, now), w.Parts+1)
	counted := doc("$filter", doc("input", "$p", "cond", expr("$gte", "$$this.a", low)))
	stages := mongo.Pipeline{doc("$set", doc("p", counted, "at", expr("$max", ask.At, now)))}
	for _, back := range ask.Back {
		stages = append(stages, doc("$set", doc("p", byPart.less(back.At, back.N))))
	}
	last := any(int64(0))
	if ask.Want > 0 {
		last = granting(ask, doc("$sum", "$p.n"))
	}
	until := expr("$cond", expr("$gt", "$last", int64(0)), keptUntil(w), "$until")
	return append(stages, doc("$set", doc("last", last)), doc("$set", doc("p", byPart.more("$at", "$last"), "until", until)))
}
