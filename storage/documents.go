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
	PolicyKind       Kind = 'p' // a policy's version
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
	LibraryKind      Kind = 'b'
	RevisionKind     Kind = 'v'
	LoadedKind       Kind = 'L'
	SinkKind         Kind = 'f'
	StopKind         Kind = 'O'
	OriginKind       Kind = 'g'
	IntentAgeKind    Kind = 'A'
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

// Query selects documents of a collection, in the order of their positions. In the order of ids, a
// document's position is its id. In an index, it is the key followed by the id. Positions are
// compared by their bytes.
type Query struct {
	Kind Kind
	// Org is the organization. If Every is true, the query continues with the organizations after
	// Org, in an order that the backend chooses. q.From then applies only to Org.
	Org   string
	Every bool
	// Index is an index of the collection. ByID, which is 0, is the order of ids.
	Index Index
	// Prefix is the beginning of all selected positions. The other field is the first position to
	// return. If it is nil, the query begins at the first.
	Prefix, From []byte
	// Bare leaves out the values of the documents, which makes the query cheaper.
	Bare bool
}

// Reader reads one state of the documents. A function may use its Reader until it returns, in one
// goroutine at a time.
type Reader interface {
	// Get returns the document, or ErrNotFound. In a Global collection org is ignored.
	Get(kind Kind, org, id string) (Document, error)
	// Scan calls f for each selected document until f returns false or an error. Scan returns the
	// error of f. f may call Get and Scan, but must not write. position and d.Value are valid only
	// during the call of f.
	Scan(q Query, f func(position []byte, d Document) (more bool, err error)) error
}

// Prefetcher is a Reader that can read several ranges of documents in one request to a server.
type Prefetcher interface {
	// Prefetch reads what queries select. A later Get or Scan in the order of ids within one of them
	// asks no server. The queries must be in the order of ids, each of one organization.
	Prefetch(queries ...Query) error
}

// Prefetch calls r's Prefetch if r is a [Prefetcher].
func Prefetch(r Reader, queries ...Query) error {
	if p, ok := r.(Prefetcher); ok && len(queries) > 0 {
		return p.Prefetch(queries...)
	}
	return nil
}

// Tx is a Reader that sees its own writes. No other reader sees these writes before the commit.
type Tx interface {
	Reader
	// Put stores or replaces a document and its keys in the indexes. The document's
	// organization must be the organization of the update. Put must return an error if the
	// collection is Global and another organization has a document with the id.
	Put(d Document) error
	// Delete removes a document, or returns ErrNotFound.
	Delete(kind Kind, org, id string) error
}

// MaxAge bounds how long a cache is trusted without a new proof that no change was missed, see
// [Documents.FreshFor]. A backend may give up a handle only after this time.
const MaxAge = 2 * time.Second

// Documents keeps the documents of [Collections].
//
// Each organization has its own order. It is the order of the revisions of its updates. Updates of different
// organizations have no order: a backend may number them apart, and their changes may be heard in any order. A
// document of a Global collection belongs to the order of its organization, such as a key. So does a plan.
// Documents that have no organization, such as public keys, belong to the order of the organization "".
type Documents interface {
	// View calls f with a reader of one state. The state includes every earlier commit.
	View(ctx context.Context, f func(Reader) error) error
	// Update calls f and commits its writes. If f or the commit fails, none of the writes is
	// stored. An error of f must be returned unchanged. Updates of one organization must be
	// serializable. Update may call f more than once. f must use only its Tx to call the store.
	// Update returns the revision of the commit, which is greater than every earlier revision of
	// the organization. If f wrote nothing, nothing is committed and the revision is 0.
	Update(ctx context.Context, org string, f func(Tx) error) (revision uint64, err error)

	// Watch calls f once for every later [Change]. The changes of one organization come in their
	// order. If this handle makes a change, Watch calls f before the Update returns. If another
	// handle makes the change, Watch calls f when this handle learns of it. Reads must return the
	// change before f is called. If changes may be missing, Watch calls f with the kind
	// EverythingChanged instead. Some of these changes may still come after it. If an Update writes
	// a document more than once, that is one change. An Update that fails or writes nothing makes no
	// change. f must not block and must not call the store or stop. When stop returns, no call of f
	// is running.
	Watch(f func(Change)) (stop func())
	// FreshFor returns the age of the last proof that Watch has missed no change. It is 0 if no
	// other handle can write.
	FreshFor() time.Duration
	// Barrier returns nil once every live handle has received every change, of any organization,
	// that an Update of this handle has made before the call. If an Update has found a change of
	// another handle and wrote nothing, Barrier waits for that change, too. A handle that is no
	// longer live must never append again.
	Barrier(ctx context.Context) error
	// Leads reports whether this handle does the work that only one handle needs to do, such as
	// retention. For some seconds after a handle is opened or lost, no handle may lead. If clocks
	// run at different speeds, two handles may lead. So the work must be harmless if two handles do
	// it.
	Leads() bool

	// Changes returns changes that were not trimmed. The changes of one organization are in their
	// order. It returns at least max changes if so many exist. It never returns only a part of a
	// revision. after is the last change of an earlier call, or the zero Change.
	Changes(ctx context.Context, after Change, max int) ([]Change, error)
	// Trim removes the revisions of changes, which Changes has returned, from the history of
	// changes. All other changes stay, also if they come before these.
	Trim(ctx context.Context, changes []Change) error
}
