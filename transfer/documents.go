package transfer

import (
	"bytes"
	"errors"
	"fmt"

	"writ/storage"
)

// putDocuments stores the documents that are not there. A write that leaves two
// versions of a policy makes one change, so that each has one of its own.
func (i *importer) putDocuments() error {
	for rest := i.documents; len(rest) > 0; {
		n, err := distinct(rest)
		if err != nil {
			return err
		}
		if _, err := i.Store.Update(i.ctx, i.org, func(tx storage.Tx) error { return put(tx, rest[:n]) }); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// distinct returns how many of the documents their organization knows by names of their
// own.
func distinct(documents []storage.Document) (n int, err error) {
	type name struct {
		kind storage.Kind
		id   string
	}
	names := make(map[name]bool)
	for n, d := range documents {
		_, id, _, err := storage.CollectionOf(d.Kind).Describe(d)
		if err != nil || names[name{d.Kind, id}] {
			return n, err
		}
		names[name{d.Kind, id}] = true
	}
	return len(documents), nil
}

// put stores those of the documents that are not there.
func put(tx storage.Tx, documents []storage.Document) error {
	for _, d := range documents {
		name := storage.CollectionOf(d.Kind).Name
		there, err := tx.Get(d.Kind, d.Org, d.ID)
		switch {
		case err == nil && there.Org != d.Org:
			return fmt.Errorf("%w: the id of the %s %q is taken by another organization of this store", storage.ErrConflict, name, d.ID)
		case err == nil && bytes.Equal(there.Value, d.Value):
			continue
		case err == nil:
			return fmt.Errorf("%w: the %s %q is there and is another", storage.ErrConflict, name, d.ID)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		}
		if err := tx.Put(d); err != nil {
			return fmt.Errorf("storing the %s %q: %w", name, d.ID, err)
		}
	}
	return nil
}

// eachDocument calls f for the documents of org that are carried, in the file's order.
func eachDocument(r storage.Reader, org string, f func(*storage.Collection, storage.Document) error) error {
	for _, c := range carried {
		q := storage.Query{Kind: c.Kind, Org: org}
		if c.Global {
			q.Index = storage.ByOwnName
		}
		if err := r.Scan(q, func(_ []byte, d storage.Document) (bool, error) { return true, f(c, d) }); err != nil {
			return err
		}
	}
	return nil
}
