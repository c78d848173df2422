package api

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ/api/operator"
	"writ/api/webhook"
	"writ/decision"
)

// Scrubber knows secrets when it sees them. It must be safe for concurrent use.
type Scrubber interface {
	// Text returns text with its secrets replaced. Doing so twice is doing so once.
	Text(text string) string
	// Values returns the values of metadata with their secrets replaced, under their keys.
	Values(metadata map[string]string) map[string]string
	// Identity returns what may be kept of a text that somebody is known by.
	Identity(text string) string
	// Spellings returns every text that the history may hold for an identity.
	Spellings(identity string) []string
	// Tagged reports whether text holds what the history writes for a secret in an
	// identity.
	Tagged(text string) bool
	// Search returns a function for the values of one document, which returns the
	// kind of the first secret in a value with a name; that may be empty.
	Search() func(name, value string) (kind string, found bool)
}

// Config is what a Server works with. Decisions, Scrub, JWKS and Registry are required;
// the Server closes none of them.
type Config struct {
	// Decisions decides, and has the documents and the history.
	Decisions *decision.Service
	// Scrub keeps secrets out of the store. It must be the scrubber of Decisions: searches
	// look for the texts that it would have stored.
	Scrub Scrubber
	// Operators says which operator tokens are accepted. API keys always are.
	Operators operator.Config
	// JWKS returns the public keys of receipts as a JSON Web Key Set. It is
	// called for each request, so that keys can rotate.
	JWKS func() []byte
	// Registry is where the server registers its metrics and what /metrics of
	// the admin address shows.
	Registry *prometheus.Registry
	// Log hears of what operators must know. Nil discards.
	Log *slog.Logger
	// Hosted is what GET /v1/hosted/config tells.
	Hosted Hosted
	// ServiceToken is the bearer of GET /v1/ops/usage, which answers 401 to
	// everyone while it is empty.
	ServiceToken string
	// Billing sells plans; nil if billing is not configured.
	Billing Billing
	// Webhooks says where webhooks may be.
	Webhooks webhook.Targets
	// Limits bound what one caller can take; zero fields have defaults.
	Limits Limits
	// RateLimits bound how often one caller can ask; zero fields are off.
	RateLimits RateLimits
}

// Limits bound what one caller can take.
type Limits struct {
	// Body is the greatest request body, in bytes.
	Body int
	// Header is the greatest request line with all headers, in bytes.
	Header int
	// Connections is how many may be open; more wait to be accepted.
	Connections int
	// AddressConnections is how many may be open from one address; more are
	// closed at once. The trusted proxies of RateLimits have no such limit.
	AddressConnections int
	// Read bounds the time from a request's first byte to its last, Write the
	// time to take an answer, Idle the time between requests of a connection.
	Read, Write, Idle time.Duration
	// Handle bounds the time to work on a request.
	Handle time.Duration
}

// DefaultLimits are the limits of a Config that sets none.
func DefaultLimits() Limits {
	return Limits{
		Body:               256 << 10,
		Header:             16 << 10,
		Connections:        16384,
		AddressConnections: 4096,
		Read:               10 * time.Second,
		Write:              10 * time.Second,
		Idle:               120 * time.Second,
		Handle:             10 * time.Second,
	}
}

// withDefaults returns c with its zero values filled in, or why it can't work.
func (c Config) withDefaults() (Config, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Hosted = c.Hosted.withDefaults()
	c.Limits = c.Limits.withDefaults()
	return c, errors.Join(c.check(), c.Hosted.check(), c.RateLimits.check())
}

func (c Config) check() error {
	switch {
	case c.Decisions == nil:
		return errors.New("no decision service")
	case c.JWKS == nil:
		return errors.New("no public keys of receipts")
	case c.Scrub == nil:
		return errors.New("no scrubber")
	case c.Registry == nil:
		return errors.New("no metrics registry")
	}
	return nil
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	orDefault(&l.Body, d.Body)
	orDefault(&l.Header, d.Header)
	orDefault(&l.Connections, d.Connections)
	orDefault(&l.AddressConnections, d.AddressConnections)
	orDefault(&l.Read, d.Read)
	orDefault(&l.Write, d.Write)
	orDefault(&l.Idle, d.Idle)
	orDefault(&l.Handle, d.Handle)
	return l
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}
