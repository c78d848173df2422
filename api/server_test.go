package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

func TestPublicEndpoints(t *testing.T) {
	h := start(t)
	if r := h.do("GET", "/health", "", nil).wantStatus(http.StatusOK); string(r.body) != `{"ok":true,"service":"writ"}` {
		t.Errorf("GET /health = %s", r.body)
	}
	if r := h.do("GET", "/.well-known/jwks.json", "", nil).wantStatus(http.StatusOK); !bytes.Equal(r.body, h.trusted.JWKS()) {
		t.Errorf("GET /.well-known/jwks.json = %s, want %s", r.body, h.trusted.JWKS())
	}
	if r := h.do("GET", "/", "", nil).wantStatus(http.StatusOK); !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Errorf("GET / = %s, want HTML", r.header.Get("Content-Type"))
	}
	if r := h.do("HEAD", "/health?probe=1", "", nil).wantStatus(http.StatusOK); len(r.body) != 0 {
		t.Errorf("HEAD /health = %q, want no body", r.body)
	}
}

func TestHealth_SaysNothingOfTheStore(t *testing.T) {
	h := start(t)
	h.store.fail("Healthy", errors.New("disk full"))
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
}

func TestUnknownPathsAndMethods(t *testing.T) {
	h := start(t)
	for _, path := range []string{
		"/nope", "/v1", "/v1/rules/", "/V1/rules", "/v1/Rules", "//v1/rules", "/v1//rules", "/health/", "/v1/rules/a/b",
		"/v1/../health", "/v1/agents//status", "/livez", "/metrics", "/readyz",
	} {
		r := h.raw("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if r.status != http.StatusNotFound || r.code() != codeNotFound {
			t.Errorf("GET %s = %d %s, want a 404 problem", path, r.status, r.body)
		}
	}
	for request, allow := range map[string]string{
		"PUT /v1/rules":                 "GET, HEAD, POST",
		"GET /v1/policy/evaluate":       "POST",
		"POST /health":                  "GET, HEAD",
		"OPTIONS /v1/rules/1":           "DELETE, GET, HEAD, PATCH",
		"BREW /v1/policies":             "GET, HEAD",
		"TRACE /health":                 "GET, HEAD",
		"get /health":                   "GET, HEAD",
		"DELETE /v1/agents/x/status":    "PATCH",
		"PROPFIND /v1/actions/record":   "POST",
		"CONNECT /v1/policies/register": "GET, HEAD, POST",
	} {
		r := h.raw(request + " HTTP/1.1\r\nHost: x\r\n\r\n")
		got := strings.Split(r.header.Get("Allow"), ", ")
		slices.Sort(got)
		if r.status != http.StatusMethodNotAllowed || r.code() != codeMethodNotAllowed || strings.Join(got, ", ") != allow {
			t.Errorf("%s = %d, Allow %q, want 405, %q; %s", request, r.status, got, allow, r.body)
		}
	}
	if r := h.raw("BREW /nope HTTP/1.1\r\nHost: x\r\n\r\n"); r.status != http.StatusNotFound {
		t.Errorf("BREW /nope = %d, want 404", r.status)
	}
}

func (r *reply) code() string {
	var p problem
	if err := json.Unmarshal(r.body, &p); err != nil {
		return "not a problem"
	}
	return p.Code
}

// raw sends request unchanged and reads one response. The status is 0 if no response came.
func (h *harness) raw(request string) *reply {
	h.t.Helper()
	c, err := net.Dial("tcp", h.addr)
	must(h.t, err)
	defer c.Close()
	must(h.t, c.SetDeadline(time.Now().Add(10*time.Second)))
	go func() { _, _ = io.WriteString(c, request) }() // the server may stop reading early
	return readReply(h.t, c)
}

func readReply(t testing.TB, c io.Reader) *reply {
	t.Helper()
	br := bufio.NewReader(c)
	res, err := http.ReadResponse(br, nil)
	if err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(br, nil)
	}
	if err != nil {
		return &reply{t: t, what: "raw: " + err.Error(), header: http.Header{}}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	return &reply{t, "raw", res.StatusCode, res.Header, body}
}

func TestDecision_Errors_MalformedHTTPIsAProblemWithAnId(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.Read = 500 * time.Millisecond })
	for name, tc := range map[string]struct {
		request string
		status  int
		code    string
	}{
		"no method":           {"\x00\x01\r\n\r\n", 400, codeMalformed},
		"two lengths":         {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\ncontent-length: 3\r\n\r\nabc", 400, codeMalformed},
		"length and chunks":   {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, codeMalformed},
		"garbage":             {"hello\r\n\r\n", 400, codeMalformed},
		"two hosts":           {"GET /health HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n", 400, codeMalformed},
		"NUL in a header":     {"GET /health HTTP/1.1\r\nHost: x\r\nX\x00: a\r\n\r\n", 400, codeMalformed},
		"bad content length":  {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400, codeMalformed},
		"negative length":     {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400, codeMalformed},
		"bad chunk":           {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400, codeMalformed},
		"header too large":    {"GET /health HTTP/1.1\r\nHost: x\r\nX-Big: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", 431, codeHeaderTooLarge},
		"path too long":       {"GET /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, codeHeaderTooLarge},
		"body never comes":    {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab", 408, codeRequestTimeout},
		"declared too large":  {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n", 413, codeBodyTooLarge},
		"chunked too large":   {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n50000\r\n" + strings.Repeat("a", 0x50000) + "\r\n0\r\n\r\n", 413, codeBodyTooLarge},
		"headers never end":   {"GET /health HTTP/1.1\r\nHost: x\r\nX-A: b\r\n", 408, codeRequestTimeout},
		"length out of range": {"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400, codeMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.raw(tc.request)
			if r.status != tc.status || r.code() != tc.code {
				t.Errorf("%d %s (%s), want a problem %d %s", r.status, r.body, r.what, tc.status, tc.code)
			}
			if id := r.header.Get(headerRequestID); !validRequestID([]byte(id)) || !bytes.Contains(r.body, []byte(id)) {
				t.Errorf("X-Request-Id = %q, body %s, want the same id in both", id, r.body)
			}
		})
	}
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
	h.raw("GET /health HTTP/1.0\r\n\r\n").wantStatus(http.StatusOK)
}

func TestBodyLimitIs256KiB(t *testing.T) {
	h := start(t)
	pad := func(n int) string {
		body := `{"name":"n","condition":"{}","action":"{\"decision\":\"allow\"}"}`
		return body + strings.Repeat(" ", n-len(body))
	}
	h.do("POST", "/v1/rules", h.operator(acme), pad(256<<10)).wantStatus(http.StatusCreated)
	for range 5 {
		h.do("POST", "/v1/rules", h.operator(acme), pad(256<<10+1)).wantProblem(http.StatusRequestEntityTooLarge, codeBodyTooLarge)
		h.do("POST", "/v1/rules", h.operator(acme), pad(900<<10)).wantProblem(http.StatusRequestEntityTooLarge, codeBodyTooLarge)
	}
}

func TestSlowLorisIsBounded(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Limits.Read, c.Limits.Connections = 200*time.Millisecond, 4
	})
	for range 4 { // four incomplete requests take every connection
		c, err := net.Dial("tcp", h.addr)
		must(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "POST /v1/rules HTTP/1.1\r\nX-A:")
		must(t, err)
	}
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK) // fails if no connection becomes free in time
}

func TestMediaTypes(t *testing.T) {
	h := start(t)
	body := `{"name":"n"}`
	for contentType, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON;charset=\"UTF-8\"": 201,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415,
		"application/json; charset=latin1": 415, "application/jsonx": 415, "application/json, text/plain": 415,
	} {
		if r := h.do("POST", "/v1/agents", h.key1(acme), body, "Content-Type", contentType); r.status != want {
			t.Errorf("%s = %d %s, want %d", contentType, r.status, r.body, want)
		}
	}
	req, err := http.NewRequest(http.MethodPost, "http://"+h.addr+"/v1/agents", strings.NewReader(body))
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+h.operator(acme))
	h.send(req).wantProblem(http.StatusUnsupportedMediaType, codeMediaType)
	h.do("POST", "/v1/agents", h.operator(acme), body, "Content-Encoding", "gzip").wantProblem(http.StatusUnsupportedMediaType, codeMediaType)
	h.do("POST", "/v1/agents", h.operator(acme), body, "Content-Encoding", "identity").wantStatus(http.StatusCreated)
}

func (h *harness) key1(org string) string {
	key, _ := h.key(org, Scopes()...)
	return key
}

func TestDecision_Errors_APanicIsA500AndTheProcessLives(t *testing.T) {
	h := start(t)
	h.server.cfg.JWKS = nil // any use of JWKS panics
	r := h.do("GET", "/.well-known/jwks.json", "", nil)
	r.wantProblem(http.StatusInternalServerError, codeInternal)
	log := h.log.String()
	if !strings.Contains(log, r.header.Get(headerRequestID)) || !strings.Contains(log, "hosted.go") {
		t.Errorf("log = %s, want the request id and the stack", log)
	}
	h.do("GET", "/health", "", nil).wantStatus(http.StatusOK)
}

func TestShutdown_FinishesWhatItAccepted(t *testing.T) {
	h := start(t)
	h.register(acme)
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(acme, intent()) }()
	<-entered
	down := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		down <- h.server.Shutdown(ctx)
	}()
	h.untilRefused()
	if err := h.server.ready(t.Context()); err == nil {
		t.Error("ready while shutting down = nil, want an error")
	}
	close(release)
	(<-answered).wantStatus(http.StatusOK)
	if err := <-down; err != nil {
		t.Errorf("Shutdown = %v, want nil", err)
	}
}

// untilRefused waits until the server accepts no new connections.
func (h *harness) untilRefused() {
	for range 1000 {
		c, err := net.DialTimeout("tcp", h.addr, time.Second)
		if err != nil {
			return
		}
		c.Close()
	}
	h.t.Error("connections are still accepted")
}

func TestShutdown_GivesUpWhenToldTo(t *testing.T) {
	h := start(t)
	h.register(acme)
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	answered := make(chan *reply)
	go func() { answered <- h.evaluate(acme, intent()) }()
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := h.server.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown = %v, want context.Canceled", err)
	}
	(<-answered).wantProblem(http.StatusServiceUnavailable, codeTimeout)
	close(release)
}

func TestARequestThatTakesTooLongIsRefused(t *testing.T) {
	h := start(t, func(c *setup) { c.Limits.Handle = 50 * time.Millisecond })
	h.register(acme)
	entered, release := make(chan struct{}), make(chan struct{})
	h.store.block("Commit", entered, release)
	body := intent()
	r := h.evaluate(acme, body)
	r.wantProblem(http.StatusServiceUnavailable, codeTimeout)
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(release)
	h.clock.advance(time.Second)
	wantDecision(t, h.evaluate(acme, body), "allow")
	h.wantRows(acme, 1)
}

func TestKeepAliveConnectionsKeepRequestsApart(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, _ := h.key(acme)
	c, err := net.Dial("tcp", h.addr)
	must(t, err)
	defer c.Close()
	var pipeline bytes.Buffer
	for i := range 20 {
		body, err := json.Marshal(intent(obj{"agent_id": fmt.Sprintf("agent-%d", i)}))
		must(t, err)
		auth := "Authorization: Bearer " + key + "\r\n"
		if i%2 == 1 {
			auth = ""
		}
		fmt.Fprintf(&pipeline, "POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\n%sX-Request-Id: r%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", auth, i, len(body), body)
	}
	_, err = c.Write(pipeline.Bytes())
	must(t, err)
	br := bufio.NewReader(c)
	for i := range 20 {
		res, err := http.ReadResponse(br, nil)
		must(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		must(t, err)
		want := http.StatusOK
		if i%2 == 1 {
			want = http.StatusUnauthorized
		}
		if res.StatusCode != want || res.Header.Get(headerRequestID) != fmt.Sprintf("r%d", i) {
			t.Errorf("response %d = %d, id %s, want %d, r%d", i, res.StatusCode, res.Header.Get(headerRequestID), want, i)
		}
	}
}

func TestServeAdmin_EndsWithShutdown(t *testing.T) {
	h := start(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error)
	go func() { served <- h.server.ServeAdmin(ln) }()
	res, err := http.Get("http://" + ln.Addr().String() + "/livez")
	must(t, err)
	must(t, res.Body.Close())
	if res.StatusCode != http.StatusOK {
		t.Errorf("GET /livez = %d, want 200", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
	must(t, h.server.Shutdown(t.Context()))
	if err := <-served; err != nil {
		t.Errorf("ServeAdmin = %v, want nil", err)
	}
	must(t, h.server.Shutdown(t.Context()))
}

func TestServe_AfterShutdownServesNothing(t *testing.T) {
	h := start(t)
	must(t, h.server.Shutdown(t.Context()))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if err := h.server.Serve(ln); err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	if _, err := net.DialTimeout("tcp", ln.Addr().String(), time.Second); err == nil {
		t.Error("the listener is open, want closed")
	}
}

func TestNew_SaysWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "no decision service") {
		t.Errorf("New = %v, want that there is no decision service", err)
	}
}
