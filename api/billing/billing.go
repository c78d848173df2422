package billing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"writ.example/writ/storage"
)

// Subscriptions keeps one subscription for each organization.
type Subscriptions interface {
	// UpdateSubscription changes the subscription of org atomically. It calls f with a copy of
	// the stored subscription, perhaps more than once. If nothing is stored, the copy has only an
	// OrganizationID. f reports whether it changed the copy. UpdateSubscription returns the
	// subscription that is stored afterwards, or storage.ErrNotFound.
	UpdateSubscription(ctx context.Context, org string,
		f func(*storage.Subscription) (changed bool)) (*storage.Subscription, error)
	// Subscription returns the subscription of org, or storage.ErrNotFound.
	Subscription(ctx context.Context, org string) (*storage.Subscription, error)
}

// Config configures a Billing. Fields without a default are required.
type Config struct {
	// Store keeps the subscriptions. Billing does not close it.
	Store Subscriptions
	// Key is Stripe's secret key. WebhookSecret is the key of webhook signatures. No log and no
	// error contains either.
	Key, WebhookSecret string
	// Prices maps the name of a plan to the id of its price at Stripe.
	Prices map[string]string
	// PortalURL is the base address of writ's own web portal. After a payment the browser returns
	// to its page "billing".
	PortalURL string
	// URL is the address of Stripe's API. If it is empty, Stripe's own address is used.
	URL string
	// Timeout bounds a call to Stripe, including its one retry. Zero means 8 s.
	Timeout time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Log receives the changes of plans. It also receives events that need an operator's
	// attention. Nil discards both.
	Log *slog.Logger
}

const defaultTimeout = 8 * time.Second

// Billing sells plans. It is safe for concurrent use and need not be closed.
type Billing struct {
	cfg    Config
	stripe stripe.Backend
	plans  map[string]string // the names of the plans by price id
	portal string            // the page of writ's web portal to which browsers return
}

// New returns a Billing. If cfg lacks a required field, the error names the field. New does not
// call Stripe.
func New(cfg Config) (*Billing, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	plans, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("configuring billing: %w", err)
	}
	return &Billing{
		cfg: cfg, plans: plans, stripe: cfg.client(),
		portal: strings.TrimSuffix(cfg.PortalURL, "/") + "/billing",
	}, nil
}

// check returns the names of the plans by price id, or an error if c is not valid.
func (c Config) check() (map[string]string, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("no store")
	case c.Key == "":
		return nil, errors.New("no key")
	case c.WebhookSecret == "":
		return nil, errors.New("no webhook secret: anybody could sign events")
	case len(c.Prices) == 0:
		return nil, errors.New("no prices")
	}
	if err := checkURL(c.PortalURL); err != nil {
		return nil, fmt.Errorf("the portal's address %w", err)
	}
	if c.URL != "" {
		if err := checkURL(c.URL); err != nil {
			return nil, fmt.Errorf("the address of Stripe %w", err)
		}
	}
	plans := make(map[string]string, len(c.Prices))
	for plan, price := range c.Prices {
		if price == "" {
			return nil, fmt.Errorf("no price of the plan %s", plan)
		}
		if other, ok := plans[price]; ok {
			return nil, fmt.Errorf("the plans %s and %s have the same price id", min(plan, other), max(plan, other))
		}
		plans[price] = plan
	}
	return plans, nil
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return errors.New("is not an http(s) URL without user, query and fragment")
	}
	return nil
}

// client returns a backend that calls Stripe. It logs nothing, because Stripe's logger quotes
// requests. It is not a stripe.Client, because that type links every service of Stripe and adds
// 10 MB to the binary.
func (c Config) client() stripe.Backend {
	backend := &stripe.BackendConfig{
		EnableTelemetry: stripe.Bool(false),
		HTTPClient: &http.Client{
			Timeout: c.Timeout,
			// A redirect would carry Stripe's key to another address.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(1), // the retry has the same Idempotency-Key
	}
	if c.URL != "" {
		backend.URL = stripe.String(c.URL)
	}
	return stripe.GetBackendWithConfig(stripe.APIBackend, backend)
}
