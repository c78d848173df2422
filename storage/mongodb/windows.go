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

// windowShare is the divisor of what is left in a window for one grant, so that other
// handles get some.
const windowShare = 16

type windows struct{ s *Store }

// Windows implements storage.Quotas.
func (s *Store) Windows() storage.Windows { return windows{s} }

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
	return bson.D{{Key: "$dateAdd", Value: bson.D{{Key: "startDate", Value: "$$NOW"}, {Key: "unit", Value: "millisecond"}, {Key: "amount", Value: length}}}}
}

// Begin implements storage.Windows.
func (ws windows) Begin(ctx context.Context, w storage.Window, parts []storage.WindowPart) error {
	if err := errors.Join(checkWindow(ctx, &w), ws.s.available()); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, ws.s.timeout)
	defer cancel()
	rows := make([]partRow, len(parts))
	for i, p := range parts {
		rows[i] = partRow(p)
	}
	_, err := ws.s.windowRows().UpdateOne(bounded, bson.D{{Key: "_id", Value: windowKey(&w)}}, mongo.Pipeline{set(
		bson.E{Key: "u", Value: orElse("$u", uuid.NewString())}, bson.E{Key: "p", Value: orElse("$p", literal(rows))},
		bson.E{Key: "until", Value: orElse("$until", keptUntil(&w))},
		bson.E{Key: "last", Value: orElse("$last", int64(0))}, bson.E{Key: "at", Value: orElse("$at", int64(0))},
	)}, options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		err = nil // another handle was faster
	}
	return failed(ctx, "keeping a window", err)
}

// Count implements storage.Windows.
func (ws windows) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	if err := errors.Join(checkWindow(ctx, &w), ws.s.available()); err != nil {
		return storage.Granted{}, err
	}
	if ask.Need < 0 || ask.Want < 0 {
		return storage.Granted{}, fmt.Errorf("%d places of a window, of which %d are needed", ask.Want, ask.Need)
	}
	bounded, cancel := context.WithTimeout(ctx, ws.s.timeout)
	defer cancel()
	var row windowRow
	filter := bson.D{{Key: "_id", Value: windowKey(&w)}}
	if ask.Begun != "" {
		filter = append(filter, bson.E{Key: "u", Value: ask.Begun})
	}
	peek := ask.Want == 0 && len(ask.Back) == 0
	var found *mongo.SingleResult
	if peek {
		found = ws.s.windowRows().FindOne(bounded, filter)
	} else {
		found = ws.s.windowRows().FindOneAndUpdate(bounded, filter, counts(&w, &ask), options.FindOneAndUpdate().SetReturnDocument(options.After))
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

func expr(name string, args ...any) bson.D { return bson.D{{Key: name, Value: bson.A(args)}} }

func set(fields ...bson.E) bson.D { return bson.D{{Key: "$set", Value: bson.D(fields)}} }

// counts gives back and grants what ask says. The clock is the server's.
func counts(w *storage.Window, ask *storage.Ask) mongo.Pipeline {
	now := bson.D{{Key: "$toLong", Value: bson.D{{Key: "$floor", Value: expr("$divide", bson.D{{Key: "$toLong", Value: "$$NOW"}}, w.Part.Milliseconds())}}}}
	low := expr("$subtract", expr("$min", ask.At, now), w.Parts+1)
	counted := bson.D{{Key: "$filter", Value: bson.D{{Key: "input", Value: "$p"}, {Key: "cond", Value: expr("$gte", "$$this.a", low)}}}}
	left := expr("$subtract", ask.Limit, bson.D{{Key: "$sum", Value: "$p.n"}})
	part := bson.D{{Key: "$toLong", Value: bson.D{{Key: "$floor", Value: expr("$divide", left, int64(windowShare))}}}}
	last := any(int64(0))
	if ask.Want > 0 {
		last = expr("$cond", expr("$gte", left, ask.Need), expr("$max", ask.Need, expr("$min", ask.Want, part)), int64(0))
	}
	others := bson.D{{Key: "$filter", Value: bson.D{{Key: "input", Value: "$p"}, {Key: "cond", Value: expr("$ne", "$$this.a", "$at")}}}}
	before := bson.D{{Key: "$sum", Value: bson.D{{Key: "$map", Value: bson.D{{Key: "input", Value: "$p"}, {Key: "in", Value: expr("$cond", expr("$eq", "$$this.a", "$at"), "$$this.n", int64(0))}}}}}}
	with := expr("$concatArrays", others, bson.A{bson.D{{Key: "a", Value: "$at"}, {Key: "n", Value: expr("$add", before, "$last")}}})
	granted := expr("$gt", "$last", int64(0))
	stages := mongo.Pipeline{set(bson.E{Key: "p", Value: counted}, bson.E{Key: "at", Value: expr("$max", ask.At, now)})}
	for _, back := range ask.Back {
		stages = append(stages, set(bson.E{Key: "p", Value: without(back)}))
	}
	return append(stages,
		set(bson.E{Key: "last", Value: last}),
		set(bson.E{Key: "p", Value: expr("$cond", granted, with, "$p")}, bson.E{Key: "until", Value: expr("$cond", granted, keptUntil(w), "$until")}))
}

// without is p with what is given back.
func without(back storage.WindowPart) bson.D {
	fewer := bson.D{{Key: "a", Value: "$$this.a"}, {Key: "n", Value: expr("$max", int64(0), expr("$subtract", "$$this.n", back.N))}}
	return bson.D{{Key: "$map", Value: bson.D{
		{Key: "input", Value: "$p"}, {Key: "in", Value: expr("$cond", expr("$eq", "$$this.a", back.At), fewer, "$$this")},
	}}}
}
