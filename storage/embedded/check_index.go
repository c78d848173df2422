package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
)

// CheckIndex compares the tables with the segments, and the rows that were read with those of the
// segments. It compares the documents with their indexes. It compares the ends of both streams of
// writes with the recorded tip. Its error is a *storage.BreakError or a failure to read.
func (r *ReadOnly) CheckIndex(ctx context.Context, read storage.IndexCheck) (err error) {
	defer readPanic(&err)
	if read.Rows != nil {
		if err := r.checkRows(ctx, read.Rows); err != nil {
			return err
		}
	}
	err = r.s.eachMeter(ctx, func(m meter, n int64) error {
		if read.Meter == nil {
			return nil
		}
		return read.Meter(m.org, m.month, n)
	})
	if err != nil {
		return err
	}
	if err := r.checkDocuments(ctx, read.Document); err != nil {
		return err
	}
	return r.checkEnds(ctx)
}

// checkRows compares the tables with the segments, and want with the sums of the rows in the segments. want
// has the sums of the rows that were read, by organization.
func (r *ReadOnly) checkRows(ctx context.Context, want map[string]storage.RowSums) error {
	if err := r.s.tables.Check(ctx); errors.Is(err, index.ErrTable) {
		return &storage.BreakError{Err: err}
	} else if err != nil {
		return err
	}
	found := maps.Clone(want)
	for org := range found {
		found[org] = storage.RowSums{}
	}
	var seen index.Filter
	again := make(map[index.Name]int)
	err := r.s.eachStanding(ctx, func(_ uint64, it *item, intentKey string) error {
		d, _, err := it.start()
		sums := found[it.org]
		sums.ByIntent.Add(it.id, intentKey)
		sums.ByDecision.Add(it.id, string(rune(d)))
		found[it.org] = sums
		name := r.s.nameOf(it.org, intentKey)
		if !seen.Lacks(uint64(name)) {
			again[name]++
		}
		seen.Add(uint64(name))
		return err
	})
	if err == nil {
		err = r.checkOnce(ctx, again)
	}
	if err != nil {
		return err
	}
	for _, org := range slices.Sorted(maps.Keys(found)) {
		if found[org] != want[org] {
			return r.misled(ctx, org)
		}
	}
	return nil
}

// checkOnce checks that no two rows are of one intent. again has the names that more than one row may have.
func (r *ReadOnly) checkOnce(ctx context.Context, again map[index.Name]int) error {
	if len(again) == 0 {
		return nil
	}
	decided := make(map[intent]uuid.UUID)
	return r.s.eachStanding(ctx, func(_ uint64, it *item, intentKey string) error {
		if again[r.s.nameOf(it.org, intentKey)] == 0 {
			return nil
		}
		name := intent{it.org, intentKey}
		if other, twice := decided[name]; twice {
			return broken(it.org, it.id, "its intent %q is decided by %s too", intentKey, other)
		}
		decided[name] = it.id
		return nil
	})
}

// eachStanding calls f for the rows in the segments that were neither removed nor abandoned, the last one first.
// It uses no table.
func (s *Store) eachStanding(ctx context.Context, f func(frame uint64, it *item, intentKey string) error) error {
	c := standing{s: s, abandoned: make(map[decisionOf]bool), f: f}
	if err := s.removedIntents(func(name index.Name) { c.removed.Add(uint64(name)) }); err != nil {
		return err
	}
	for _, seg := range slices.Backward(s.log.Segments()) {
		var frames []segment.Frame
		last := seg.First + uint64(seg.Frames) - 1 //nolint:gosec // it counts
		err := s.log.ScanTo(ctx, seg.First, last, func(f segment.Frame) error {
			frames = append(frames, f)
			return nil
		})
		if err != nil {
			return err
		}
		for _, stored := range slices.Backward(frames) {
			for i, b := range slices.Backward(stored.Items) {
				it, err := parseItem(b)
				if err == nil {
					err = c.item(stored.Number, &it)
				}
				if broken := (*storage.BreakError)(nil); errors.As(err, &broken) {
					return err
				} else if err != nil {
					return &storage.BreakError{Err: fmt.Errorf("frame %d, item %d: %w", stored.Number, i, err)}
				}
			}
		}
	}
	return nil
}

// standing finds the rows that were neither removed nor abandoned. It takes the items from the last to the first.
type standing struct {
	s         *Store
	removed   index.Filter // of the intents of removed rows
	abandoned map[decisionOf]bool
	f         func(frame uint64, it *item, intentKey string) error
}

type decisionOf struct {
	org string
	id  uuid.UUID
}

func (c *standing) item(frame uint64, it *item) error {
	of := decisionOf{it.org, it.id}
	switch it.kind {
	case abandonedItem:
		c.abandoned[of] = true
		return nil
	case recordItem, tombstoneItem:
	default:
		return nil
	}
	if c.abandoned[of] {
		delete(c.abandoned, of) // an import before that stands
		return nil
	}
	if it.kind == tombstoneItem {
		return nil
	}
	k, err := it.intentKey()
	if err != nil {
		return err
	}
	if !c.removed.Lacks(uint64(c.s.nameOf(it.org, k))) {
		v, err := c.s.get(orgKey(kindIntent, it.org).text(k))
		if err == nil && bytes.HasPrefix(v, it.id[:]) {
			return nil
		}
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return c.f(frame, it, k)
}

// misled looks for the first row of org that is not found by its intent, or not by its id, and returns an error
// that names the row.
func (r *ReadOnly) misled(ctx context.Context, org string) error {
	if err := r.EachRow(ctx, org, "", "", r.isFound); err != nil {
		return err
	}
	err := r.s.eachStanding(ctx, func(_ uint64, it *item, intentKey string) error {
		if it.org != org {
			return nil
		}
		_, err := r.s.record(org, it.id)
		if errors.Is(err, storage.ErrNotFound) {
			err = broken(org, it.id, "its intent %q is decided, and its row is not there", intentKey)
		}
		return err
	})
	if err != nil {
		return err
	}
	return &storage.BreakError{OrganizationID: org, Err: errors.New("its rows are not found as they are stored")}
}

func (r *ReadOnly) isFound(row *storage.Record) error {
	org, id := row.OrganizationID, uuid.MustParse(row.DecisionID)
	switch it, err := r.s.standing(intent{org, row.IntentKey()}); {
	case err != nil:
		return err
	case it.kind != recordItem:
		return broken(org, id, "its intent %q is not among the intents that are decided", row.IntentID)
	case it.id != id:
		return broken(org, id, "its intent %q leads to another decision", row.IntentID)
	}
	return nil
}

// checkDocuments checks that every document is in its indexes and that every index entry leads to
// its document. It passes each document to f.
func (r *ReadOnly) checkDocuments(ctx context.Context, f func(storage.Document, string) error) error {
	docs := documents{ctx: ctx, s: r.s, src: r.s.db}
	err := r.s.scanPrefix(ctx, key{byte(kindDocument)}, func(rest, v []byte) (bool, error) {
		d, err := documentOf(rest, v)
		var keys []storage.Key
		var id string
		if err == nil {
			keys, id, _, err = storage.CollectionOf(d.Kind).Describe(d)
		}
		if err != nil {
			return true, &storage.BreakError{OrganizationID: d.Org, Err: err}
		}
		for _, k := range keys {
			id, err := r.s.get(append(indexOf(d.Kind, d.Org, k.Index), k.Value...).text(d.ID))
			if errors.Is(err, storage.ErrNotFound) || err == nil && string(id) != d.ID {
				err = brokenDocument(d, "it is not found as index %d has it", k.Index)
			}
			if err != nil {
				return true, err
			}
		}
		return false, f(d, id)
	})
	if err != nil {
		return err
	}
	return r.s.scanPrefix(ctx, key{byte(kindIndex)}, func(rest, id []byte) (bool, error) {
		return false, docs.leads(rest, string(id))
	})
}

// documentOf returns the document of a row. rest is the end of the row's key, and v is its value.
func documentOf(rest, v []byte) (d storage.Document, err error) {
	if len(rest) == 0 {
		return d, errors.New("the key of a document has one byte")
	}
	c := storage.CollectionOf(storage.Kind(rest[0]))
	if c == nil {
		return d, fmt.Errorf("a document is of the kind %q, which is none", rest[0])
	}
	d = storage.Document{Kind: c.Kind, ID: string(rest[1:])}
	if !c.Global {
		org, id, err := splitOrg(rest[1:])
		if err != nil {
			return d, err
		}
		d.Org, d.ID = string(org), string(id)
	}
	return d, parseDocument(&d, c, v)
}

// leads returns nil if an index entry belongs to the document id. rest is the end of the entry's
// key.
func (r *documents) leads(rest []byte, id string) error {
	org, position, err := splitOrg(rest[min(1, len(rest)):])
	if err != nil {
		return &storage.BreakError{Err: err}
	}
	entry := storage.Document{Kind: storage.Kind(rest[0]), Org: string(org), ID: id}
	c := storage.CollectionOf(entry.Kind)
	if c == nil {
		return brokenDocument(entry, "an index is of its kind, which is none")
	}
	d, err := r.Get(entry.Kind, entry.Org, id)
	if errors.Is(err, storage.ErrNotFound) {
		return brokenDocument(entry, "it is found in an index, and it is not there")
	}
	if err != nil {
		return err
	}
	keys, _, _, err := c.Describe(d)
	for _, key := range keys {
		if d.Org == entry.Org && len(position) > 0 && position[0] == byte(key.Index) &&
			bytes.Equal(position[1:], append(key.Value, id...)) {
			return nil
		}
	}
	return errors.Join(brokenDocument(entry, "an index has it under a key that is not its own"), err)
}

func brokenDocument(d storage.Document, format string, args ...any) error {
	name := fmt.Sprintf("%q", d.Kind)
	if c := storage.CollectionOf(d.Kind); c != nil {
		name = c.Name
	}
	return &storage.BreakError{OrganizationID: d.Org,
		Err: fmt.Errorf("%s %q: "+format, append([]any{name, d.ID}, args...)...)}
}

// CheckTip compares the store with the recorded tip, as a start does. Its error is a *storage.BreakError if the store
// has lost something.
func (r *ReadOnly) CheckTip() error {
	if err := r.found.compare(r.s, r.noted); err != nil {
		return err
	}
	r.found.compareTip(r.s.health.dir, r.noted)
	if len(r.found.reasons) > 0 {
		return &storage.BreakError{Err: fmt.Errorf("the store: %s", strings.Join(r.found.reasons, "; "))}
	}
	return nil
}

// checkEnds compares the ends of both streams of writes with the recorded tip. It also compares the
// document changes that are not in the chain yet with the last trim of changes.
func (r *ReadOnly) checkEnds(ctx context.Context) error {
	if err := r.CheckTip(); err != nil {
		return err
	}
	if r.found.stale != "" {
		return &storage.BreakError{Err: fmt.Errorf("the store: %s", r.found.stale)}
	}
	trimmed, err := r.s.count(trimmedKey)
	if err != nil {
		return err
	}
	return r.s.scanPrefix(ctx, key{byte(kindChange)}, func(rest, v []byte) (bool, error) {
		var c storage.Change
		if err := json.Unmarshal(v, &c); err != nil {
			return true, &storage.BreakError{Err: fmt.Errorf("decoding a change that is not signed yet: %w", err)}
		}
		if len(rest) != 8+4 || binary.BigEndian.Uint64(rest) != c.Revision {
			return true, &storage.BreakError{OrganizationID: c.Org, Err: fmt.Errorf(
				"the change of revision %d is not in its place", c.Revision,
			)}
		}
		if c.Revision <= uint64(trimmed) || c.Revision > r.found.tip.Change {
			return true, &storage.BreakError{OrganizationID: c.Org, Err: fmt.Errorf(
				"the change of revision %d waits to be signed, and those of %d to %d can", c.Revision, trimmed+1,
				r.found.tip.Change)}
		}
		return false, nil
	})
}
