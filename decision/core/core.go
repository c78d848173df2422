package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
)

const (
	// defaultTimeout is the timeout if Config.Timeout is zero.
	defaultTimeout = time.Second
	// failuresToOpen is how many failures in a row open the breaker. openFor is how long the
	// breaker stays open before it lets one question through.
	failuresToOpen = 5
	openFor        = time.Second
)

// Config says which core is asked, and how. URL is required.
type Config struct {
	// URL is the address of the document that is asked for, such as
	// http://127.0.0.1:8181/v1/data/writ/core/result.
	URL string
	// Token is the bearer token for the core. If it is empty, no token is sent.
	Token string
	// Rules says that the rules are sent with every question, beside their digest.
	Rules bool
	// Timeout bounds the time of a question, from connecting to the last byte of the answer.
	Timeout time.Duration
	// Transport sends the questions. If it is nil, New makes one that keeps connections for
	// many concurrent questions. Redirects are never followed.
	Transport http.RoundTripper
	// Metrics is the registry in which the core registers its metrics. If it is nil, they are
	// not registered.
	Metrics prometheus.Registerer
	// Log gets a record when the breaker opens or closes, and when a question fails. Failed
	// questions with the same reason are logged at most every ten seconds. If Log is nil,
	// records are discarded.
	Log *slog.Logger

	failures int // for tests; zero means failuresToOpen
	openFor  time.Duration
}

// withDefaults returns c with defaults for its zero values. It returns an error if c is not
// valid. No error quotes the URL or the token, because both may be secret.
func (c Config) withDefaults() (Config, error) {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.failures = cmp.Or(c.failures, failuresToOpen)
	c.openFor = cmp.Or(c.openFor, openFor)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Transport == nil {
		c.Transport = newTransport()
	}
	switch {
	case c.Timeout < 0:
		return c, errors.New("timeout: want a positive duration")
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return c, errors.New("token: want printable ASCII without spaces")
	}
	return c, checkURL(c.URL)
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return errors.New("want an http(s) URL of a document, such as http://127.0.0.1:8181/v1/data/writ/core/result")
	case u.User != nil:
		return errors.New("the URL must not hold credentials: give the token by itself")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("the URL must have neither a query nor a fragment")
	}
	return nil
}

// newTransport returns a transport for many concurrent requests to one host.
func newTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxAnswer,
	}
}

// Core asks an external evaluation core. It is safe for concurrent use.
type Core struct {
	url     string
	token   string
	rules   bool
	timeout time.Duration
	client  *http.Client
	breaker *breaker
	metrics *metrics
	log     *failureLog
}

// New returns a Core for cfg. It does not connect yet, because a core may start after the
// service does.
func New(cfg Config) (*Core, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("configuring the evaluation core: %w", err)
	}
	c := &Core{
		url:     cfg.URL + "?strict-builtin-errors=true",
		token:   cfg.Token,
		rules:   cfg.Rules,
		timeout: cfg.Timeout,
		client: &http.Client{
			Transport:     cfg.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		breaker: newBreaker(cfg.failures, cfg.openFor, cfg.Log),
		log:     newFailureLog(cfg.Log),
	}
	if c.metrics, err = newMetrics(cfg.Metrics, c.breaker); err != nil {
		return nil, fmt.Errorf("configuring the evaluation core: %w", err)
	}
	return c, nil
}

// Evaluate asks the core to decide the intent of in under set. If there is an error, there is
// no decision. The error is an [*Error], or it says that ctx ended first. The result is only
// the core's: see [engine.Policy.Restrict].
func (c *Core) Evaluate(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
	q, err := newQuestion(set, in, c.rules)
	if err != nil {
		return engine.Result{}, err
	}
	result, err := c.breaker.do(func() (engine.Result, error) {
		start := time.Now()
		result, err := c.ask(ctx, q)
		c.metrics.asked(time.Since(start), result, err)
		return result, err
	})
	if err != nil {
		var failed *Error
		if errors.As(err, &failed) {
			c.metrics.failed(failed)
			doc := set.Policy.Document()
			c.log.failed(ctx, failed, doc.PolicyID, doc.Version)
		}
		return engine.Result{}, fmt.Errorf("asking the evaluation core: %w", err)
	}
	return result, nil
}
