package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/decision/admission"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/storagetest"
)

// orgQueue is the maximum number of waiting requests of one organization.
const orgQueue = 512

// patient configures a queue in which requests wait without a timeout during the test.
func patient(c *setup) { c.Service.Queue = time.Hour }

// hold takes every slot. org gets as many slots as one organization can have, and another
// organization gets the remaining slots. Each returned function frees one slot, and the first
// function frees a slot of org.
func (h *harness) hold(org string) (release []func()) {
	h.t.Helper()
	for i := range runtime.GOMAXPROCS(0) {
		if i > 0 && i == runtime.GOMAXPROCS(0)-1 {
			org = "somebody else"
		}
		slot, v := h.server.decisions.Gate.Enter(context.Background(), admission.Work{Org: org})
		if v != admission.Admitted {
			h.t.Fatalf("taking a slot: verdict %d", v)
		}
		release = append(release, slot.Leave)
	}
	return release
}

// fill takes every slot and fills org's queue of decisions until release is called.
func (h *harness) fill(org string) (release func()) {
	h.t.Helper()
	held := h.hold(org)
	var wg sync.WaitGroup
	for range orgQueue {
		wg.Go(func() {
			slot, v := h.server.decisions.Gate.Enter(context.Background(), admission.Work{Org: org})
			if v != admission.Admitted {
				h.t.Errorf("filling the queue: verdict %d", v)
			}
			slot.Leave()
		})
	}
	h.untilMetrics(len(held), orgQueue)
	return func() {
		for _, leave := range held {
			leave()
		}
		wg.Wait()
	}
}

// untilMetrics waits until the metrics of the admission gate show these numbers of running and
// waiting requests.
func (h *harness) untilMetrics(working, waiting int) {
	h.t.Helper()
	want := [2]string{fmt.Sprintf("\nwrit_admission_in_flight %d\n", working), fmt.Sprintf("\nwrit_admission_waiting %d\n", waiting)}
	for range 100_000 {
		got := h.admin("/metrics").Body.String()
		if strings.Contains(got, want[0]) && strings.Contains(got, want[1]) {
			return
		}
		runtime.Gosched()
	}
	h.t.Fatalf("never were %d at work and %d waiting", working, waiting)
}

func TestOverload_DecisionsAreRefusedAtOnce(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	ordinary := h.evaluate(acme, intent())
	release := h.fill(acme)
	for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
		r := h.do("POST", path, h.operator(acme), intent(), headerRequestID, "mine")
		got := r.wantProblem(http.StatusServiceUnavailable, codeOverloaded)
		want := problemOf(ledger.ErrOverloaded)
		want.encode(path, "mine")
		want.retryAfter = 0 // it is sent as a header
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(problem{})); diff != "" {
			t.Errorf("POST %s (-as the ledger's refusal +got):\n%s", path, diff)
		}
		r.wantHeader("Retry-After", "1")
		for name := range ordinary.header {
			if r.header.Get(name) == "" {
				t.Errorf("POST %s lacks the header %s of other answers", path, name)
			}
		}
	}
	// The body is invalid JSON: a full queue must refuse the request before decoding.
	h.do("POST", "/v1/policy/evaluate", h.operator(acme), "{").wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	release()
	h.untilMetrics(0, 0)
	h.wantRows(acme, 1)
	if used := h.usage(acme).Meters.Evaluations.Used; used != 1 {
		t.Errorf("evaluations used = %d, want 1", used)
	}
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}

// TestDecision_Bounds_AuthenticatedFirst checks "A request is authenticated first, then waits in its organization's
// queue."
func TestDecision_Bounds_AuthenticatedFirst(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	limited, _ := h.key(acme, "policy:read")
	defer h.fill(acme)()
	for _, credential := range []string{"", "writ_guess", "a.b.c"} {
		h.do("POST", "/v1/policy/evaluate", credential, intent()).wantStatus(http.StatusUnauthorized)
		h.do("GET", "/v1/authorizations", credential, nil).wantStatus(http.StatusUnauthorized)
	}
	h.do("POST", "/v1/policy/evaluate", limited, intent()).wantProblem(http.StatusForbidden, codeInsufficientScope)
}

// TestDecision_Bounds_AFullQueueIsItsOrganizationsOwn checks "No organization slows another down. … queues are served
// in turn."
func TestDecision_Bounds_AFullQueueIsItsOrganizationsOwn(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	h.register(rival)
	wantDecision(t, h.evaluate(rival, intent()), "allow") // no request of rival waits
	held := h.hold(acme)
	for range orgQueue {
		go func() {
			slot, _ := h.server.decisions.Gate.Enter(h.server.deadlines.base, admission.Work{Org: acme})
			defer slot.Leave()
			<-h.server.deadlines.base.Done() // keeps the slot until the server shuts down
		}()
	}
	h.untilMetrics(len(held), orgQueue)
	h.evaluate(acme, intent()).wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(rival, intent()) }()
	h.untilMetrics(len(held), orgQueue+1)
	held[0]() // frees one slot for the 512 waiting requests of acme
	wantDecision(t, <-answered, "allow")
}

// TestOverload_TheKillSwitchAnswers checks that an operator can disable an agent, revoke a key and
// remove a rule, however many requests wait. All later decisions about the disabled agent must be
// refusals.
func TestOverload_TheKillSwitchAnswers(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	op := h.operator(acme)
	agent := read[engine.Agent](h.do("POST", "/v1/agents", op, obj{"name": "ci", "externalId": "ci"}).wantStatus(http.StatusCreated))
	rule := read[engine.Rule](h.do("POST", "/v1/rules", op, obj{"name": "r", "condition": `{}`, "action": `{"decision":"allow"}`}).wantStatus(http.StatusCreated))
	key := read[tokenSecret](h.do("POST", "/v1/tokens", op, obj{"name": "leaked"}).wantStatus(http.StatusCreated))
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	release := h.fill(acme)
	h.do("PATCH", "/v1/agents/"+agent.ID+"/status", op, obj{"status": "disabled"}).wantStatus(http.StatusOK)
	h.do("DELETE", "/v1/rules/"+rule.ID, op, nil).wantStatus(http.StatusNoContent)
	h.do("DELETE", "/v1/tokens/"+key.ID, op, nil).wantStatus(http.StatusNoContent)
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/policy/evaluate", op, nil).wantStatus(http.StatusMethodNotAllowed)
	if err := h.server.ready(t.Context()); err != nil {
		t.Errorf("ready under overload = %v, want nil", err)
	}
	release()
	h.untilMetrics(0, 0)
	wantDecision(t, h.evaluate(acme, intent()), "deny")
}

func TestOverload_WhoWaitsIsAnsweredInTheEnd(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	held := h.hold(acme)
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(acme, intent()) }()
	h.untilMetrics(len(held), 1)
	held[0]()
	wantDecision(t, <-answered, "allow")
	for _, leave := range held[1:] {
		leave()
	}
	h.untilMetrics(0, 0)
}

// TestDecision_Bounds_EverythingElseTakesASlotToo checks "Registering, creating rules, listing and exporting are
// charged alike."
func TestDecision_Bounds_EverythingElseTakesASlotToo(t *testing.T) {
	h := start(t, func(c *setup) { c.Service.Queue = 2 * time.Millisecond })
	h.register(acme)
	held := h.hold(acme)
	op := h.operator(acme)
	for _, tt := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/v1/policy/evaluate", intent()},
		{"POST", "/v1/governance/authorize", intent()},
		{"POST", "/v1/policies/register", obj{"policy": obj{}}},
		{"GET", "/v1/policies", nil},
		{"POST", "/v1/rules", obj{"name": "r", "condition": `{}`, "action": `{"decision":"allow"}`}},
		{"GET", "/v1/rules", nil},
		{"GET", "/v1/agents", nil},
		{"GET", "/v1/tokens", nil},
		{"GET", "/v1/authorizations", nil},
		{"GET", "/v1/authorizations/export", nil},
		{"GET", "/v1/authorizations/stream", nil},
		{"GET", "/v1/usage/summary", nil},
	} {
		h.do(tt.method, tt.path, op, tt.body).wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	}
	for _, leave := range held {
		leave()
	}
	h.wantRows(acme, 0)
	if got, want := h.admin("/metrics").Body.String(), `writ_admission_rejected_total{reason="queue_deadline"} 12`; !strings.Contains(got, want) {
		t.Errorf("metrics lack %s", want)
	}
}

// TestDecision_Bounds_RegoLeavesASlot checks "A slot (as many as processors; Rego at most one fewer …)."
func TestDecision_Bounds_RegoLeavesASlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	h := start(t, patient, func(c *setup) {
		c.Service.CompileRego = func(string) (engine.RegoCondition, error) { return heavy{}, nil }
		c.Service.CacheBytes = 256 << 20
	})
	for _, org := range []string{acme, rival} {
		h.register(org)
		wantDecision(t, h.evaluate(org, intent()), "allow") // compiles org's rules
	}
	h.rule(acme, `{"rego":"input.intent.action_type == \"x\""}`, `{"decision":"deny"}`)
	slot, v := h.server.decisions.Gate.Enter(t.Context(), admission.Work{Org: "somebody else", Costly: true})
	if v != admission.Admitted {
		t.Fatalf("taking a slot: verdict %d", v)
	}
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(acme, intent()) }()
	h.untilMetrics(1, 1)
	wantDecision(t, h.evaluate(rival, intent()), "allow")
	slot.Leave()
	wantDecision(t, <-answered, "allow")
}

// TestDecision_Bounds_NoSlotIsHeldWhileTheCommitWaits checks "A slot covers decoding to projection and is given back
// before the commit waits."
func TestDecision_Bounds_NoSlotIsHeldWhileTheCommitWaits(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(acme, intent()) }()
	<-entered
	h.untilMetrics(0, 0)
	close(release)
	wantDecision(t, <-answered, "allow")
}

// TestDecision_Bounds_NoSlotIsHeldWhileTheStoreWaits blocks one call of the store. Only the intent
// that makes this call may be delayed. Other intents of the organization and intents of other
// organizations must still be decided.
func TestDecision_Bounds_NoSlotIsHeldWhileTheStoreWaits(t *testing.T) {
	for call, held := range map[string]obj{
		"AgentsNamed": {"agent_id": "another"},
		"Count":       {}, // only the first decision of an organization calls Count
	} {
		t.Run(call, func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			h := start(t)
			h.register(rival)
			wantDecision(t, h.evaluate(rival, intent()), "allow")
			h.register(acme)
			if call == "AgentsNamed" {
				wantDecision(t, h.evaluate(acme, intent()), "allow")
			}
			entered, release := make(chan struct{}), make(chan struct{})
			h.store.block(call, entered, release)
			answered := make(chan *reply)
			go func() { answered <- h.evaluate(acme, intent(held)) }()
			<-entered
			for range 20 {
				wantDecision(t, h.evaluate(rival, intent()), "allow")
				if call == "AgentsNamed" {
					wantDecision(t, h.evaluate(acme, intent()), "allow")
				}
			}
			close(release)
			wantDecision(t, <-answered, "allow")
		})
	}
}

// TestDecision_Bounds_WhoWaitsForALoadHoldsNoSlot checks that a request holds no slot while another
// request loads the rules. In the test a decision loads the rules while a simulation waits. Both
// must be answered.
func TestDecision_Bounds_WhoWaitsForALoadHoldsNoSlot(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	h := start(t, patient)
	for _, org := range []string{acme, rival} {
		h.register(org)
		wantDecision(t, h.evaluate(org, intent()), "allow")
	}
	h.rule(acme, `{"action_type":"x"}`, `{"decision":"deny"}`) // a new rule makes the compiled rules outdated
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("AllRules", entered, release)
	decided, simulated := make(chan *reply, 1), make(chan *reply, 1)
	go func() { decided <- h.evaluate(acme, intent()) }()
	<-entered
	go func() { simulated <- h.simulate(h.operator(acme), obj{"intent": intent()["intent"]}) }()
	wantDecision(t, h.evaluate(rival, intent()), "allow")
	time.Sleep(20 * time.Millisecond) // lets the simulation wait too; a shorter sleep weakens the test
	wantDecision(t, h.evaluate(rival, intent()), "allow")
	close(release)
	wantDecision(t, <-decided, "allow")
	if r := <-simulated; r.status != http.StatusOK {
		t.Errorf("the simulation = %d %s, want 200", r.status, r.body)
	}
}

// TestDecision_Bounds_ASearchTakesTurns checks "Listing and exporting are charged alike". A search
// of the history gives its slot to waiting requests between its reads.
func TestDecision_Bounds_ASearchTakesTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var h *harness
	answered := make(chan *reply, 1)
	store := &pagedStore{before: func(n int) error {
		switch n {
		case 1:
			go func() { answered <- h.do("GET", "/v1/rules", h.operator(rival), nil) }()
			h.untilMetrics(1, 1)
			time.Sleep(2 * time.Millisecond) // longer than a request may keep a slot
		case 2:
			select {
			case r := <-answered:
				answered <- r
			case <-time.After(10 * time.Second):
				return errors.New("the search goes on and the other request still waits")
			}
		}
		return nil
	}}
	h = start(t, patient, func(c *setup) {
		store.Store = c.Service.Store
		c.Service.Store = store
	})
	w := storagetest.NewWriter()
	for range 3 {
		h.seed(w, acme, exportPage, "prod")
	}
	got := read[page[storage.Record]](h.do("GET", "/v1/authorizations?agent_id=nobody", h.operator(acme), nil).wantStatus(http.StatusOK))
	if len(got.Data) != 0 || got.NextCursor != nil {
		t.Errorf("the search = %d rows, next %v, want none", len(got.Data), got.NextCursor)
	}
	(<-answered).wantStatus(http.StatusOK)
	if n := store.pages.Load(); n < 3 {
		t.Errorf("%d reads, want one for each of %d rows", n, exportPage)
	}
}

// TestOverload_EveryAnswerFreesItsPlace checks that a request frees its slot in every case: an
// answer, a refusal, a panic, a timeout and a disconnect.
func TestOverload_EveryAnswerFreesItsPlace(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.Handle = time.Millisecond })
	h.register(acme)
	h.evaluate(acme, "{").wantStatus(http.StatusBadRequest)
	h.do("POST", "/v1/policy/evaluate", "", intent()).wantStatus(http.StatusUnauthorized)

	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	h.evaluate(acme, intent()).wantProblem(http.StatusServiceUnavailable, codeTimeout)
	close(release)

	entered, release = make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	c, err := net.Dial("tcp", h.addr)
	must(t, err)
	body, err := json.Marshal(intent())
	must(t, err)
	fmt.Fprintf(c, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", h.operator(acme), len(body), body)
	<-entered
	must(t, c.Close())
	close(release)

	h.untilMetrics(0, 0)
	h.server.decisions.Plans = nil // any use of Plans panics
	h.evaluate(acme, intent()).wantProblem(http.StatusInternalServerError, codeInternal)
	h.untilMetrics(0, 0)
}
