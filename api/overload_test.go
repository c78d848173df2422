package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"writ/admission"
	"writ/engine"
	"writ/ledger"
)

// firstLimit is how many a new gate lets in, and how many more wait.
const firstLimit = 256

// patient has nothing that waits refused before the test is over.
func patient(c *Config) { c.Limits.Queue = time.Hour }

// fill occupies the gate and its room until the function that it returns is
// called.
func (h *harness) fill() (release func()) {
	h.t.Helper()
	var (
		wg   sync.WaitGroup
		done = make(chan struct{})
		gate = h.server.gate
	)
	for range 2 * firstLimit {
		wg.Go(func() {
			start, v := gate.Enter(time.Now(), false)
			if v != admission.Admitted {
				h.t.Errorf("filling the gate: verdict %d", v)
				return
			}
			<-done
			gate.Leave(start)
		})
	}
	h.untilMetrics(firstLimit, firstLimit)
	return func() {
		close(done)
		wg.Wait()
	}
}

// untilMetrics waits until the gate says that so many are at work and waiting.
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
	release := h.fill()
	for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
		r := h.do("POST", path, h.operator(acme), intent(), headerRequestID, "mine")
		got := r.wantProblem(http.StatusServiceUnavailable, codeOverloaded)
		want := problemOf(ledger.ErrOverloaded)
		want.complete(path, "mine")
		want.retryAfter = 0 // a header
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(problem{})); diff != "" {
			t.Errorf("POST %s (-as the ledger's refusal +got):\n%s", path, diff)
		}
		if got := r.header.Get("Retry-After"); got != "1" {
			t.Errorf("POST %s Retry-After = %q, want 1", path, got)
		}
		for name := range ordinary.header {
			// No limit has counted what was refused before it was authenticated.
			counted := strings.HasPrefix(name, "Ratelimit")
			if !counted && r.header.Get(name) == "" {
				t.Errorf("POST %s lacks the header %s of other answers", path, name)
			}
		}
	}
	if id := h.evaluate(acme, intent()).wantProblem(http.StatusServiceUnavailable, codeOverloaded).RequestID; id == "" {
		t.Error("no request id was made")
	}
	// Before authentication and before decoding.
	h.do("POST", "/v1/policy/evaluate", "", "{").wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	release()
	h.untilMetrics(0, 0)
	if n := len(h.history(acme)); n != 1 {
		t.Errorf("history has %d rows, want only that of the intent decided before", n)
	}
	if used := h.usage(acme).Meters.Evaluations.Used; used != 1 {
		t.Errorf("evaluations used = %d, want 1", used)
	}
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}

// TestOverload_TheKillSwitchAnswers: whatever waits, an operator can stop an
// agent, and it is in force for all that is decided from then on.
func TestOverload_TheKillSwitchAnswers(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	op := h.operator(acme)
	var agent engine.Agent
	h.do("POST", "/v1/agents", op, obj{"name": "ci", "externalId": "ci"}).wantStatus(http.StatusCreated).into(&agent)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	release := h.fill()
	h.do("PATCH", "/v1/agents/"+agent.ID+"/status", op, obj{"status": "disabled"}).wantStatus(http.StatusOK)
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
	h.do("GET", "/v1/policies", op, nil).wantStatus(http.StatusOK)
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
	starts := make([]time.Time, firstLimit)
	for i := range starts {
		starts[i], _ = h.server.gate.Enter(time.Now(), false)
	}
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(acme, intent()) }()
	h.untilMetrics(firstLimit, 1)
	h.server.gate.Leave(starts[0])
	wantDecision(t, <-answered, "allow")
	for _, start := range starts[1:] {
		h.server.gate.Leave(start)
	}
	h.untilMetrics(0, 0)
}

func TestOverload_WhoWaitsTooLongIsRefused(t *testing.T) {
	h := start(t, func(c *Config) { c.Limits.Queue = 20 * time.Millisecond })
	h.register(acme)
	for range firstLimit {
		h.server.gate.Enter(time.Now(), false)
	}
	h.evaluate(acme, intent()).wantProblem(http.StatusServiceUnavailable, codeOverloaded)
	if n := len(h.history(acme)); n != 0 {
		t.Errorf("history has %d rows, want 0", n)
	}
	if got, want := h.admin("/metrics").Body.String(), `writ_admission_rejected_total{reason="queue_deadline"} 1`; !strings.Contains(got, want) {
		t.Errorf("metrics lack %s", want)
	}
}

// TestOverload_EveryAnswerFreesItsPlace: answers, refusals, panics, timeouts and
// clients that went away.
func TestOverload_EveryAnswerFreesItsPlace(t *testing.T) {
	h := start(t, func(c *Config) { c.Limits.Handle = time.Millisecond })
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
	h.server.plans = nil // using it panics
	h.evaluate(acme, intent()).wantProblem(http.StatusInternalServerError, codeInternal)
	h.untilMetrics(0, 0)
}

// over has the server handle requests for a decision, without a credential, that
// come over c, and returns what does so.
func (h *harness) over(c *conn) (ask func() (status int)) {
	var (
		ctx     fasthttp.RequestCtx
		handler = h.server.app.Server().Handler
	)
	ctx.Init2(c, nil, false)
	must(h.t, ctx.Request.Read(bufio.NewReader(strings.NewReader("POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"))))
	return func() int {
		ctx.Response.Reset()
		handler(&ctx)
		return ctx.Response.StatusCode()
	}
}

func TestOverload_RefusalsPauseTheirConnection(t *testing.T) {
	h := start(t, patient)
	defer h.fill()()
	c := &conn{}
	ask, longest := h.over(c), time.Duration(0)
	for range 1000 { // some come within less than the time between two
		if status := ask(); status != http.StatusServiceUnavailable {
			t.Fatalf("a request to a full gate = %d, want 503", status)
		}
		longest = max(longest, c.pause)
	}
	if longest == 0 {
		t.Error("no refusal had its connection left unread")
	}
}

func TestOverload_WhoCameEarlyLeavesRoomForOthers(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	for range firstLimit / 2 {
		h.server.gate.Enter(time.Now(), false)
	}
	here, there := net.Pipe()
	defer there.Close()
	c := &conn{Conn: here, release: func() {}}
	defer c.Close()
	ask := h.over(c)
	for early, want := range map[bool]int{true: http.StatusServiceUnavailable, false: http.StatusUnauthorized} {
		c.early = early
		if got := ask(); got != want {
			t.Errorf("a request to a gate that is half full, early %t = %d, want %d", early, got, want)
		}
	}
}

func TestOverload_ARefusedConnectionIsReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		c := &conn{Conn: here, release: func() {}}
		defer c.Close()
		const pause = 200 * time.Millisecond
		for _, step := range []struct {
			pause, sent, read time.Duration
			early             bool
		}{
			{0, 0, 0, false},
			{pause, 0, pause, true},
			{pause, pause / 2, pause, true},
			{pause, 2 * pause, 2 * pause, false},
			{0, pause, pause, false}, // once
		} {
			c.pause = step.pause
			began := time.Now()
			go func() {
				time.Sleep(step.sent)
				there.Write([]byte("a"))
			}()
			if _, err := c.Read(make([]byte, 1)); err != nil || time.Since(began) != step.read || c.early != step.early {
				t.Errorf("pause %v, sent after %v: Read = %v after %v, early %t, want nil after %v, early %t",
					step.pause, step.sent, err, time.Since(began), c.early, step.read, step.early)
			}
		}
	})
}
