package storage

import (
	"context"
	"time"
)

// Kind says what a document is, and which collection it is in. Its values are
// stored: none may change its meaning.
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
	// Org is the organization. With Every the query goes on with the organizations after it,
	// in the backend's order, and From applies to Org alone.
	Org   string
	Every bool
	// Index is one of the collection's, 0 the order of ids.
	Index Index
	// Prefix begins the positions. From, if not nil, is where to start.
	Prefix, From []byte
	// Bare leaves out the values, which costs less.
	Bare bool
}

// Reader reads one state of the documents. It may be used until the function that got it
// returns, by one goroutine at a time.
type Reader interface {
	// Get returns the document, or ErrNotFound. In a Global collection org is ignored.
	Get(kind Kind, org, id string) (Document, error)
	// Scan calls f for the documents that q selects until it returns false or an
	// error, which is returned. f may call Get and Scan, and must not write. The
	// position and the value are valid during the call only.
	Scan(q Query, f func(position []byte, d Document) (more bool, err error)) error
}

// Tx is a Reader that sees its own writes. Nobody else sees them before the commit.
type Tx interface {
	Reader
	// Put stores or replaces a document, whose organization must be the update's,
	// and writes its keys as the collection makes them. In a Global collection it
	// must be an error when another organization has the id.
	Put(d Document) error
	// Delete removes a document, or returns ErrNotFound.
	Delete(kind Kind, org, id string) error
}

// MaxAge is how long caches are trusted without proof that no change was missed: see
// [Documents.FreshFor]. Backends rely on it when they give up a handle.
const MaxAge = 2 * time.Second

// Documents keeps the documents of [Collections].
type Documents interface {
	// View calls f with one state, which includes every earlier commit.
	View(ctx context.Context, f func(Reader) error) error
	// Update calls f and commits its writes: all of them, or none if f or the commit
	// fails. f's error must be returned unchanged. Updates of one organization must be
	// serializable. f may be called more than once, and must call the store only through
	// its Tx. The revision is the commit's and greater than every earlier revision of the
	// store. If f wrote nothing, nothing is committed and the revision is 0.
	Update(ctx context.Context, org string, f func(Tx) error) (revision uint64, err error)

	// Watch calls f for every [Change] from now on, in order, each once: for an own change
	// before the Update that made it returns, and for a change of another handle when it
	// is heard. The change must be visible to reads by then. If changes may be missing, f
	// gets one of the kind EverythingChanged in their place. A document that an
	// Update writes more than once is one change. An Update that fails or writes nothing
	// makes none. f must not block and must not call the store or stop. No call is under
	// way when stop returns.
	Watch(f func(Change)) (stop func())
	// FreshFor returns the age of the last proof that Watch has missed nothing. It is 0 if
	// nobody else writes.
	FreshFor() time.Duration
	// Barrier returns nil once every live handle has heard every change that was committed
	// before the call. A handle that has ceased to be live must not append from then on.
	Barrier(ctx context.Context) error
	// Leads reports whether this handle does the work that is done once for all handles,
	// such as retention. For some seconds after a handle is opened or lost, no handle may
	// lead. If clocks run at different speeds, two may lead, so doing the work twice must
	// be harmless.
	Leads() bool

	// Changes returns the first changes after a revision, at least max of them if there
	// are so many, and all or none of a revision. Trimmed changes are left out.
	Changes(ctx context.Context, after uint64, max int) ([]Change, error)
	// Trim forgets the changes up to a revision.
	Trim(ctx context.Context, upTo uint64) error
}
