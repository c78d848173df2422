package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"writ/storage"
)

// documents checks that every document is in its indexes and that every index entry leads
// to its document. Its error is a *storage.BreakError or a failure to read.
func (r *Reader) documents(ctx context.Context) error {
	docs := documents{ctx: ctx, s: r.s, src: r.s.db}
	defer docs.close()
	prefix := key{byte(kindDocument)}
	err := r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		d, err := documentOf(k, v)
		if err != nil {
			return true, &storage.BreakError{OrganizationID: d.Org, Err: err}
		}
		keys, _, _, err := storage.CollectionOf(d.Kind).Describe(d)
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
		return false, nil
	})
	if err != nil {
		return err
	}
	prefix = key{byte(kindIndex)}
	return r.s.scan(ctx, prefix, prefix.end(), func(k, id []byte) (bool, error) {
		return false, docs.leads(k, string(id))
	})
}

// Documents calls f for each document whose writes are changes, with its last change.
func (r *Reader) Documents(ctx context.Context, f func(storage.Change) error) (err error) {
	defer readPanic(&err)
	prefix := key{byte(kindDocument)}
	return r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		d, err := documentOf(k, v)
		if err != nil {
			return true, err
		}
		c := storage.CollectionOf(d.Kind)
		if c.Quiet {
			return false, nil
		}
		_, id, _, err := c.Describe(d)
		if err == nil {
			err = f(storage.Change{Revision: d.Revision, Kind: d.Kind, Org: d.Org, ID: id, Digest: sha256.Sum256(d.Value)})
		}
		return false, err
	})
}

// Waiting calls f for each change that is not in the chain yet. Its revision must be of a
// write after the last trim.
func (r *Reader) Waiting(ctx context.Context, f func(storage.Change) error) (err error) {
	defer readPanic(&err)
	trimmed, err := r.s.count(trimmedKey)
	if err != nil {
		return err
	}
	prefix := key{byte(kindChange)}
	return r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		var c storage.Change
		if err := json.Unmarshal(v, &c); err != nil {
			return true, &storage.BreakError{Err: fmt.Errorf("decoding a change that is not signed yet: %w", err)}
		}
		if at := changeKey(c.Revision, 0); len(k) != len(at) || !bytes.HasPrefix(k, at[:len(at)-4]) {
			return true, &storage.BreakError{OrganizationID: c.Org, Err: fmt.Errorf("the change of revision %d is not in its place", c.Revision)}
		}
		if c.Revision <= uint64(trimmed) || c.Revision > r.found.tip.Change {
			return true, &storage.BreakError{OrganizationID: c.Org, Err: fmt.Errorf(
				"the change of revision %d waits to be signed, and those of %d to %d can", c.Revision, trimmed+1, r.found.tip.Change)}
		}
		return false, f(c)
	})
}

// documentOf returns the document of a row.
func documentOf(k, v []byte) (d storage.Document, err error) {
	if len(k) < 2 {
		return d, fmt.Errorf("the key of a document has %d bytes", len(k))
	}
	c := storage.CollectionOf(storage.Kind(k[1]))
	if c == nil {
		return d, fmt.Errorf("a document is of the kind %q, which is none", k[1])
	}
	d = storage.Document{Kind: c.Kind, ID: string(k[2:])}
	if !c.Global {
		org, id, err := splitOrg(k[2:])
		if err != nil {
			return d, err
		}
		d.Org, d.ID = string(org), string(id)
	}
	return d, parseDocument(&d, c, v)
}

// leads returns nil if the index entry k, which leads to the document id, is one of that
// document's.
func (r *documents) leads(k []byte, id string) error {
	org, position, err := splitOrg(k[min(2, len(k)):])
	if err != nil {
		return &storage.BreakError{Err: err}
	}
	entry := storage.Document{Kind: storage.Kind(k[1]), Org: string(org), ID: id}
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
	return &storage.BreakError{OrganizationID: d.Org, Err: fmt.Errorf("%s %q: "+format, append([]any{name, d.ID}, args...)...)}
}
