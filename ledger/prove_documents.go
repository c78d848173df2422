package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"writ/storage"
)

// documents holds each document to the change that left it as it is.
type documents struct {
	// last are the last changes, by organization, kind and id.
	last map[string]*lastChange
	// versions are the digests of the versions of policies, which stay when there
	// are newer ones, by the same and the revision.
	versions map[string]string
	// waiting is how many changes are not signed yet, and unsigned how many
	// documents are from before changes were.
	waiting, unsigned int
}

// lastChange is the last change of a document, and whether that is there.
type lastChange struct {
	Change
	found bool
}

func (c *Change) name() string {
	return c.OrganizationID + "\x00" + c.Kind + "/" + c.ID
}

func (c *Change) version() string { return c.name() + "/" + strconv.FormatInt(c.Revision, 10) }

func (c *Change) broken(format string, args ...any) error {
	return &storage.BreakError{OrganizationID: c.OrganizationID, Err: fmt.Errorf("%s %q: "+format, append([]any{c.Kind, c.ID}, args...)...)}
}

// changed takes a change that is signed or waits to be.
func (d *documents) changed(c Change) {
	if d.last == nil {
		d.last, d.versions = make(map[string]*lastChange), make(map[string]string)
	}
	if before := d.last[c.name()]; before == nil || before.Revision < c.Revision {
		d.last[c.name()] = &lastChange{c, c.Digest == ""}
	}
	if c.Kind == changeKinds[storage.PolicyKind] {
		d.versions[c.version()] = c.Digest
	}
}

// prove reads the documents of h.
func (d *documents) prove(ctx context.Context, h History) error {
	err := h.Waiting(ctx, func(c storage.Change) error {
		d.waiting++
		signed, err := changeOf(&c)
		if err == nil {
			d.changed(signed)
		}
		return err
	})
	if err != nil {
		return err
	}
	err = h.Documents(ctx, func(c storage.Change) error {
		document, err := changeOf(&c)
		if err == nil {
			err = d.document(document)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.last)) {
		if c := d.last[name]; !c.found {
			return c.broken("the change of revision %d left it, and it is not there", c.Revision)
		}
	}
	return nil
}

// document holds a document, given as the change that would leave it.
func (d *documents) document(c Change) error {
	last := d.last[c.name()]
	if last == nil {
		d.unsigned++
		return nil
	}
	digest, version := d.versions[c.version()]
	switch {
	case c.Revision == last.Revision && c.Digest == last.Digest:
		last.found = true
		return nil
	case version && digest == c.Digest:
		return nil
	case !version && c.Kind == changeKinds[storage.PolicyKind] && c.Revision < last.Revision:
		d.unsigned++ // an older version, from before changes were signed
		return nil
	}
	return c.broken("it is not as the change of revision %d left it", last.Revision)
}
