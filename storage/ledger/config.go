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

	"writ/storage"
	"writ/storage/lease"
	"writ/storage/receipt"
)

// Mode says how much of a request the history keeps.
type Mode string

const (
	// Minimal keeps ids, that of the credential that asked too, the policy's
	// version, the action type, the resource without user info, query and
	// fragment, the cost, the metadata's keys, the decision, its reasons and
	// digests, and times. It is the default.
	Minimal Mode = "minimal"
	// Full keeps the metadata's values too. Either mode scrubs what it keeps.
	Full Mode = "full"
)

// Scrubber takes secrets out of what a record keeps of an intent. It must be
// safe for concurrent use and quick where there are none: every decision asks it.
type Scrubber interface {
	// Text returns what may be kept of a text that identifies nobody.
	Text(s string) string
	// Identity returns what may be kept of a text that rows are told apart and
	// found by: equal for equal texts, different for different ones.
	Identity(s string) string
	// Resource returns what may be kept of a resource, given as it was written
	// and as its projection. Like Identity it makes no two projections one.
	Resource(raw, projection string) string
	// Values returns what may be kept of the values of metadata, under the keys
	// that they have.
	Values(metadata map[string]string) map[string]string
}

// Store is where a Ledger keeps what it makes final.
type Store interface {
	storage.Log
	lease.Store
	// Record returns the record of a decision, or storage.ErrNotFound.
	Record(ctx context.Context, org, decisionID string) (*storage.Record, error)
}

// Config is what a Ledger works with. Store, Signer and Scrub are required.
type Config struct {
	// Store makes batches durable. It must bound the time that its calls take:
	// everyone waits for the batch that is being written. No other ledger may
	// write by the same handle.
	Store Store
	// Signer signs the batches, until [Ledger.SignWith] names another. Heads of
	// earlier keys stay where they are in the chain.
	Signer *receipt.Signer
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// TTL is how long a receipt can be acted upon, in whole seconds: the
	// deployment's RECEIPT_TTL. Zero is DefaultTTL.
	TTL time.Duration
	// Audit is how much of a request is kept, Minimal if empty.
	Audit Mode
	// Scrub judges everything that a caller chose freely, in either mode.
	Scrub Scrubber
	// Writer names this writer in each record, where a store has several. It may be
	// empty.
	Writer string
	// Log hears of failing commits, once for each episode. Nil discards.
	Log *slog.Logger
	// Metrics is where the ledger registers its metrics until it is closed. Nil
	// registers nowhere.
	Metrics prometheus.Registerer
	// QueueLimit is how many commits may wait for the next batch; more are
	// refused with ErrOverloaded. Zero is DefaultQueueLimit.
	QueueLimit int

	signer *atomic.Pointer[receipt.Signer] // that signs now
}

// The defaults of Config.
const (
	DefaultTTL        = 300 * time.Second
	DefaultQueueLimit = 8192
)

// withDefaults returns c with its zero values filled in, or why it can't work.
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
