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
	// Of is the document's kind as a text, and ID is its id in the organization.
	Of string `json:"of"`
	ID string `json:"id"`
	// Since is the revision of the commit that wrote the document. Until is the revision of the commit
	// that replaced or removed it. The document stood at every revision from Since to before Until.
	Since int64 `json:"since"`
	Until int64 `json:"-"` // it is the revision of this document
	// ReplacedAt is the time of the commit Until. Removed says that it removed the document.
	ReplacedAt time.Time `json:"replaced_at"`
	Removed    bool      `json:"removed,omitzero"`
	// Value is the document as it was stored.
	Value jsontext.Value `json:"value"`
}

// SetRevision sets Until.
func (r *Revision) SetRevision(revision int64) { r.Until = revision }

// Document returns the document as the store had it.
func (r *Revision) Document(org string) Document {
	return Document{Kind: r.kind(), Org: org, ID: r.ID, Value: r.Value,
		Revision: uint64(max(r.Since, 0))} //nolint:gosec // not negative
}

func (r *Revision) kind() Kind {
	if len(r.Of) != 1 {
		return 0
	}
	return Kind(r.Of[0])
}

// Loaded says which rules, lists and libraries may have decided.
type Loaded struct {
	// Through is the greatest revision of a rule, a list or a library that was read to decide by it.
	Through int64 `json:"through"`
}

// RevisionID returns the id of a [Revision]: a byte for the kind of the document, the key of its id,
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
