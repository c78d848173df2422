package storage

import (
	"context"
	"time"
)

// Kind says what a document is, and which collection it is in. Stores contain the values of
// Kind, so no value may change its meaning.
type Kind byte

// The kinds of document.
const (
	PolicyKind       Kind = 'p' // a version of a policy
	RuleKind         Kind = 'r'
	AgentKind        Kind = 'a'
	TokenKind        Kind = 't'
	SubscriptionKind Kind = 's'
	CountsKind       Kind = 'c'
	PublicKeyKind    Kind = 'k'
	DetailsKind      Kind = 'd'
	ImportKind       Kind = 'I'
	WebhookKind      Kind = 'w'
	DeliveryKind     Kind = 'e'
	OutboxKind       Kind = 'o'
	ListKind         Kind = 'l'
	SessionKind      Kind = 'S'
)

// Document is a stored document of an organization. Its id is unique in its collection and
// organization.
type Document struct {
	Kind  Kind
	Org   string
	ID    string
	Value []byte
	// Revision is the revision of the commit that wrote the document. Put sets it.
	Revision uint64
}

// Query selects documents of a collection, in the order of their positions. A position is the
// id or, in an index, the key followed by the id. Positions are in the order of their bytes.
type Query struct {
	Kind Kind
	// Org is the organization. If Every is true, the query continues with all organizations
	// after Org, in the backend's order. From then applies to Org alone.
	Org   string
	Every bool
	// Index is an index of the collection. 0 is the order of ids.
	Index Index
	// Prefix is the beginning of all selected positions. From, if not nil, is the first
	// position to return.
	Prefix, From []byte
	// Bare leaves out the values of the documents. Such a query costs less.
	Bare bool
}

// Reader reads one state of the documents. A function that gets a Reader may use it until the
// function returns, by one goroutine at a time.
type Reader interface {
	// Get returns the document, or ErrNotFound. In a Global collection org is ignored.
	Get(kind Kind, org, id string) (Document, error)
	// Scan calls f for the documents that q selects until f returns false or an error. Scan
	// returns the error of f. f may call Get and Scan, and must not write. The position and the
	// value are valid only during the call.
	Scan(q Query, f func(position []byte, d Document) (more bool, err error)) error
}

// Tx is a Reader that sees its own writes. Nobody else sees them before the commit.
type Tx interface {
	Reader
	// Put stores or replaces a document and its keys in the indexes. The document's
	// organization must be the organization of the update. Put must return an error if the
	// collection is Global and another organization has a document with the id.
	Put(d Document) error
	// Delete removes a document, or returns ErrNotFound.
	Delete(kind Kind, org, id string) error
}

// MaxAge is how long caches are trusted without a new proof that no change was missed, see
// [Documents.FreshFor]. Backends rely on MaxAge when they give up a handle.
const MaxAge = 2 * time.Second

// Documents keeps the documents of [Collections].
type Documents interface {
	// View calls f with a reader of one state, which includes every earlier commit.
	View(ctx context.Context, f func(Reader) error) error
	// Update calls f and commits its writes. If f or the commit fails, none of the writes is
	// stored. An error of f must be returned unchanged. Updates of one organization must be
	// serializable. f may be called more than once, and must call the store only through its
	// Tx. Update returns the revision of the commit, which is greater than every earlier
	// revision of the store. If f wrote nothing, nothing is committed and the revision is 0.
	Update(ctx context.Context, org string, f func(Tx) error) (revision uint64, err error)

	// Watch calls f once for every [Change] from now on, in order. For a change of this handle
	// it calls f before the Update returns. For a change of another handle it calls f when this
	// handle hears of the change. When f is called, the change must be visible to reads. If
	// changes may be missing, f gets a change of the kind EverythingChanged in their place. A
	// document that an Update writes more than once is one change. An Update that fails or
	// writes nothing makes no change. f must not block and must not call the store or stop.
	// When stop returns, no call of f is under way.
	Watch(f func(Change)) (stop func())
	// FreshFor returns the age of the last proof that Watch has missed nothing. It is 0 if
	// nobody else writes.
	FreshFor() time.Duration
	// Barrier returns nil once every live handle has heard every change that was committed
	// before the call. A handle that has ceased to be live must not append from then on.
	Barrier(ctx context.Context) error
	// Leads reports whether this handle does the work that is done once for all handles, such
	// as retention. For some seconds after a handle is opened or lost, no handle may lead. If
	// clocks run at different speeds, two handles may lead. So the work must be harmless if it
	// is done twice.
	Leads() bool

	// Changes returns the first changes after a revision. It returns at least max changes if
	// there are so many. Of each revision it returns all changes or none. Trimmed changes are
	// left out.
	Changes(ctx context.Context, after uint64, max int) ([]Change, error)
	// Trim removes the changes up to and including a revision from the history of changes.
	Trim(ctx context.Context, upTo uint64) error
}
