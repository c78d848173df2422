package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stripe/stripe-go/v85"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

const (
	acme          = "acme"
	rival         = "rival"
	testKey       = "sk_test_canary0key"
	testSecret    = "whsec_canary0secret"
	pricePro      = "price_pro"
	priceBusiness = "price_business"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// harness is a Billing with a store in memory. Its clock starts at noon.
type harness struct {
	*Billing
	t     *testing.T
	store *registry.Registry
	log   *bytes.Buffer
	now   time.Time
}

func start(t *testing.T, url string) *harness {
	t.Helper()
	store, err := embedded.Open("db", embedded.Options{FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	h := &harness{t: t, store: registry.New(store), log: new(bytes.Buffer), now: noon}
	h.Billing, err = New(h.config(url))
	must(t, err)
	return h
}

func (h *harness) config(url string) Config {
	return Config{
		Store: h.store, Key: testKey, WebhookSecret: testSecret, URL: url, PortalURL: "https://portal.example/",
		Prices: map[string]string{"pro": pricePro, "business": priceBusiness},
		Now:    func() time.Time { return h.now },
		Log:    slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != code || refused.Detail == "" {
		t.Fatalf("%s = %v, want an error of code %s", what, err, code)
	}
}

type obj = map[string]any

// event returns an event of Stripe that happens this many seconds after noon.
func event(id, kind string, seconds int, object obj, changes ...obj) obj {
	e := obj{
		"id": id, "object": "event", "type": kind, "api_version": stripe.APIVersion, "livemode": false,
		"created": noon.Unix() + int64(seconds), "data": obj{"object": object},
	}
	for _, c := range changes {
		maps.Copy(e, c)
	}
	return e
}

// subscription returns a subscription of acme in Stripe's format.
func subscription(id, status, price string, changes ...obj) obj {
	s := obj{
		"id": id, "object": "subscription", "status": status, "customer": "cus_1", "created": noon.Unix() - 60,
		"cancel_at_period_end": false, "metadata": obj{"organization_id": acme},
		"items": obj{"object": "list", "data": []obj{{
			"id": "si_" + id, "current_period_end": noon.AddDate(0, 1, 0).Unix(), "price": obj{"id": price, "object": "price"},
		}}},
	}
	for _, c := range changes {
		maps.Copy(s, c)
	}
	return s
}

// sign returns the body of e and the signature header that Stripe would send at t.
func sign(tb testing.TB, e any, secret string, t time.Time) (body []byte, header string) {
	tb.Helper()
	body, err := json.Marshal(e)
	must(tb, err)
	return signRaw(body, secret, t)
}

func signRaw(body []byte, secret string, t time.Time) ([]byte, string) {
	s := stripe.GenerateTestSignedPayload(&stripe.UnsignedPayload{Payload: body, Secret: secret, Timestamp: t})
	return s.Payload, s.Header
}

// deliver delivers e with a signature made now.
func (h *harness) deliver(e obj) error {
	h.t.Helper()
	body, header := sign(h.t, e, testSecret, h.now)
	return h.Webhook(context.Background(), body, header)
}

// stored returns the subscription of org, or an empty one.
func (h *harness) stored(org string) storage.Subscription {
	h.t.Helper()
	s, err := h.store.Subscription(context.Background(), org)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Subscription{}
	}
	must(h.t, err)
	return *s
}

func (h *harness) wantPlan(org, plan, status string) {
	h.t.Helper()
	if s := h.stored(org); s.Plan != plan || s.Status != status {
		h.t.Errorf("%s is on %q with status %q, want %q with status %q", org, s.Plan, s.Status, plan, status)
	}
}

func (h *harness) put(s storage.Subscription) {
	h.t.Helper()
	must(h.t, storagetest.PutSubscription(context.Background(), h.store, &s))
}

type recorder struct {
	t    *testing.T
	next http.Handler
	mu   sync.Mutex
	list []call
}

type call struct {
	path, key, auth string
	form            url.Values
	status          int
}

// ServeHTTP implements http.Handler.
func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		r.t.Error(err)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	n := len(r.list)
	r.list = append(r.list, call{req.URL.Path, req.Header.Get("Idempotency-Key"), req.Header.Get("Authorization"), form, 0})
	r.mu.Unlock()
	answer := httptest.NewRecorder()
	r.next.ServeHTTP(answer, req)
	r.mu.Lock()
	r.list[n].status = answer.Code
	r.mu.Unlock()
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	if _, err := w.Write(answer.Body.Bytes()); err != nil {
		r.t.Error(err)
	}
}

// take returns and removes the recorded requests.
func (r *recorder) take() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// wantNoSecret checks that neither err nor the log holds a secret.
func (h *harness) wantNoSecret(err error) {
	h.t.Helper()
	for _, secret := range []string{testKey, testSecret, "canary"} {
		if text := fmt.Sprint(err) + fmt.Sprintf("%+v", err) + h.log.String(); strings.Contains(text, secret) {
			h.t.Errorf("%q is in the error or the log: %s", secret, text)
		}
	}
}
