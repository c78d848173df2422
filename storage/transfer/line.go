package transfer

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// format is the format that Export writes. Import also reads the formats before. A file of
// [withoutRevisions] has no revisions. A file of [withoutFindings] also has no findings in its rows.
const (
	format           = "writ-export/4"
	withoutRevisions = "writ-export/3"
	withoutFindings  = "writ-export/2"
)

// Header is the first line of a file.
type Header struct {
	Format         string    `json:"format"`
	ID             string    `json:"id"`
	OrganizationID string    `json:"organization_id"`
	ExportedAt     time.Time `json:"exported_at"`
	Last           string    `json:"last"`
	// Forgotten is later than all intents were issued whose removed decisions the store has forgotten. It is absent if
	// there is none.
	Forgotten time.Time      `json:"forgotten,omitzero"`
	Keys      jsontext.Value `json:"keys"`
}

// Footer is the last line of a file.
type Footer struct {
	Rows      int64  `json:"rows"`
	Settled   int64  `json:"settled"`
	Removed   int64  `json:"removed"`
	Documents int64  `json:"documents"`
	Root      string `json:"root"`
	Digest    string `json:"digest"`
}

// String describes f for users.
func (f *Footer) String() string {
	return fmt.Sprintf("%d rows (%d settled), %d removed rows and %d documents, of root %.80s and digest %.80s",
		f.Rows, f.Settled, f.Removed, f.Documents, f.Root, f.Digest)
}

// line is a line of the file. Exactly one member is set.
type line struct {
	Header   *Header         `json:"header,omitzero"`
	Row      *storage.Record `json:"row,omitzero"`
	Removed  *removed        `json:"removed,omitzero"`
	Document *document       `json:"document,omitzero"`
	Footer   *Footer         `json:"footer,omitzero"`
	// Part ends a part that is not the last: see [Part].
	Part *Footer `json:"part,omitzero"`
}

// members returns the number of members that are set.
func (l *line) members() (n int) {
	for _, is := range []bool{l.Header != nil, l.Row != nil, l.Removed != nil, l.Document != nil, l.Footer != nil,
		l.Part != nil} {
		if is {
			n++
		}
	}
	return n
}

// id returns the decision id of a row or removed row.
func (l *line) id() string {
	switch {
	case l.Row != nil:
		return l.Row.DecisionID
	case l.Removed != nil:
		return l.Removed.DecisionID
	}
	return ""
}

type removed struct {
	IntentID   string `json:"intent_id"`
	ApprovalID string `json:"approval_id,omitzero"`
	DecisionID string `json:"decision_id"`
	Leaves     []leaf `json:"leaves"`
}

type leaf struct {
	Chain string `json:"chain"`
	Seq   uint64 `json:"seq"`
	Index uint32 `json:"index"`
	Hash  string `json:"hash"`
}

func removedOf(t *storage.Tombstone) *removed {
	r := &removed{IntentID: t.IntentID, ApprovalID: t.ApprovalID, DecisionID: t.DecisionID}
	for _, l := range t.Leaves {
		r.Leaves = append(r.Leaves,
			leaf{Chain: hex.EncodeToString(l.Chain[:]), Seq: l.Seq, Index: l.Index,
				Hash: hex.EncodeToString(l.Hash[:])})
	}
	return r
}

func (r *removed) tombstone(org string) (*storage.Tombstone, error) {
	t := &storage.Tombstone{OrganizationID: org, IntentID: r.IntentID, ApprovalID: r.ApprovalID,
		DecisionID: r.DecisionID, Imported: true}
	for _, l := range r.Leaves {
		next := receipt.Leaf{Seq: l.Seq, Index: l.Index}
		if !unhex(next.Chain[:], l.Chain) || !unhex(next.Hash[:], l.Hash) || l.Seq > 1<<53-1 {
			return nil, errors.New("one of its leaves is malformed")
		}
		t.Leaves = append(t.Leaves, next)
	}
	return t, nil
}

// unhex decodes lower-case hex into to. It returns false unless the text has exactly the length of
// to.
func unhex(to []byte, s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == len(to) && copy(to, b) == len(b) && hex.EncodeToString(b) == s
}

type document struct {
	Kind  string         `json:"kind"`
	ID    string         `json:"id"`
	Value jsontext.Value `json:"value"`
}

// carried has the collections of a file, in the file's order. Stops, agents and rules restrict, so
// they come before policies, which can allow actions. Keys come last, because nobody can authenticate
// without a key.
var carried = []*storage.Collection{
	&storage.Stops.Collection, &storage.Agents.Collection, &storage.Lists.Collection,
	&storage.Libraries.Collection, &storage.Rules.Collection,
	&storage.Subscriptions.Collection, &storage.AllCounts.Collection,
	&storage.AllDetails.Collection, &storage.Origins.Collection, &storage.Revisions.Collection,
	&storage.Policies.Collection, &storage.Tokens.Collection,
}

// place returns the position of a document in the order of the file. rank is the position of its
// kind in carried. id is its decoded id.
func (d *document) place() (rank int, id string, err error) {
	rank = slices.IndexFunc(carried, func(c *storage.Collection) bool { return c.Name == d.Kind })
	if rank < 0 {
		return 0, "", fmt.Errorf("a document of the kind %.32q", d.Kind)
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(d.ID)
	if err != nil {
		return 0, "", fmt.Errorf("the id of a document, %.64q, is not base64url without padding", d.ID)
	}
	return rank, string(decoded), nil
}

// stored returns the document in the form in which the store keeps it.
func (d *document) stored(org string) (storage.Document, error) {
	rank, id, err := d.place()
	if err != nil {
		return storage.Document{}, err
	}
	doc := storage.Document{Kind: carried[rank].Kind, Org: org, ID: id, Value: d.Value}
	if _, _, _, err := carried[rank].Describe(doc); err != nil {
		return doc, err
	}
	return doc, d.owned(doc)
}

// owned returns an error if doc must name its organization but does not. [storage.Collection]
// accepts a document without an organization. But a key without one would let its holder act for
// an organization with an empty name.
func (d *document) owned(doc storage.Document) error {
	switch doc.Kind {
	case storage.PolicyKind, storage.TokenKind, storage.SubscriptionKind:
	default:
		return nil
	}
	var says struct {
		OrganizationID string `json:"organization_id"`
	}
	if err := json.Unmarshal(doc.Value, &says); err != nil {
		return err
	}
	if says.OrganizationID != doc.Org {
		return fmt.Errorf("the %s is of organization %.64q, and the file of %.64q", d.Kind, says.OrganizationID,
			doc.Org)
	}
	return nil
}

// LineError is an error in a line of a file.
type LineError struct {
	Line       int    // the first line is 1
	DecisionID string // of a row or removed row; empty for other lines
	Err        error
}

func (e *LineError) Error() string {
	if e.DecisionID != "" {
		return fmt.Sprintf("line %d: decision %.64s: %v", e.Line, e.DecisionID, e.Err)
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

// ErrNotWhole means that a file has no footer.
var ErrNotWhole = errors.New("the file has no footer: it is not whole, go on with writ export --resume")

// reader reads a file line by line.
type reader struct {
	in     *bufio.Reader
	buf    []byte
	n      int       // the number of the last line
	offset int64     // the offset of the end of the last line
	before hash.Hash // hash of all lines before the last line
}

func newReader(in io.Reader) *reader {
	return &reader{in: bufio.NewReaderSize(in, 1<<20), before: sha256.New()}
}

// errPartial means that the last line has no line end.
var errPartial = errors.New("the last line is not ended")

// next returns the next line. At the end of the file it returns io.EOF. If the last line has no
// end, it returns errPartial.
func (r *reader) next() (*line, error) {
	const longest = 8 * storage.MaxBody // four times the longest row
	r.before.Write(r.buf)               // a hash never fails
	r.buf = r.buf[:0]
	for {
		piece, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, piece...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(r.buf) > 0 {
				err = errPartial
			}
			return nil, err
		}
		if len(r.buf) > longest {
			return nil, &LineError{Line: r.n + 1, Err: fmt.Errorf("it is longer than %d bytes", longest)}
		}
	}
	r.n++
	r.offset += int64(len(r.buf))
	l := new(line)
	err := json.Unmarshal(r.buf, l, json.RejectUnknownMembers(true))
	if err == nil && l.members() != 1 {
		err = errors.New("want one of header, row, removed, document, footer")
	}
	if err != nil {
		return nil, &LineError{Line: r.n, Err: fmt.Errorf("it is not a line of an export: %w", err)}
	}
	return l, nil
}

func digestOf(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }
