package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"writ.example/writ/api/webhook"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
)

const org = "acme"

var loopback = webhook.Targets{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// world is a deliverer over a new store, with a clock.
type world struct {
	*testing.T
	docs    *registry.Registry
	store   storage.Store
	d       *webhook.Deliverer
	offset  atomic.Int64 // how far the clock is ahead of the real one
	follows atomic.Bool
	metrics *prometheus.Registry
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }

// start starts a deliverer, which runs until the test ends.
func start(t *testing.T, targets webhook.Targets, sources func(*world) []webhook.Source) *world {
	t.Helper()
	store, err := embedded.Open("db", embedded.Options{FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	w := &world{T: t, docs: registry.New(store), store: store, metrics: prometheus.NewRegistry()}
	cfg := webhook.Config{
		Outboxes: w.docs, Leads: func() bool { return !w.follows.Load() }, Targets: targets, Agent: "writ", Now: w.now, Metrics: w.metrics,
	}
	if sources != nil {
		cfg.Sources = sources(w)
	}
	w.d, err = webhook.New(cfg)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		must(t, store.Close())
	})
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hook stores a webhook of org and returns its secret.
func (w *world) hook(org, id, url string, events ...string) (secret string) {
	w.Helper()
	secret = webhook.NewSecret()
	must(w.T, w.docs.PutWebhook(w.Context(), org, &storage.Webhook{
		ID: id, URL: url, Events: events, Secrets: []storage.WebhookSecret{{Secret: secret}}, CreatedAt: w.now().Add(-time.Hour),
	}))
	return secret
}

// tell stores events. Each of facts is "subject/fact".
func (w *world) tell(org string, facts ...string) {
	w.Helper()
	var events []storage.Event
	for _, f := range facts {
		subject, fact, _ := strings.Cut(f, "/")
		events = append(events, storage.Event{Type: storage.AgentDisabled, Subject: subject, Fact: fact, At: w.now(), Data: map[string]any{"fact": f}})
	}
	_, err := w.store.Update(w.Context(), org, func(tx storage.Tx) error { return registry.Tell(tx, org, w.now(), events...) })
	must(w.T, err)
	w.d.Wake()
}

// eventually waits until f returns true. It fails the test after half a minute.
func (w *world) eventually(what string, f func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within half a minute", what)
		}
	}
}

// deliveries returns the stored deliveries to a webhook, the oldest first.
func (w *world) deliveries(org, id string) []*storage.Delivery {
	w.Helper()
	all, _, err := w.docs.ListDeliveries(w.Context(), org, id, "", storage.Page{Limit: 500})
	must(w.T, err)
	slices.Reverse(all)
	return all
}

// receiver is a server that records requests.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	headers []http.Header
	bodies  []string
	answer  func(w http.ResponseWriter, r *http.Request, body string)
}

func receive(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, body string)) *receiver {
	rc := &receiver{answer: answer}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		rc.mu.Lock()
		rc.headers, rc.bodies = append(rc.headers, r.Header.Clone()), append(rc.bodies, string(body))
		rc.mu.Unlock()
		if rc.answer != nil {
			rc.answer(w, r, string(body))
		}
	}))
	t.Cleanup(rc.Close)
	return rc
}

// facts returns the facts that were received, in order.
func (rc *receiver) facts() (facts []string) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for _, b := range rc.bodies {
		_, f, _ := strings.Cut(b, `"fact":"`)
		f, _, _ = strings.Cut(f, `"`)
		facts = append(facts, f)
	}
	return facts
}

// TestDelivery_IsSigned checks that the library of Standard Webhooks accepts the signature of a delivery.
func TestDelivery_IsSigned(t *testing.T) {
	w, rc := start(t, loopback, nil), receive(t, nil)
	old := w.hook(org, "h", rc.URL+"/in?a=b", storage.AgentDisabled)
	w.tell(org, "x/1")
	w.eventually("a delivery", func() bool { return len(rc.facts()) == 1 })
	fresh := webhook.NewSecret()
	_, err := w.docs.RotateWebhook(t.Context(), org, "h", fresh, w.now().Add(time.Hour))
	must(t, err)
	w.tell(org, "x/2")
	w.eventually("a second delivery", func() bool { return len(rc.facts()) == 2 })
	w.offset.Store(int64(2 * time.Hour))
	w.tell(org, "x/3")
	w.eventually("a third delivery", func() bool { return len(rc.facts()) == 3 })
	for i, want := range []struct{ old, fresh bool }{{true, false}, {true, true}, {false, true}} {
		for secret, good := range map[string]bool{old: want.old, fresh: want.fresh} {
			hook, err := standardwebhooks.NewWebhook(secret)
			must(t, err)
			verify := hook.Verify
			if i == 2 { // its time is in the future
				verify = hook.VerifyIgnoringTimestamp
			}
			if err := verify([]byte(rc.bodies[i]), rc.headers[i]); (err == nil) != good {
				t.Errorf("delivery %d, verified with the old secret %t: %v, want it good = %t", i+1, secret == old, err, good)
			}
			if err := verify([]byte(rc.bodies[i]+" "), rc.headers[i]); err == nil {
				t.Errorf("delivery %d: another body is verified", i+1)
			}
		}
	}
	if !strings.HasPrefix(rc.bodies[0], `{"type":"agent.disabled","timestamp":"2`) || rc.headers[0].Get("Content-Type") != "application/json" {
		t.Errorf("body %s, headers %v", rc.bodies[0], rc.headers[0])
	}
}

// TestDelivery_FailsAndIsAttemptedAgain checks that every answer other than a 2xx is a failure, and that redirects are
// not followed. The next attempt has the same id and comes within five seconds.
func TestDelivery_FailsAndIsAttemptedAgain(t *testing.T) {
	var elsewhere atomic.Int64
	other := receive(t, func(http.ResponseWriter, *http.Request, string) { elsewhere.Add(1) })
	for name, test := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request, string)
		problem string
		status  int
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request, _ string) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, "redirect", 307},
		"status":   {func(w http.ResponseWriter, _ *http.Request, _ string) { w.WriteHeader(http.StatusTeapot) }, "status", 418},
		"hangs up": {func(http.ResponseWriter, *http.Request, string) { panic(http.ErrAbortHandler) }, "no_connection", 0},
		"header": {func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			w.WriteHeader(http.StatusOK)
		}, "no_connection", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var good atomic.Bool
			w, rc := start(t, loopback, nil), receive(t, func(rw http.ResponseWriter, r *http.Request, body string) {
				if !good.Load() {
					test.answer(rw, r, body)
				}
			})
			w.hook(org, "h", rc.URL, storage.AgentDisabled)
			w.tell(org, "x/1", "x/2", "y/1")
			w.eventually("two failed attempts", func() bool {
				all := w.deliveries(org, "h")
				return all[0].Attempts == 1 && all[2].Attempts == 1
			})
			all := w.deliveries(org, "h")
			if v := all[0]; v.Problem != test.problem || v.Answer != test.status || v.Status != storage.DeliveryPending || v.DueAt.After(w.now().Add(5*time.Second)) {
				t.Errorf("after an attempt: %+v, want the problem %s, status %d, pending and due within 5 s", v, test.problem, test.status)
			}
			good.Store(true)
			w.eventually("three deliveries", func() bool {
				all = w.deliveries(org, "h")
				return !slices.ContainsFunc(all, func(v *storage.Delivery) bool { return v.Status != storage.DeliveryDelivered })
			})
			facts := rc.facts()
			if slices.Index(facts, "x/2") < lastIndex(facts, "x/1") {
				t.Errorf("received %v: x/2 is before x/1 was delivered", facts)
			}
			if n := elsewhere.Load(); n != 0 {
				t.Errorf("a redirect was followed %d times", n)
			}
		})
	}
}

func lastIndex(s []string, v string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == v {
			return i
		}
	}
	return -1
}

// TestDelivery_DiesAfterADay checks that a delivery dies after a day, is then listed, and can be replayed.
func TestDelivery_DiesAfterADay(t *testing.T) {
	var good atomic.Bool
	w, rc := start(t, loopback, nil), receive(t, func(rw http.ResponseWriter, _ *http.Request, _ string) {
		if !good.Load() {
			rw.WriteHeader(http.StatusInternalServerError)
		}
	})
	w.hook(org, "h", rc.URL, storage.AgentDisabled)
	w.tell(org, "x/1")
	attempts := 0
	w.eventually("it is dead", func() bool {
		v := w.deliveries(org, "h")[0]
		if v.Attempts > attempts && v.Status == storage.DeliveryPending {
			attempts = v.Attempts
			wait := v.DueAt.Sub(v.AttemptedAt)
			if want := min(5*time.Second<<min(attempts-1, 20), time.Hour); wait > want+100*time.Millisecond || wait < want*4/5-100*time.Millisecond {
				t.Errorf("%v after attempt %d, want about %v", wait, attempts, want)
			}
			w.offset.Add(int64(wait + time.Millisecond))
			w.d.Wake()
		}
		return v.Status == storage.DeliveryDead
	})
	v := w.deliveries(org, "h")[0]
	if age := v.AttemptedAt.Sub(v.CreatedAt); age < 24*time.Hour || age > 25*time.Hour+time.Minute {
		t.Errorf("given up after %v, want a day", age)
	}
	good.Store(true)
	_, err := w.docs.ReplayDelivery(t.Context(), org, "h", v.MessageID, w.now())
	must(t, err)
	w.d.Wake()
	w.eventually("it is delivered", func() bool { return w.deliveries(org, "h")[0].Status == storage.DeliveryDelivered })
	rc.mu.Lock()
	defer rc.mu.Unlock()
	for _, h := range rc.headers {
		if h.Get("webhook-id") != v.MessageID {
			t.Errorf("attempted with the id %s, want %s", h.Get("webhook-id"), v.MessageID)
		}
	}
}

// TestDelivery_AddressesAreChecked checks that addresses are checked when they are dialled. A name that resolves to a
// private address is refused, and nothing is sent.
func TestDelivery_AddressesAreChecked(t *testing.T) {
	rc := receive(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(rc.URL, "http://"), ":")
	w := start(t, webhook.Targets{Allow: []netip.Prefix{netip.MustParsePrefix("10.9.8.0/24")}}, nil)
	for i, url := range []string{
		"http://localhost:" + port, "https://localhost:" + port, "http://127.0.0.1:" + port, "http://[::ffff:127.0.0.1]:" + port,
		"http://0177.0.0.1:" + port, "http://2130706433:" + port, "http://0:" + port,
	} {
		w.hook("org"+fmt.Sprint(i), "h", url, storage.AgentDisabled)
		w.tell("org"+fmt.Sprint(i), "x/1")
		w.eventually(url+" is attempted", func() bool { return w.deliveries("org"+fmt.Sprint(i), "h")[0].Attempts > 0 })
		if v := w.deliveries("org"+fmt.Sprint(i), "h")[0]; v.Problem != "address_refused" && v.Problem != "name_not_resolved" {
			t.Errorf("%s: %s, want that it is refused", url, v.Problem)
		}
	}
	if got := rc.facts(); len(got) != 0 {
		t.Errorf("received %v", got)
	}
}

// TestDelivery_OneDoesNotDelayAnother has endpoints that never answer or never stop answering. It checks that they do
// not delay deliveries to other organizations or to other webhooks of the same organization.
func TestDelivery_OneDoesNotDelayAnother(t *testing.T) {
	done := make(chan struct{})
	hangs := receive(t, func(http.ResponseWriter, *http.Request, string) { <-done })
	endless := receive(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	w, good := start(t, loopback, nil), receive(t, nil)
	t.Cleanup(func() { close(done) })
	w.hook("other", "hangs", hangs.URL, storage.AgentDisabled)
	w.hook("other", "endless", endless.URL, storage.AgentDisabled)
	w.hook("other", "good", good.URL, storage.AgentDisabled)
	var facts []string
	for i := range 100 {
		facts = append(facts, fmt.Sprintf("s%d/1", i))
	}
	w.tell("other", facts...)
	w.eventually("those hang", func() bool { return len(hangs.facts()) > 0 && len(endless.facts()) > 0 })
	w.hook(org, "mine", good.URL, storage.AgentDisabled)
	w.tell(org, "mine/1")
	w.eventually("the others' are delivered", func() bool { return len(good.facts()) == len(facts)+1 })
	if n := len(hangs.facts()); n > 8 {
		t.Errorf("%d connections to one that hangs, want at most 8", n)
	}
}

// TestDelivery_OnlyWhoLeadsDelivers checks that only the leader delivers.
func TestDelivery_OnlyWhoLeadsDelivers(t *testing.T) {
	w, rc := start(t, loopback, nil), receive(t, nil)
	w.follows.Store(true)
	w.hook(org, "h", rc.URL, storage.AgentDisabled)
	w.tell(org, "x/1")
	time.Sleep(20 * time.Millisecond)
	if got := rc.facts(); len(got) != 0 {
		t.Errorf("a follower delivered %v", got)
	}
	w.follows.Store(false)
	w.d.Wake()
	w.eventually("the leader delivers", func() bool { return len(rc.facts()) == 1 })
}
