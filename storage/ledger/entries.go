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

	"writ.example/writ/storage"
)

// Settle records the outcome of a decision's action. It returns the decision's record
// with the settlement. first reports whether this call made the settlement final. A
// further call with the same settlement returns the first one. The settlement is marked
// Unapproved if the action was executed without being allowed. The time of the settlement
// is s.RecordedAt, or the time of the decision if that is later.
//
// The error is storage.ErrNotFound if the decision does not exist, storage.ErrConflict if
// another settlement is stored, or a failure of the store.
func (l *Ledger) Settle(
	ctx context.Context, org, decisionID string, s storage.Settlement,
) (settled *storage.Record, first bool, err error) {
	stored, err := l.cfg.Store.Record(ctx, org, decisionID)
	if err != nil {
		return nil, false, fmt.Errorf("looking up a decision: %w", err)
	}
	r := *stored
	if r.Settlement == nil {
		if s.RecordedAt.Before(r.DecidedAt) { // another replica decided, and its clock is ahead
			s.RecordedAt = r.DecidedAt
		}
		r.Settle(s)
		e := r.SettlementEntry()
		final, err := l.append(ctx, e)
		if err != nil {
			return nil, false, fmt.Errorf("committing a settlement: %w", err)
		}
		if final[0].Removed() {
			return nil, false, storage.ErrNotFound
		}
		first = final[0] == e
		settlement := *final[0].Settlement
		if settlement.Receipt = nil; final[0].Sig != "" {
			settlement.Receipt = &final[0].Inclusion
		}
		r.Settlement = &settlement
	}
	if !storage.SameSettlement(*r.Settlement, s) {
		return nil, false, storage.ErrConflict
	}
	return &r, first, nil
}

// append makes entries final. For each entry it returns the stored entry of the same key.
// This may be an earlier one. In the queue all entries count for the organization of the
// first entry.
func (l *Ledger) append(ctx context.Context, entries ...*storage.Entry) ([]*storage.Entry, error) {
	if slices.ContainsFunc(entries, func(e *storage.Entry) bool { return e.Body == nil }) {
		return nil, errors.New("an entry without a body")
	}
	w := l.waiters.get(0)
	w.entries = entries
	if err := l.queue.put(w); err != nil {
		return nil, err
	}
	final := make([]*storage.Entry, len(entries))
	if err := l.waiters.wait(ctx, w, nil, final); err != nil {
		return nil, err
	}
	for i, e := range final {
		if e == nil {
			final[i] = entries[i]
		}
	}
	return final, nil
}

// Removal announces that retention is about to remove rows of an organization. All of
// them were decided before the time Before. There are at most Count such rows, and at
// most Settled of them have a signed settlement. The entry of a Removal is the canonical
// JSON of {before, count, entry, id, organization_id, settled}. Before is in whole
// milliseconds. Settled is absent if it is 0.
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

// Retain announces the removal of rows of org that are older than the time in before. It
// must be called before the rows are removed, because a row that is removed without an
// announcement is a break of the history.
func (l *Ledger) Retain(ctx context.Context, org string, before time.Time, count storage.Expired) error {
	id, _ := l.ids.next(l.cfg.Now())
	r := Removal{ID: id.String(), OrganizationID: org, Before: before.Truncate(time.Millisecond),
		Count: int64(count.Records), Settled: int64(count.Settled)}
	if _, err := l.append(ctx, r.entry()); err != nil {
		return fmt.Errorf("committing a removal: %w", err)
	}
	return nil
}

// Change is a change of a document. It is an entry of the administrative audit log. The
// entry is the canonical JSON of {actor, digest, entry, id, kind, organization_id,
// revision}. The actor is absent if it is not known.
type Change struct {
	OrganizationID string `json:"organization_id"`
	Kind           string `json:"kind"` // policy, rule, list, agent, session, key, plan, organization or import
	ID             string `json:"id"`
	Revision       int64  `json:"revision"` // of the update that made the change, in its organization
	Digest         string `json:"digest"`   // of the document after the change; empty if it was removed
	Actor          string `json:"actor,omitzero"`
}

// Entry returns the unsigned entry of c.
func (c Change) Entry() *storage.Entry {
	return entryOf(storage.ChangeEntry, c.OrganizationID, c.Kind+"/"+c.ID+"/"+strconv.FormatInt(c.Revision, 10), c)
}

// changeOf returns the form of c that is signed.
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
	Changes(ctx context.Context, after storage.Change, max int) ([]storage.Change, error)
	Trim(ctx context.Context, changes []storage.Change) error
}

// SignChanges puts the changes that src has when it is called into the chain and trims src. A change that was
// signed before but not trimmed is not signed again.
func (l *Ledger) SignChanges(ctx context.Context, src Changes) error {
	for {
		changes, err := src.Changes(ctx, storage.Change{}, maxCommit)
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
		final, err := l.append(ctx, entries...)
		if err != nil {
			return fmt.Errorf("committing changes: %w", err)
		}
		for i, e := range final {
			if !bytes.Equal(e.Body, entries[i].Body) {
				return fmt.Errorf("change %s of organization %q was signed as another", e.Key, e.OrganizationID)
			}
		}
		if err := src.Trim(ctx, changes); err != nil {
			return fmt.Errorf("trimming changes: %w", err)
		}
		if len(changes) < maxCommit { // others came later
			return nil
		}
	}
}

// ParseChange reads the entry of a change.
func ParseChange(e *storage.Entry) (Change, error) { return parseBody(e, Change.Entry) }

// entryOf returns an unsigned entry. Its body is the canonical JSON of body with one more
// member, entry, which names the kind. The body is nil if a time cannot be written as
// JSON. This happens only in forged histories.
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

// parseBody reads the body of e. It returns an error if entry, called with the parsed
// body, does not return e.
func parseBody[T any](e *storage.Entry, entry func(T) *storage.Entry) (T, error) {
	var body T
	if err := json.Unmarshal(e.Body, &body); err != nil {
		return body, fmt.Errorf("the body of a %s: %w", e.Kind, err)
	}
	if want := entry(body); want.Key != e.Key || want.OrganizationID != e.OrganizationID ||
		!bytes.Equal(want.Body, e.Body) {
		return body, fmt.Errorf("the body of a %s does not match its key", e.Kind)
	}
	return body, nil
}
