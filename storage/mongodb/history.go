package mongodb

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// Decided implements storage.Log.
func (s *Store) Decided(ctx context.Context, org, intentID, approvalID string) (r *storage.Record, err error) {
	key, err := intentKey(org, intentID, approvalID)
	if err != nil {
		return nil, storage.ErrNotFound // no such intent was stored
	}
	err = s.latest(ctx, org, "reading a decision", func(ctx context.Context) error {
		r, err = s.oneRecord(ctx, org, doc("_id", key))
		return err
	})
	return r, err
}

// Entry implements storage.Log.
func (s *Store) Entry(
	ctx context.Context, org string, kind storage.EntryKind, key string,
) (e *storage.Entry, err error) {
	err = s.latest(ctx, org, "reading an entry", func(ctx context.Context) error {
		var row entryRow
		id := entryKey(&storage.Entry{Kind: kind, OrganizationID: org, Key: key})
		err := s.entries().FindOne(ctx, doc("_id", id)).Decode(&row)
		if err == nil {
			e, err = row.entry()
		}
		return found(err)
	})
	return e, err
}

// Record implements storage.History.
func (s *Store) Record(ctx context.Context, org, decisionID string) (r *storage.Record, err error) {
	id, ok := storage.ParseID(decisionID)
	if !ok {
		return nil, storage.ErrNotFound
	}
	err = s.do(ctx, org, "reading a decision", func(ctx context.Context) error {
		if err := s.indexed(recordsName); err != nil {
			return err
		}
		r, err = s.oneRecord(ctx, org, s.onShard(org, doc(recordOrg, org, recordID, id[:])))
		return err
	})
	return r, err
}

func (s *database) oneRecord(ctx context.Context, org string, selected bson.D) (*storage.Record, error) {
	raw, err := s.records().FindOne(ctx, selected).Raw()
	if err != nil {
		return nil, found(err)
	}
	w, err := parseRow(org, raw)
	return w.record, err
}

var newestFirst = doc(recordID, -1)

// The lists that have cursors.
const (
	recordList = 'h'
	entryList  = 'l'
)

const idLen = 16

// startOf returns the id after which a page starts. It returns nil for the first page.
func startOf(list byte, p storage.Page) ([]byte, error) {
	before, err := p.Start(list)
	if err == nil && before != nil && len(before) != idLen {
		err = storage.ErrBadCursor
	}
	return before, err
}

// ListRecords implements storage.History.
func (s *database) ListRecords(
	ctx context.Context, org string, f storage.Filter, p storage.Page,
) (records []*storage.Record, next string, err error) {
	before, err := startOf(recordList, p)
	if err != nil {
		return nil, "", err
	}
	lower, upper := idRange(&f, before)
	if bytes.Compare(lower, upper) >= 0 {
		return nil, "", checkOrg(org)
	}
	err = s.do(ctx, org, "listing decisions", func(ctx context.Context) error {
		if err := s.indexed(recordsName); err != nil {
			return err
		}
		indexed, rest := parts(org, &f)
		var last []byte
		within := times(&f) // rows of another time can have ids of that time
		if len(rest) > 0 || len(within) > 0 || f.Reads() {
			scanned := s.onShard(org, slices.Concat(indexed, idsIn(lower, upper)))
			if last, err = s.lastScanned(ctx, scanned); err != nil {
				return err
			}
		}
		if last != nil {
			lower = last
		}
		selected := s.onShard(org, slices.Concat(indexed, idsIn(lower, upper), rest, within))
		limit := int64(p.Limit) + 1
		if f.Reads() {
			limit = 0 // the findings are compared here
		}
		cursor, err := s.records().Find(ctx, selected, options.Find().SetSort(newestFirst).SetLimit(limit))
		var end []byte
		err = eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
			w, err := parseRow(org, raw)
			switch {
			case err != nil:
				return false, err
			case f.Reads() && !f.Selects(w.record):
				return true, nil
			case len(records) == p.Limit:
				next = storage.Cursor(recordList, end)
				return false, nil
			}
			records, end = append(records, w.record), w.id[:]
			return true, nil
		})
		if next == "" && last != nil {
			next = storage.Cursor(recordList, last)
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return records, next, nil
}

// idRange returns the range [lower, upper) of ids that the rows of f can have. If before is not
// nil, the range ends there at the latest.
func idRange(f *storage.Filter, before []byte) (lower, upper []byte) {
	lower, upper = make([]byte, idLen), bytes.Repeat([]byte{0xff}, idLen)
	if !f.From.IsZero() {
		id := storage.IDAt(f.From.Add(-storage.MaxSkew))
		lower = id[:]
	}
	if !f.To.IsZero() {
		id := storage.IDAt(f.To.Add(storage.MaxSkew + time.Millisecond)) // an id has whole milliseconds
		upper = id[:]
	}
	if before != nil && bytes.Compare(before, upper) < 0 {
		upper = before
	}
	return lower, upper
}

func idsIn(lower, upper []byte) bson.D { return doc(recordID, doc("$gte", lower, "$lt", upper)) }

// parts splits f without its times into two conditions. An index serves the first, and the second
// is for all other fields.
func parts(org string, f *storage.Filter) (indexed, rest bson.D) {
	indexed = doc(recordOrg, org)
	decision := &indexed
	switch {
	case len(f.AgentIDs) == 1:
		indexed = doc(recordOrg, org, recordAgent, f.AgentIDs[0])
		decision = &rest
	case len(f.AgentIDs) > 1:
		rest = anyOf(recordAgent, f.AgentIDs)
	}
	if f.Decision != 0 {
		*decision = append(*decision, doc(recordDecision, int32(f.Decision))...)
	}
	if f.PolicyID != "" {
		rest = append(rest, doc(recordPolicy, f.PolicyID)...)
	}
	if len(f.ActionTypes) > 0 {
		rest = append(rest, anyOf(recordType, f.ActionTypes)...)
	}
	for _, p := range [...]struct{ field, value string }{
		{"se", f.SessionID}, {"by", f.Credential}, {"ap", f.ApprovalID},
	} {
		if p.value != "" {
			rest = append(rest, doc(p.field, p.value)...)
		}
	}
	if f.IntentID != "" {
		indexed = append(indexed, ofIntent(org, f.IntentID)...)
	}
	return indexed, rest
}

// ofIntent selects the rows of an intent: the one without an approval, and those under one. The
// server orders keys by length first.
func ofIntent(org, intentID string) bson.D {
	key, err := intentKey(org, intentID, "")
	if err != nil {
		return doc("_id", doc("$in", bson.A{})) // no such intent was stored
	}
	from, to := append(slices.Clone(key), uuid.Nil[:]...), append(slices.Clone(key), uuid.Max[:]...)
	return doc("$or", bson.A{doc("_id", key), doc("_id", doc("$gte", from, "$lte", to))})
}

func times(f *storage.Filter) (part bson.D) {
	if !f.From.IsZero() {
		part = doc("$nor", bson.A{before(f.From)})
	}
	if !f.To.IsZero() {
		part = append(part, before(f.To)...)
	}
	return part
}

// before selects rows decided before t. A BSON date has milliseconds, so a second field has the
// nanoseconds below a millisecond.
func before(t time.Time) bson.D {
	date := bson.NewDateTimeFromTime(t)
	return doc("$or", bson.A{
		doc(recordAt, doc("$lt", date)), doc(recordAt, date, recordNanos, doc("$lt", nanosBelow(t))),
	})
}

// lastScanned returns the id of the last row that one page may read. A page may read
// [storage.MaxRead] rows, which takes the server about 10 ms. lastScanned returns nil if fewer rows
// are selected.
func (s *database) lastScanned(ctx context.Context, selected bson.D) ([]byte, error) {
	var w struct {
		ID []byte `bson:"d"`
	}
	last := options.FindOne().SetSort(newestFirst).SetSkip(storage.MaxRead - 1)
	err := s.records().FindOne(ctx, selected, last.SetProjection(doc("_id", 0, recordID, 1))).Decode(&w)
	return w.ID, ifAny(err)
}

// Entries implements storage.Log. Entries of different handles are ordered by the times of the
// handles' clocks.
func (s *Store) Entries(
	ctx context.Context, org string, kind storage.EntryKind, p storage.Page,
) (entries []*storage.Entry, next string, err error) {
	before, err := startOf(entryList, p)
	if err != nil {
		return nil, "", err
	}
	selected := doc(entryOrg, org, entryKind, string(kind))
	if before != nil {
		selected = append(selected, doc(entryAt, doc("$lt", before))...)
	}
	err = s.do(ctx, org, "reading entries", func(ctx context.Context) error {
		if err := s.indexed(entriesName); err != nil {
			return err
		}
		cursor, err := s.entries().Find(ctx, selected,
			options.Find().SetSort(doc(entryAt, -1)).SetLimit(int64(p.Limit)+1))
		var end []byte
		return each(ctx, cursor, err, func(w *entryRow) (bool, error) {
			if len(entries) == p.Limit {
				next = storage.Cursor(entryList, end)
				return false, nil
			}
			e, err := w.entry()
			entries, end = append(entries, e), w.At
			return true, err
		})
	})
	if err != nil {
		return nil, "", err
	}
	return entries, next, nil
}
