package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
	"writ.example/writ/storage/receipt"
)

// Mode says how much of a request the history keeps.
type Mode string

const (
	// Minimal is the default. It keeps all ids, including the credential's, and the
	// policy's version. Of the intent it keeps the action type, the resource without user
	// info, query and fragment, the cost, and the keys of the metadata. It also keeps the
	// decision with its reasons and digests, and all times.
	Minimal Mode = "minimal"
	// Full keeps the metadata's values too. Both modes scrub what they keep.
	Full Mode = "full"
)

// Scrubber removes secrets from the fields of a record. It must be safe for concurrent
// use. It must be quick for text without secrets, because every decision calls it.
type Scrubber interface {
	// Text scrubs a text that identifies nobody.
	Text(s string) string
	// Identity scrubs a text by which rows are looked up. Equal texts give equal results,
	// and different texts give different results.
	Identity(s string) string
	// Name scrubs folded as Identity does. It also hides a secret that only raw shows, of which
	// folded is the folded form.
	Name(raw, folded string) string
	// Resource scrubs a resource. raw is the resource as it was written. projection is
	// the part of it that is kept. Different projections give different results, as with
	// Identity.
	Resource(raw, projection string) string
	// Values scrubs the values of metadata, under the same keys.
	Values(metadata map[string]string) map[string]string
}

// Store keeps decisions, entries and meters.
type Store interface {
	storage.Log
	lease.Store
	// Scarce is of storage.Quotas.
	Scarce(ctx context.Context, meters []storage.Window) ([]bool, error)
	// Record returns the record of a decision, or storage.ErrNotFound.
	Record(ctx context.Context, org, decisionID string) (*storage.Record, error)
}

// Config configures a Ledger. Store, Signer and Scrub are required.
type Config struct {
	// Store makes batches durable. Its calls must take a bounded time, because all
	// callers wait for the batch that is being written. No other ledger may use the same
	// handle.
	Store Store
	// Signer signs the batches until [Ledger.SignWith] replaces it. Heads that earlier
	// keys signed stay in the chain.
	Signer *receipt.Signer
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// TTL is how long a receipt is valid, in whole seconds: the deployment's
	// RECEIPT_TTL. Zero is DefaultTTL.
	TTL time.Duration
	// Audit is how much of a request is kept, Minimal if empty.
	Audit Mode
	// Scrub removes secrets from everything that a caller can choose freely, in both modes.
	Scrub Scrubber
	// Writer names this writer in its records, if the store has several. It may be empty.
	Writer string
	// Log gets one line when commits begin to fail and one line when they succeed again.
	// If Log is nil, these lines are discarded.
	Log *slog.Logger
	// Metrics is where the ledger registers its metrics until it is closed. If Metrics is
	// nil, they are not registered.
	Metrics prometheus.Registerer
	// QueueLimit is the number of commits that may wait for the next batch. Further
	// commits are refused with ErrOverloaded. Zero is DefaultQueueLimit.
	QueueLimit int
	// LeastRest is the shortest pause after a commit of several callers: see [committer.run]. It is for
	// a store that answers before its disk does. Its commits take so little time that a pause as long
	// would gather few callers.
	LeastRest time.Duration

	signer *atomic.Pointer[receipt.Signer] // the current signer
}

// The defaults of Config.
const (
	DefaultTTL        = 300 * time.Second
	DefaultQueueLimit = 8192
)

// withDefaults returns c with defaults in place of its zero values. It returns an error
// if c is invalid.
func (c Config) withDefaults() (Config, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.TTL = cmp.Or(c.TTL, DefaultTTL)
	c.Audit = cmp.Or(c.Audit, Minimal)
	c.QueueLimit = cmp.Or(c.QueueLimit, DefaultQueueLimit)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.signer = new(atomic.Pointer[receipt.Signer])
	c.signer.Store(c.Signer)
	return c, c.check()
}

func (c Config) check() error {
	switch {
	case c.Store == nil:
		return errors.New("no store")
	case c.Signer == nil:
		return errors.New("no signer")
	case c.TTL < time.Second || c.TTL%time.Second != 0:
		return fmt.Errorf("receipt lifetime %v: want whole seconds, at least one", c.TTL)
	case c.QueueLimit < 0:
		return fmt.Errorf("queue limit %d: want a positive number", c.QueueLimit)
	case c.Audit != Minimal && c.Audit != Full:
		return fmt.Errorf("audit mode %q: want %s or %s", c.Audit, Minimal, Full)
	case c.Scrub == nil:
		return errors.New("no scrubber: what callers send is never stored raw")
	}
	return nil
}
