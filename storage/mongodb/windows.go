package mongodb

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

// Windows implements storage.Quotas.
func (s *Store) Windows() storage.Windows { return s }

func (s *Store) windowRows() *mongo.Collection { return s.db.Collection(windowsName) }

// windowKeys returns the names of a window as its row has them.
func windowKeys(w *storage.Window) [][]byte {
	counter := append(storage.Text(w.Org), storage.Text(w.Counter)...)
	keys := make([][]byte, len(w.Of))
	for i, of := range w.Of {
		keys[i] = append(counter[:len(counter):len(counter)], storage.Text(of)...)
	}
	return keys
}

func checkWindow(w *storage.Window) error {
	if w.Part < time.Millisecond || w.Parts < 1 || len(w.Of) == 0 {
		return fmt.Errorf("a window of %d parts of %v with %d names", w.Parts, w.Part, len(w.Of))
	}
	return nil
}

// keptUntil returns an expression for the time at which a window is removed, if nothing more is
// counted in it. This is after twice the window's length, because some handles' clocks may be slow.
func keptUntil(w *storage.Window) bson.D { return later(2 * (w.Parts + 1) * w.Part.Milliseconds()) }

// Begin implements storage.Windows.
func (s *Store) Begin(ctx context.Context, w storage.Window, parts []storage.WindowPart) error {
	if err := checkWindow(&w); err != nil {
		return err
	}
	rows := make([]partRow, len(parts))
	for i, p := range parts {
		rows[i] = partRow(p)
	}
	return s.do(ctx, w.Org, "keeping a window", func(ctx context.Context) error {
		if err := s.indexed(windowsName); err != nil {
			return err
		}
		keys := windowKeys(&w)
		// In a new row an upsert sets the field to the only name of the filter.
		names := expr("$cond", expr("$isArray", "$"+windowNames), "$"+windowNames, literal(keys))
		_, err := s.windowRows().UpdateOne(ctx, anyOf(windowNames, keys), mongo.Pipeline{set(
			"_id", orElse("_id", literal(keys[0])), windowNames, names,
			windowBegun, orElse(windowBegun, uuid.NewString()), windowParts, orElse(windowParts, literal(rows)),
			windowUntil, orElse(windowUntil, keptUntil(&w)),
			windowLast, orElse(windowLast, int64(0)), windowAt, orElse(windowAt, int64(0)),
		)}, options.UpdateOne().SetUpsert(true))
		return notNew(err)
	})
}

// countWindow is Count of a rule's window.
func (s *Store) countWindow(ctx context.Context, w *storage.Window, ask *storage.Ask) (storage.Granted, error) {
	if err := checkWindow(w); err != nil {
		return storage.Granted{}, err
	}
	var row windowRow
	filter := anyOf(windowNames, windowKeys(w))
	if ask.Begun != "" {
		filter = append(filter, doc(windowBegun, ask.Begun)...)
	}
	peek := ask.Want == 0 && len(ask.Back) == 0
	err := s.do(ctx, w.Org, "counting in a window", func(ctx context.Context) error {
		if err := s.indexed(windowsName); err != nil {
			return err
		}
		if peek {
			return found(s.windowRows().FindOne(ctx, filter).Decode(&row))
		}
		return found(s.windowRows().FindOneAndUpdate(ctx, filter, counts(w, ask), after()).Decode(&row))
	})
	if err != nil {
		return storage.Granted{}, err
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

// counts returns the update that takes places back and grants places. It uses the server's clock.
func counts(w *storage.Window, ask *storage.Ask) mongo.Pipeline {
	now := doc("$toLong", doc("$floor", expr("$divide", doc("$toLong", "$$NOW"), w.Part.Milliseconds())))
	low := expr("$subtract", expr("$min", ask.At, now), w.Parts+1)
	counted := doc("$filter", doc("input", "$"+windowParts, "cond", expr("$gte", "$$this."+partAt, low)))
	stages := mongo.Pipeline{set(windowParts, counted, windowAt, expr("$max", ask.At, now))}
	if len(w.Of) > 1 {
		stages = append(stages, set(windowNames, expr("$setUnion", "$"+windowNames, literal(windowKeys(w)))))
	}
	for _, back := range ask.Back {
		stages = append(stages, set(windowParts, byPart.less(back.At, back.N)))
	}
	last := any(int64(0))
	if ask.Want > 0 {
		left := expr("$subtract", ask.Limit, doc("$sum", "$"+windowParts+"."+placesN))
		last = granting(ask, left, partOf(left, freeParts))
	}
	until := expr("$cond", expr("$gt", "$"+windowLast, int64(0)), keptUntil(w), "$"+windowUntil)
	return append(stages, set(windowLast, last),
		set(windowParts, byPart.more("$"+windowAt, "$"+windowLast), windowUntil, until))
}
