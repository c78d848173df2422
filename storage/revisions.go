package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Revision is a rule, a list or a library as it stood until another write replaced or removed it.
// Package registry says which revisions are kept.
type Revision struct {
	// Origin is the [Origin] of an imported revision, whose Since and Until are revisions of that store. It
	// is empty for a revision of this store.
	Origin string `json:"origin,omitzero"`
	// Of is the document's kind as a text, and ID is its id in the organization.
	Of string `json:"of"`
	ID string `json:"id"`
	// Since is the revision of the commit that wrote the document. Until is the revision of the commit
	// that replaced or removed it. The document stood at every revision from Since to before Until.
	// Until is the revision of this document in a revision of this store, and is not stored. In an imported
	// revision it is 0 if the document was current at the export.
	Since int64 `json:"since"`
	Until int64 `json:"until,omitzero"`
	// ReplacedAt is the time of the commit Until. Removed says that it removed the document.
	ReplacedAt time.Time `json:"replaced_at"`
	Removed    bool      `json:"removed,omitzero"`
	// Value is the document as it was stored.
	Value jsontext.Value `json:"value"`
}

// SetRevision sets Until, unless the revision was imported.
func (r *Revision) SetRevision(revision int64) {
	if r.Origin == "" {
		r.Until = revision
	}
}

// Stood reports whether the document stood at a revision.
func (r *Revision) Stood(revision int64) bool {
	return r.Since <= revision && (revision < r.Until || r.Until == 0 && r.Origin != "")
}

// Origin is a store that decided imported rows. Revisions in these rows are numbers of that store.
type Origin struct {
	// ID is the id of the export that took the rows out of the store.
	ID string `json:"id"`
	// Chains are the ids of the store's chains in lower-case hex, in ascending order.
	Chains []string `json:"chains"`
	// Forgotten is later than all intents were issued whose removed decisions the store has forgotten, or one from
	// which it imported the rows. It is zero if there is none.
	Forgotten time.Time `json:"forgotten,omitzero"`
}

// Document returns the document as the store had it.
func (r *Revision) Document(org string) Document {
	return Document{Kind: r.DocumentKind(), Org: org, ID: r.ID, Value: r.Value,
		Revision: uint64(max(r.Since, 0))} //nolint:gosec // not negative
}

// DocumentKind returns the document's kind, or 0 if Of names no document.
func (r *Revision) DocumentKind() Kind {
	if len(r.Of) != 1 {
		return 0
	}
	return Kind(r.Of[0])
}

// DocumentID returns the id of the revision in its collection.
func (r *Revision) DocumentID() string {
	return RevisionsFrom(r.Origin) + RevisionID(r.DocumentKind(), r.ID, r.Since)
}

// Loaded says which rules, lists and libraries may have decided.
type Loaded struct {
	// Through is the greatest revision of a rule, a list or a library that was read to decide by it.
	Through int64 `json:"through"`
}

// imported is the first byte of the ids of imported revisions. It is no [Kind].
const imported = 1

// RevisionsFrom returns the beginning of the ids of an origin's revisions. An id of [RevisionID]
// follows. It is empty for the revisions of this store.
func RevisionsFrom(origin string) string {
	if origin == "" {
		return ""
	}
	return string(AppendText([]byte{imported}, origin))
}

// IsImportedRevision reports whether an id of a [Revision] is one of an imported revision.
func IsImportedRevision(id string) bool { return id != "" && id[0] == imported }

// RevisionID returns the id of a [Revision] of this store: a byte for the kind of the document, the key of its id,
// and 8 bytes for since, as in [VersionID]. So the newest revision of a document comes first.
func RevisionID(kind Kind, id string, since int64) string {
	return string([]byte{byte(kind)}) + VersionID(id, since)
}

// ParseRevisionID returns what [RevisionID] got.
func ParseRevisionID(position []byte) (kind Kind, id string, since int64, err error) {
	n := len(position) - 8
	if n < 1 {
		return 0, "", 0, fmt.Errorf("%x is no id of a revision", position)
	}
	if id, err = parseText(position[1:n]); err != nil {
		return 0, "", 0, err
	}
	return Kind(position[0]), id, int64(^binary.BigEndian.Uint64(position[n:]) ^ 1<<63), nil //nolint:gosec // any value
}

// parseText is the inverse of [Text].
func parseText(key []byte) (string, error) {
	body, ok := bytes.CutSuffix(key, []byte{0, 1})
	text := bytes.ReplaceAll(body, []byte{0, 0xff}, []byte{0})
	if !ok || !bytes.Equal(Text(string(text)), key) {
		return "", fmt.Errorf("%x is no key of a text", key)
	}
	return string(text), nil
}

// Retire keeps the current revision of a document that the update is about to replace or remove. It
// keeps nothing if nothing can have been decided under this revision, because no process has loaded it.
// Without such a document it does nothing.
func Retire(tx Tx, kind Kind, org, id string, removed bool, at time.Time) error {
	d, err := tx.Get(kind, org, id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	loaded, err := AllLoaded.Get(tx, org, "")
	since := int64(min(d.Revision, math.MaxInt64)) //nolint:gosec // limited to MaxInt64
	if errors.Is(err, ErrNotFound) || err == nil && loaded.Through < since {
		return nil
	}
	if err != nil {
		return err
	}
	return Revisions.Put(tx, org, &Revision{Of: string(rune(kind)), ID: id, Since: since,
		ReplacedAt: at.UTC().Truncate(time.Millisecond), Removed: removed, Value: d.Value})
}
