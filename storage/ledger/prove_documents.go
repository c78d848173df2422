package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"writ.example/writ/storage"
)

// documents compares each document with its last change.
type documents struct {
	// last has the last change of each document. It has one for each version of a policy,
	// because older versions stay.
	last map[string]*lastChange
	// removed has the revision at which a policy was last removed with all of its versions.
	removed map[string]int64
	// waiting is the number of changes that are not signed yet. newest is the last of
	// these changes.
	waiting int
	newest  Change
	// unfinished are the organizations with an unfinished import.
	unfinished []string
	broken     error // of the first document that is broken
}

// lastChange is the last change of a document. found is true if the document was found in
// the store, or if its last change removed it.
type lastChange struct {
	Change
	found bool
}

// document names the document that c changed. All versions of a policy have one name.
func (c *Change) document() string { return c.OrganizationID + "\x00" + c.Kind + "/" + c.ID }

// name names the document that c changed. Each version of a policy has its own name.
func (c *Change) name() string {
	name := c.document()
	if c.Kind == storage.Policies.Name {
		name += "\x00" + strconv.FormatInt(c.Revision, 10)
	}
	return name
}

func (c *Change) broken(format string, args ...any) error {
	return brokenOrg(c.OrganizationID, fmt.Errorf("%s %q: "+format, append([]any{c.Kind, c.ID}, args...)...))
}

// changed adds a change, which may not be signed yet.
func (d *documents) changed(c Change) {
	if c.Digest == "" && c.Kind == storage.Policies.Name {
		d.removed[c.document()] = max(d.removed[c.document()], c.Revision)
	}
	if before := d.last[c.name()]; before == nil || before.Revision < c.Revision {
		d.last[c.name()] = &lastChange{c, c.Digest == ""}
	}
}

// addUnsigned adds the changes that are not signed yet.
func (d *documents) addUnsigned(ctx context.Context, h History) error {
	type place struct {
		revision uint64
		call     int
	}
	last := make(map[string]place) // by organization
	after := storage.Change{}
	for call := 0; ; call++ {
		changes, err := h.Changes(ctx, after, 1000)
		if len(changes) == 0 || err != nil {
			return err
		}
		for _, c := range changes {
			before, is := last[c.Org], place{c.Revision, call}
			if c.Revision < before.revision || c.Revision == before.revision && call > before.call {
				return brokenOrg(c.Org, fmt.Errorf("the change of revision %d is not in its place", c.Revision))
			}
			last[c.Org] = is
			d.waiting++
			if d.newest, err = changeOf(&c); err != nil {
				return err
			}
			d.changed(d.newest)
		}
		after = changes[len(changes)-1]
	}
}

// document compares a stored document with its last change. check returns the error, after
// all other breaks.
func (d *documents) document(doc storage.Document, id string) error {
	if storage.CollectionOf(doc.Kind).Quiet {
		return nil
	}
	if doc.Kind == storage.ImportKind {
		d.unfinished = append(d.unfinished, doc.Org)
	}
	left, err := changeOf(&storage.Change{Revision: doc.Revision, Kind: doc.Kind, Org: doc.Org, ID: id,
		Digest: sha256.Sum256(doc.Value)})
	d.broken = cmp.Or(d.broken, d.isAsLeft(left))
	return err
}

// check returns an error if a document is broken or missing.
func (d *documents) check() error {
	if d.broken != nil {
		return d.broken
	}
	for _, name := range slices.Sorted(maps.Keys(d.last)) {
		if c := d.last[name]; !c.found && d.removed[c.document()] < c.Revision {
			return c.broken("the change of revision %d left it, and it is not there", c.Revision)
		}
	}
	return nil
}

// isAsLeft compares a document with its last change. c is the change that would have written the
// stored document.
func (d *documents) isAsLeft(c Change) error {
	switch last := d.last[c.name()]; {
	case last == nil:
		return c.broken("no change has left it as it is, at revision %d", c.Revision)
	case c.Revision != last.Revision || c.Digest != last.Digest:
		return c.broken("it is not as the change of revision %d left it", last.Revision)
	case last.found:
		return c.broken("it is there twice")
	case d.removed[c.document()] > c.Revision:
		return c.broken("it was removed, and is there")
	default:
		last.found = true
		return nil
	}
}
