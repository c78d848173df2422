package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"writ.example/writ/api/operator"
	"writ.example/writ/api/webhook"
	"writ.example/writ/decision"
)

// Scrubber finds secrets in texts and replaces them. It must be safe for concurrent use.
type Scrubber interface {
	// Text returns text with its secrets replaced. Calling Text again with the result changes
	// nothing.
	Text(text string) string
	// Values returns metadata with the secrets in its values replaced. The keys are unchanged.
	Values(metadata map[string]string) map[string]string
	// Identity returns the form in which an identity, such as an agent's id, may be stored.
	Identity(text string) string
	// Spellings returns every text that the history may have stored for an identity.
	Spellings(identity string) []string
	// Tagged reports whether text contains a tag. A tag replaces a secret in a stored identity.
	Tagged(text string) bool
	// Search returns a function that looks for a secret in the values of one document. The function
	// takes a value and its name, which may be empty. It returns the kind of the first secret
	// found.
	Search() func(name, value string) (kind string, found bool)
}

// Config configures a Server. Decisions, Scrub, JWKS and Registry are required. The Server closes none of them.
type Config struct {
	// Decisions decides intents and holds the documents and the history.
	Decisions *decision.Service
	// Scrub removes secrets from texts before they are stored. It must be the scrubber of
	// Decisions, because searches look for the texts that Decisions has stored.
	Scrub Scrubber
	// Operators says which operator tokens are accepted. API keys are always accepted.
	Operators operator.Config
	// JWKS returns the public keys of receipts as a JSON Web Key Set. It is called for each request, so that keys can
	// rotate.
	JWKS func() []byte
	// Registry is where the server registers its metrics. /metrics of the admin address shows all metrics of Registry.
	Registry *prometheus.Registry
	// Log receives messages for operators. Nil discards them.
	Log *slog.Logger
	// Tracer makes a span of each request. Decisions must have the same. If it is nil, there are no spans.
	Tracer trace.Tracer
	// Hosted has the data for GET /v1/hosted/config.
	Hosted Hosted
	// ServiceToken is the bearer token of GET /v1/ops/usage. If it is empty, that route always
	// answers 401.
	ServiceToken string
	// Billing sells plans. It is nil if billing is not configured.
	Billing Billing
	// ConsoleSecret is where the key of the console's cookies comes from. Replicas must have the same.
	// If it is empty, the cookies end with the process.
	ConsoleSecret []byte
	// Reload reads the settings of the deployment again, for POST /reload of the admin address. It says what has
	// changed. If it is nil, there is no such path.
	Reload func() (said string, err error)
	// Backup makes a backup with the given name, for POST /backup/{name} of the admin address, and says what it has.
	// If it is nil, there is no such path.
	Backup func(ctx context.Context, name string) (said string, err error)
	// Inspect writes the answers to GET of further paths of the admin address, by path. An answer has no secrets.
	Inspect map[string]func(ctx context.Context, w io.Writer) error
	// Freeze returns the state of the store, for exports of organizations.
	Freeze func(ctx context.Context) (Frozen, error)
	// Webhooks says which addresses webhooks may have.
	Webhooks webhook.Targets
	// Limits bound the resources of one caller. Zero fields have defaults.
	Limits Limits
	// RateLimits bound how often one caller can send requests. A zero field means no limit.
	RateLimits RateLimits
}

// Limits bound the resources of one caller.
type Limits struct {
	// Body is the greatest length of a request body, in bytes.
	Body int
	// Header is the greatest length of a request line with all headers, in bytes.
	Header int
	// Connections bounds the open connections. Further connections wait to be accepted.
	Connections int
	// AddressConnections bounds the open connections of one address. Further connections are closed
	// at once. The trusted proxies of RateLimits have no such limit.
	AddressConnections int
	// Read bounds the time from the first byte of a request to its last. Write bounds the time in
	// which the client reads the answer. Idle bounds the time between two requests of a connection.
	Read, Write, Idle time.Duration
	// Handle bounds the time in which the server handles a request.
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

// withDefaults returns c with its zero fields set to defaults. It returns an error if c is not
// valid.
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
