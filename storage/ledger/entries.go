package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/storage"
)

// Settle says what became of the action of a decision and returns the decision's
// record with its settlement, which is Unapproved where the action was executed
// though it was not allowed, and whether it was said for the first time. Said again, it is
// what was said first. Its error is
// storage.ErrNotFound for a decision that is not there, storage.ErrConflict where
// another settlement stands, or what kept the store from committing it.
// It is recorded at s.RecordedAt, or when the decision was made if that is later.
func (l *Ledger) Settle(
	ctx context.Context, org, decisionID string, s storage.Settlement,
) (settled *storage.Record, first bool, err error) {
	stored, err := l.cfg.Store.Record(ctx, org, decisionID)
	if err != nil {
		return nil, false, fmt.Errorf("looking up a decision: %w", err)
	}
	r := *stored
	if r.Settlement == nil {
		if s.RecordedAt.Before(r.DecidedAt) { // by a replica whose clock is behind that of the one that decided
			s.RecordedAt = r.DecidedAt
		}
		r.Settle(s)
		e := r.SettlementEntry()
		stands, err := l.append(ctx, e)
		if err != nil {
			return nil, false, fmt.Errorf("committing a settlement: %w", err)
		}
		if stands[0].Removed() {
			return nil, false, storage.ErrNotFound
		}
		first = stands[0] == e
		said := *stands[0].Settlement
		if said.Receipt = nil; stands[0].Sig != "" {
			said.Receipt = &stands[0].Inclusion
		}
		r.Settlement = &said
	}
	if !storage.SameSettlement(*r.Settlement, s) {
		return nil, false, storage.ErrConflict
	}
	return &r, first, nil
}

// append makes entries final and returns what stands for each of them. They wait
// in the queue as the first one's organization.
func (l *Ledger) append(ctx context.Context, entries ...*storage.Entry) ([]*storage.Entry, error) {
	if slices.ContainsFunc(entries, func(e *storage.Entry) bool { return e.Body == nil }) {
		return nil, errors.New("an entry without a body")
	}
	w := l.waiters.get(0)
	w.entries = entries
	if err := l.queue.put(w); err != nil {
		return nil, err
	}
	stands := make([]*storage.Entry, len(entries))
	if err := l.waiters.wait(ctx, w, nil, stands); err != nil {
		return nil, err
	}
	for i, e := range stands {
		if e == nil {
			stands[i] = entries[i]
		}
	}
	return stands, nil
}

// Removal announces that retention is about to remove rows: at most Count of an
// organization's that were decided before a time, at most Settled of them with a
// settlement that is signed. Its entry is the canonical JSON of {before, count, entry,
// id, organization_id, settled}, before with milliseconds at most, and without settled
// where it is 0.
type Removal struct {
	ID             string    `json:"id"` // a UUIDv7
	OrganizationID string    `json:"organization_id"`
	Before         time.Time `json:"before"`
	Count          int64     `json:"count"`
	Settled        int64     `json:"settled,omitzero"`
}

func (r Removal) entry() *storage.Entry {
	r.Before = r.Before.UTC()
	return entryOf(storage.RetentionEntry, r.OrganizationID, r.ID, r)
}

// Retain says, before they are removed, that so many rows of org which were decided
// before a time are kept no longer. Rows that are removed without are a break of
// the history.
func (l *Ledger) Retain(ctx context.Context, org string, before time.Time, count storage.Expired) error {
	id, _ := l.ids.next(l.cfg.Now())
	r := Removal{ID: id.String(), OrganizationID: org, Before: before.Truncate(time.Millisecond),
		Count: int64(count.Records), Settled: int64(count.Settled)}
	if _, err := l.append(ctx, r.entry()); err != nil {
		return fmt.Errorf("committing a removal: %w", err)
	}
	return nil
}

// Change is a change of a document: an entry of the administrative audit log. Its
// entry is the canonical JSON of {actor, digest, entry, id, kind,
// organization_id, revision}, without an actor that is not known.
type Change struct {
	OrganizationID string `json:"organization_id"`
	Kind           string `json:"kind"` // policy, rule, list, agent, session, key, plan or import
	ID             string `json:"id"`
	Revision       int64  `json:"revision"` // of the commit of documents that made it
	Digest         string `json:"digest"`   // of the document as it is since; empty where it was removed
	Actor          string `json:"actor,omitzero"`
}

// Entry returns the entry of c, which is not signed yet.
func (c Change) Entry() *storage.Entry {
	return entryOf(storage.ChangeEntry, c.OrganizationID, c.Kind+"/"+c.ID+"/"+strconv.FormatInt(c.Revision, 10), c)
}

// changeOf returns c as it is signed.
func changeOf(c *storage.Change) (Change, error) {
	of := storage.CollectionOf(c.Kind)
	if of == nil || of.Quiet {
		return Change{}, fmt.Errorf("a change of a document of kind %q", c.Kind)
	}
	signed := Change{OrganizationID: c.Org, Kind: of.Name, ID: c.ID, Revision: int64(c.Revision), Actor: c.Actor}
	if c.Digest != [32]byte{} {
		signed.Digest = fmt.Sprintf("sha256:%x", c.Digest)
	}
	return signed, nil
}

// Changes are the changes of [storage.Documents] that are not in the chain yet.
type Changes interface {
	Changes(ctx context.Context, after uint64, max int) ([]storage.Change, error)
	Trim(ctx context.Context, upTo uint64) error
}

// SignChanges puts all that src has into the chain, and trims it. What was signed
// before, and not trimmed since, stays as it was.
func (l *Ledger) SignChanges(ctx context.Context, src Changes) error {
	for {
		changes, err := src.Changes(ctx, 0, maxCommit)
		if err != nil {
			return fmt.Errorf("reading changes: %w", err)
		}
		if len(changes) == 0 {
			return nil
		}
		entries := make([]*storage.Entry, len(changes))
		for i := range changes {
			signed, err := changeOf(&changes[i])
			if err != nil {
				return err
			}
			entries[i] = signed.Entry()
		}
		stands, err := l.append(ctx, entries...)
		if err != nil {
			return fmt.Errorf("committing changes: %w", err)
		}
		for i, e := range stands {
			if !bytes.Equal(e.Body, entries[i].Body) {
				return fmt.Errorf("change %s of organization %q was signed as another", e.Key, e.OrganizationID)
			}
		}
		if err := src.Trim(ctx, changes[len(changes)-1].Revision); err != nil {
			return fmt.Errorf("trimming changes: %w", err)
		}
	}
}

// ParseChange reads the entry of a change.
func ParseChange(e *storage.Entry) (Change, error) { return parseBody(e, Change.Entry) }

// entryOf returns an entry that is not signed yet. Its body is the canonical JSON of body,
// with the member entry, which is its kind. It is nil where a time, which somebody has
// forged, has no JSON.
func entryOf[T any](kind storage.EntryKind, org, key string, body T) *storage.Entry {
	text, err := json.Marshal(struct {
		Kind storage.EntryKind `json:"entry"`
		Body T                 `json:",embed"`
	}{kind, body}, jsontext.AllowInvalidUTF8(true))
	canonical := jsontext.Value(text)
	if cmp.Or(err, canonical.Canonicalize()) != nil {
		canonical = nil
	}
	return &storage.Entry{Kind: kind, OrganizationID: org, Key: key, Body: canonical}
}

// parseBody reads the body of e, which must be what entry makes of it.
func parseBody[T any](e *storage.Entry, entry func(T) *storage.Entry) (T, error) {
	var body T
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return body, fmt.Errorf("the body of a %s: %w", e.Kind, err)
	}
	if want := entry(body); want.Key != e.Key || want.OrganizationID != e.OrganizationID ||
		!bytes.Equal(want.Body, e.Body) {
		return body, fmt.Errorf("the body of a %s is not that of its key", e.Kind)
	}
	return body, nil
}
