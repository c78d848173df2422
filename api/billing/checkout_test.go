package billing

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
)

// owned returns a subscription of acme with this plan and status.
func owned(plan, status string) storage.Subscription {
	return storage.Subscription{
		OrganizationID: acme, Plan: plan, Status: status, CustomerID: "cus_9", SubscriptionID: "sub_9", ItemID: "si_9",
		Last: storage.SubscriptionEvent{At: noon, Rank: 2, IDs: []string{"evt_0"}},
	}
}

// only returns the single request in calls. It fails the test if there is no request, a second one,
// or a failure.
func only(t *testing.T, calls *recorder) call {
	t.Helper()
	list := calls.take()
	if len(list) != 1 || list[0].status != http.StatusOK || list[0].auth != "Bearer "+testKey {
		t.Fatalf("requests = %+v, want one that succeeded with the key", list)
	}
	return list[0]
}

func wantForm(t *testing.T, c call, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	for k := range c.form {
		got[k] = c.form.Get(k)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", c.path, diff)
	}
}

func TestCheckout_OpensASessionOfStripeCheckout(t *testing.T) {
	url, calls := stripeMock(t)
	h := start(t, url)
	got, id, err := h.Checkout(context.Background(), acme, "pro")
	must(t, err)
	if !strings.HasPrefix(got, "https://") || id == "" {
		t.Errorf("Checkout = %q, %q, want a URL and a session id", got, id)
	}
	c := only(t, calls)
	if c.path != "/v1/checkout/sessions" || c.key == "" {
		t.Errorf("request = %s with Idempotency-Key %q", c.path, c.key)
	}
	want := map[string]string{
		"mode": "subscription", "client_reference_id": acme, "metadata[organization_id]": acme, "metadata[plan]": "pro",
		"subscription_data[metadata][organization_id]": acme, "subscription_data[metadata][plan]": "pro",
		"line_items[0][price]": pricePro, "line_items[0][quantity]": "1",
		"success_url": "https://portal.example/billing?checkout=success&session_id={CHECKOUT_SESSION_ID}",
		"cancel_url":  "https://portal.example/billing?checkout=cancelled",
	}
	wantForm(t, c, want)

	t.Run("the customer is reused when known", func(t *testing.T) {
		h.put(owned("free", "canceled"))
		_, _, err := h.Checkout(context.Background(), acme, "pro")
		must(t, err)
		want["customer"] = "cus_9"
		wantForm(t, only(t, calls), want)
	})
}

func TestCheckout_IdempotencyKey(t *testing.T) {
	url, calls := stripeMock(t)
	h := start(t, url)
	key := func(org, plan string) string {
		t.Helper()
		_, _, err := h.Checkout(context.Background(), org, plan)
		must(t, err)
		return only(t, calls).key
	}
	first := key(acme, "pro")
	if again := key(acme, "pro"); again != first {
		t.Errorf("the same wish has the keys %s and %s, want one", first, again)
	}
	seen := map[string]string{first: "the first wish"}
	differs := func(what, key string) {
		t.Helper()
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s", what, other)
		}
		seen[key] = what
	}
	differs("another plan", key(acme, "business"))
	differs("another organization", key(rival, "pro"))
	h.put(owned("free", "canceled"))
	differs("a wish after an earlier subscription ended", key(acme, "pro"))
	h.now = h.now.Add(sameSession)
	differs("a later wish", key(acme, "pro"))
}

func TestCheckout_WhoPaysAlready(t *testing.T) {
	url, calls := stripeMock(t)
	h := start(t, url)
	for _, status := range []string{"active", "trialing", "past_due"} {
		h.put(owned("pro", status))
		_, _, err := h.Checkout(context.Background(), acme, "pro")
		wantCode(t, "Checkout of the plan it has, "+status, err, CodeAlreadyOnPlan)
		if list := calls.take(); len(list) != 0 {
			t.Errorf("requests = %+v, want none", list)
		}
	}

	t.Run("confirms another plan in the portal: a second subscription would charge twice", func(t *testing.T) {
		got, id, err := h.Checkout(context.Background(), acme, "business")
		must(t, err)
		if !strings.HasPrefix(got, "https://") || id != "" {
			t.Errorf("Checkout = %q, %q, want a URL without a session id", got, id)
		}
		c := only(t, calls)
		if c.path != "/v1/billing_portal/sessions" {
			t.Errorf("request = %s, want the portal", c.path)
		}
		wantForm(t, c, map[string]string{
			"customer": "cus_9", "return_url": "https://portal.example/billing",
			"flow_data[type]": "subscription_update_confirm",
			"flow_data[subscription_update_confirm][subscription]":       "sub_9",
			"flow_data[subscription_update_confirm][items][0][id]":       "si_9",
			"flow_data[subscription_update_confirm][items][0][price]":    priceBusiness,
			"flow_data[subscription_update_confirm][items][0][quantity]": "1",
		})
	})
	t.Run("chooses another plan in the portal while the item is not known", func(t *testing.T) {
		bought := owned("pro", "active")
		bought.ItemID = ""
		h.put(bought)
		_, _, err := h.Checkout(context.Background(), acme, "business")
		must(t, err)
		wantForm(t, only(t, calls), map[string]string{
			"customer": "cus_9", "return_url": "https://portal.example/billing",
			"flow_data[type]": "subscription_update", "flow_data[subscription_update][subscription]": "sub_9",
		})
	})
	t.Run("buys again after it ended", func(t *testing.T) {
		for _, status := range []string{"canceled", "unpaid", "incomplete_expired"} {
			h.put(owned("free", status))
			_, id, err := h.Checkout(context.Background(), acme, "pro")
			if must(t, err); id == "" {
				t.Errorf("Checkout after %s = no session", status)
			}
		}
	})
}

func TestCheckout_PlanWithoutAPrice(t *testing.T) {
	h := start(t, "http://127.0.0.1:1")
	for _, plan := range []string{"free", "", "gold"} {
		_, _, err := h.Checkout(context.Background(), acme, plan)
		wantCode(t, "Checkout("+plan+")", err, CodeNotConfigured)
	}
}

func TestPortal(t *testing.T) {
	url, calls := stripeMock(t)
	h := start(t, url)
	_, err := h.Portal(context.Background(), acme)
	wantCode(t, "Portal without a customer", err, CodeNoCustomer)
	if list := calls.take(); len(list) != 0 {
		t.Errorf("requests = %+v, want none", list)
	}
	for _, status := range []string{"active", "canceled"} {
		h.put(owned("pro", status))
		got, err := h.Portal(context.Background(), acme)
		must(t, err)
		if !strings.HasPrefix(got, "https://") {
			t.Errorf("Portal = %q, want a URL", got)
		}
		c := only(t, calls)
		if c.path != "/v1/billing_portal/sessions" {
			t.Errorf("request = %s, want the portal", c.path)
		}
		wantForm(t, c, map[string]string{"customer": "cus_9", "return_url": "https://portal.example/billing"})
	}
	_, err = h.Portal(context.Background(), rival)
	wantCode(t, "Portal of another organization", err, CodeNoCustomer)
}

// down returns the ways in which Stripe can fail to answer. attempts is the number of requests that
// Stripe gets in each case.
func down() map[string]struct {
	handler  http.HandlerFunc
	attempts int
} {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // the client may have disconnected
		}
	}
	return map[string]struct {
		handler  http.HandlerFunc
		attempts int
	}{
		"its error": {answer(500, `{"error":{"type":"api_error","message":"with `+testKey+`"}}`), 1},
		"hangs up":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 2},
		"limited":   {answer(429, `{"error":{"type":"invalid_request_error","code":"rate_limit","message":"`+testKey+`"}}`), 1},
		"wrong key": {answer(401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided: `+testKey+`"}}`), 1},
		"bad price": {answer(400, `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"line_items[0][price]","message":"No such price `+testSecret+`"}}`), 1},
		"not JSON":  {answer(200, `<html>`+testKey), 1},
		"no URL":    {answer(200, `{}`), 1},
	}
}

func TestPortal_OfACustomerThatIsGoneAtStripe(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","code":"resource_missing","param":"customer"}}`)) // the client may be gone
	}))
	defer s.Close()
	h := start(t, s.URL)
	h.put(owned("free", "canceled"))
	_, err := h.Portal(context.Background(), acme)
	wantCode(t, "Portal", err, CodeNoCustomer)
}

func TestStripeThatFailsIsUnavailableAndLeaksNothing(t *testing.T) {
	for name, fault := range down() {
		t.Run(name, func(t *testing.T) {
			calls := &recorder{t: t, next: fault.handler}
			s := httptest.NewServer(calls)
			defer s.Close()
			h := start(t, s.URL)
			_, _, err := h.Checkout(context.Background(), acme, "pro")
			wantCode(t, "Checkout", err, CodeUnavailable)
			h.wantNoSecret(err)
			list := calls.take()
			if len(list) != fault.attempts {
				t.Errorf("Stripe was asked %d times, want %d", len(list), fault.attempts)
			}
			for _, c := range list {
				if c.key != list[0].key {
					t.Errorf("a retry has the Idempotency-Key %s, want that of the first, %s", c.key, list[0].key)
				}
			}
			h.put(owned("pro", "active"))
			_, err = h.Portal(context.Background(), acme)
			wantCode(t, "Portal", err, CodeUnavailable)
			h.wantNoSecret(err)
			h.wantPlan(acme, "pro", "active")
		})
	}
}

func TestStripeThatCannotBeReachedIsUnavailable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	h := start(t, "http://"+ln.Addr().String())
	must(t, ln.Close())
	_, _, err = h.Checkout(context.Background(), acme, "pro")
	wantCode(t, "Checkout", err, CodeUnavailable)
	h.wantNoSecret(err)
}

func TestStripeThatHangsIsUnavailableWithinTheTimeout(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	h := start(t, s.URL)
	cfg := h.config(s.URL)
	cfg.Timeout = 50 * time.Millisecond
	b, err := New(cfg)
	must(t, err)
	begun := time.Now()
	_, _, err = b.Checkout(context.Background(), acme, "pro")
	wantCode(t, "Checkout", err, CodeUnavailable)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("Checkout took %v, want it bounded by the timeout", took)
	}
	h.wantNoSecret(err)
}

func TestNew_RefusesAConfigurationThatLacksOrMistakes(t *testing.T) {
	h := start(t, "")
	for name, mod := range map[string]func(*Config){
		"no store":          func(c *Config) { c.Store = nil },
		"no key":            func(c *Config) { c.Key = "" },
		"no webhook secret": func(c *Config) { c.WebhookSecret = "" },
		"no prices":         func(c *Config) { c.Prices = nil },
		"an empty price":    func(c *Config) { c.Prices = map[string]string{"pro": ""} },
		"one price twice":   func(c *Config) { c.Prices = map[string]string{"pro": "p", "business": "p"} },
		"no portal":         func(c *Config) { c.PortalURL = "" },
		"a relative portal": func(c *Config) { c.PortalURL = "/portal" },
		"a script":          func(c *Config) { c.PortalURL = "javascript:alert(1)" },
		"a bad Stripe":      func(c *Config) { c.URL = "api.stripe.com" },
	} {
		c := h.config("")
		mod(&c)
		_, err := New(c)
		if err == nil {
			t.Errorf("New with %s = nil, want an error", name)
		}
		h.wantNoSecret(err)
	}
}
