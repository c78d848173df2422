package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"writ.example/writ/storage"
)

// A key of a global collection has no organization.
func documentKey(c *storage.Collection, org, id string) key {
	return documentsOf(c, org).text(id)
}

func documentsOf(c *storage.Collection, org string) key {
	k := key{byte(kindDocument), byte(c.Kind)}
	if c.Global {
		return k
	}
	return k.orgOnly(org)
}

func indexOf(k storage.Kind, org string, i storage.Index) key {
	return append(key{byte(kindIndex), byte(k)}.orgOnly(org), byte(i))
}

// documentRow returns the value that is stored for d.
func documentRow(c *storage.Collection, d storage.Document) []byte {
	row := binary.BigEndian.AppendUint64(nil, d.Revision)
	if c.Global {
		row = key(row).orgOnly(d.Org)
	}
	return append(row, d.Value...)
}

// parseDocument reads the stored value v into d. The caller has set the kind and id of d, and its
// organization unless the collection is global. d.Value shares the memory of v.
func parseDocument(d *storage.Document, c *storage.Collection, v []byte) error {
	if len(v) < 8 {
		return fmt.Errorf("a stored %s of %d bytes", c.Name, len(v))
	}
	d.Revision, v = binary.BigEndian.Uint64(v), v[8:]
	if c.Global {
		org, rest, err := splitOrg(v)
		if err != nil {
			return err
		}
		d.Org, v = string(org), rest
	}
	d.Value = v
	return nil
}

// documents reads the documents in src, which is a snapshot of Pebble or the batch of an update.
type documents struct {
	ctx context.Context
	s   *Store
	src pebble.Reader
}

// View implements storage.Documents.
func (s *Store) View(ctx context.Context, f func(storage.Reader) error) (err error) {
	if err := errors.Join(ctx.Err(), s.health.Stopped()); err != nil {
		return err
	}
	state := s.db.NewSnapshot()
	defer func() { err = errors.Join(err, state.Close()) }()
	return f(&documents{ctx: ctx, s: s, src: state})
}

// Get implements storage.Reader.
func (r *documents) Get(kind storage.Kind, org, id string) (d storage.Document, err error) {
	c, err := collection(kind, org)
	if err != nil {
		return d, err
	}
	v, err := r.s.getIn(r.src, documentKey(c, org, id))
	if err != nil {
		return d, err
	}
	d = storage.Document{Kind: kind, Org: org, ID: id}
	return d, parseDocument(&d, c, v)
}

// collection returns the collection of a kind. It returns an error if the collection does not exist
// or if the id org is too long.
func collection(kind storage.Kind, org string) (*storage.Collection, error) {
	c := storage.CollectionOf(kind)
	if c == nil {
		return nil, fmt.Errorf("no documents are of the kind %q", kind)
	}
	return c, checkOrg(org)
}

// Scan implements storage.Reader.
func (r *documents) Scan(q storage.Query, f func(position []byte, d storage.Document) (bool, error)) error {
	c, err := collection(q.Kind, q.Org)
	if err != nil {
		return err
	}
	if c.Global && q.Index == storage.ByID || q.Every && q.Index != storage.ByID {
		return fmt.Errorf("the documents of the kind %s are not in the order that was asked for", c.Name)
	}
	prefix := documentsOf(c, q.Org)
	if q.Index != storage.ByID {
		prefix = indexOf(q.Kind, q.Org, q.Index)
	}
	lower, upper := bounds(prefix, q)
	return r.s.scanIn(r.ctx, r.src, lower, upper, func(k, v []byte) (bool, error) {
		position, d, err := r.document(c, q, k, v)
		if err != nil {
			return true, err
		}
		more, err := f(position, d)
		return !more, err
	})
}

// bounds returns the bounds of the keys that q asks for.
func bounds(prefix key, q storage.Query) (lower, upper key) {
	lower = append(bytes.Clone(prefix), q.Prefix...)
	upper = lower.end()
	if from := append(bytes.Clone(prefix), q.From...); bytes.Compare(from, lower) > 0 {
		lower = from
	}
	if q.Every {
		upper = key{byte(kindDocument), byte(q.Kind)}.end()
	}
	if bytes.Compare(lower, upper) > 0 {
		lower = upper
	}
	return lower, upper
}

// document returns the document of a row, and the position of the row in the list q. The value of
// an index entry is the id of its document.
func (r *documents) document(
	c *storage.Collection, q storage.Query, k, v []byte,
) (position []byte, d storage.Document, err error) {
	org, position, err := splitOrg(k[2:])
	if err != nil {
		return nil, d, err
	}
	d = storage.Document{Kind: q.Kind, Org: q.Org}
	if q.Index == storage.ByID {
		if d.ID = string(position); q.Every {
			d.Org = string(org)
		}
		if q.Bare {
			return position, d, nil
		}
		return position, d, parseDocument(&d, c, v)
	}
	position, d.ID = position[1:], string(v)
	if q.Bare {
		return position, d, nil
	}
	if d, err = r.Get(q.Kind, q.Org, string(v)); errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("the %s %q is indexed but not stored", c.Name, v)
	}
	return position, d, err
}

// FreshFor implements storage.Documents. It returns 0, because no other process writes.
func (s *Store) FreshFor() time.Duration { return 0 }

// Leads implements storage.Documents. It returns true, because no other process uses the store.
func (s *Store) Leads() bool { return true }

// Barrier implements storage.Documents. It does nothing, because no other process uses the store.
func (s *Store) Barrier(context.Context) error { return nil }
