package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/api/limit"
	"writ.example/writ/api/operator"
	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

const (
	testSecret = "0123456789abcdef0123456789abcdef"
	acme       = "acme"
	rival      = "rival"
)

// ample is a rate limit that no test reaches.
var ample = limit.Rate{PerSecond: engine.MaxSetting, Burst: engine.MaxSetting}

// harness is a server on a real TCP port over a store in memory.
type harness struct {
	t       testing.TB
	clock   *clock
	store   *faultStore
	docs    *registry.Registry // writes documents directly to store
	ledger  *ledger.Ledger
	server  *Server
	addr    string
	client  *http.Client
	log     *logBuffer
	trusted receipt.Keys
	served  chan error
}

// scrubber returns one scrubber for all tests, because a scrubber is slow to make.
var scrubber = sync.OnceValue(func() *scrub.Tagger {
	s, err := scrub.New()
	if err != nil {
		panic(err)
	}
	tagger, err := s.Tagger(make([]byte, 32))
	if err != nil {
		panic(err)
	}
	return tagger
})

// setup is the configuration of a server and of the decision service that it calls.
type setup struct {
	Config
	Service decision.Config
	Audit   ledger.Mode
}

// start starts a server. mods change the server's configuration first.
func start(t testing.TB, mods ...func(*setup)) *harness {
	t.Helper()
	h := &harness{
		t: t, log: &logBuffer{}, served: make(chan error, 1),
		clock: &clock{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)},
	}
	inner, err := embedded.Open("db", embedded.Options{FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)})
	must(t, err)
	h.store = &faultStore{Store: inner, faults: make(map[string]error)}
	h.docs = registry.New(h.store)
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)))
	h.trusted, err = receipt.NewKeys(signer.Public())
	must(t, err)
	registry := prometheus.NewRegistry()
	cfg := setup{
		Config: Config{
			Scrub:     scrubber(),
			Operators: operator.Config{Alg: "HS256", Secret: []byte(testSecret)},
			JWKS:      h.trusted.JWKS,
			Registry:  registry,
			Log:       slog.New(slog.NewJSONHandler(h.log, nil)),
			// The limits are enabled, so that responses have the limit headers that openapi.yaml
			// describes.
			RateLimits: RateLimits{Credential: ample, Evaluate: ample, Address: ample},
		},
		Service: decision.Config{
			Store: h.store, Scrub: scrubber(), Metrics: registry, Now: h.clock.Now, CacheBytes: 64 << 20,
		},
	}
	// Deadlines are computed from the test clock, which does not advance by itself. With a short
	// limit, all requests of ten real seconds would share one deadline and be refused at that
	// moment.
	cfg.Limits.Handle = time.Hour
	for _, mod := range mods {
		mod(&cfg)
	}
	h.ledger, err = ledger.Open(context.Background(), ledger.Config{
		Store: h.store, Signer: signer, Scrub: scrubber(), Now: h.clock.Now, Metrics: registry, Audit: cfg.Audit,
	})
	must(t, err)
	cfg.Service.Ledger, cfg.Service.Log = h.ledger, cfg.Log
	cfg.Decisions, err = decision.Open(cfg.Service)
	must(t, err)
	cfg.Freeze = func(ctx context.Context) (Frozen, error) { return inner.Freeze(ctx) }
	h.server, err = New(cfg.Config)
	must(t, err)
	h.serve()
	return h
}

func (h *harness) serve() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(h.t, err)
	h.addr = ln.Addr().String()
	transport := &http.Transport{MaxIdleConnsPerHost: 128}
	h.client = &http.Client{Transport: transport, Timeout: 20 * time.Second}
	go func() { h.served <- h.server.Serve(ln) }()
	h.t.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // other tests may have the processors
		defer cancel()
		err := errors.Join(h.server.Shutdown(ctx), <-h.served)
		h.server.cfg.Decisions.Close()
		if err := errors.Join(err, h.ledger.Close(ctx), h.store.Close()); err != nil {
			h.t.Errorf("closing: %v", err)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// operator returns an operator token of org.
func (h *harness) operator(org string) string {
	h.t.Helper()
	token, err := operator.Sign([]byte(testSecret), org, "op@"+org, h.clock.Now(), 12*time.Hour)
	must(h.t, err)
	return token
}

// key makes an API key of org with scopes, over HTTP.
func (h *harness) key(org string, scopes ...string) (key, id string) {
	h.t.Helper()
	out := read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(org), obj{"name": "test", "scopes": scopes}).wantStatus(http.StatusCreated))
	return out.Token, out.ID
}

type obj = map[string]any

// reply is the response to a request.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

// do sends a request. A string or []byte body is sent unchanged. Any other body is encoded as JSON,
// and nil means no body.
func (h *harness) do(method, path, token string, body any, header ...string) *reply {
	h.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	case []byte:
		r = bytes.NewReader(b)
	default:
		data, err := json.Marshal(b)
		must(h.t, err)
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, "http://"+h.addr+path, r)
	must(h.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return h.send(req)
}

// send sends req and compares the exchange with openapi.yaml.
func (h *harness) send(req *http.Request) *reply {
	h.t.Helper()
	var sent []byte
	if req.GetBody != nil {
		body, err := req.GetBody()
		must(h.t, err)
		sent, err = io.ReadAll(body)
		must(h.t, err)
	}
	res, err := h.client.Do(req)
	must(h.t, err)
	defer res.Body.Close()
	var body io.Reader = res.Body
	if res.Header.Get("Content-Type") == "text/event-stream" && res.StatusCode == http.StatusOK {
		body = io.LimitReader(body, 1) // it does not end
	}
	data, err := io.ReadAll(body)
	must(h.t, err)
	r := &reply{h.t, req.Method + " " + req.URL.Path, res.StatusCode, res.Header, data}
	if _, measuring := h.t.(*testing.B); measuring {
		return r // benchmarks must not measure the validator
	}
	if found := mustContract(h.t).violations(req, sent, r); found != "" {
		h.t.Errorf("%s = %d is not as openapi.yaml describes it: %s", r.what, r.status, found)
	}
	h.importRefusesToo(req, sent, r)
	return r
}

func (r *reply) wantStatus(want int) *reply {
	r.t.Helper()
	if r.status != want {
		r.t.Fatalf("%s = %d, want %d; body %s", r.what, r.status, want, r.body)
	}
	return r
}

// wantHeader checks the value of a header. An empty want means that the header must be missing.
func (r *reply) wantHeader(name, want string) {
	r.t.Helper()
	if got := r.header.Get(name); got != want {
		r.t.Errorf("%s = %d, %s = %q, want %q", r.what, r.status, name, got, want)
	}
}

// wantProblem checks that r is a complete problem document with this status and code.
func (r *reply) wantProblem(status int, code string) *problem {
	r.t.Helper()
	r.wantStatus(status)
	var p problem
	if err := json.Unmarshal(r.body, &p); err != nil {
		r.t.Fatalf("%s: body %q is not a problem: %v", r.what, r.body, err)
	}
	if p.Code != code || p.Status != status || p.OK || p.Title == "" || p.Type == "" || p.Detail == "" {
		r.t.Errorf("%s = problem %s, want code %s, status %d, ok false and all members", r.what, r.body, code, status)
	}
	if p.Retryable != retryable[code] || !bytes.Contains(r.body, []byte(`"retryable":`)) {
		r.t.Errorf("%s = problem %s, want retryable %t", r.what, r.body, retryable[code])
	}
	if got := r.header.Get("Content-Type"); got != typeProblem {
		r.t.Errorf("%s Content-Type = %q, want %q", r.what, got, typeProblem)
	}
	if id := r.header.Get(headerRequestID); id == "" || id != p.RequestID {
		r.t.Errorf("%s X-Request-Id = %q, in the problem %q, want the same", r.what, id, p.RequestID)
	}
	if bytes.Contains(r.body, []byte(`"approved":true`)) {
		r.t.Errorf("%s: a problem approves: %s", r.what, r.body)
	}
	return &p
}

// wantField checks that r is a 400 that names field.
func (r *reply) wantField(field string) {
	r.t.Helper()
	p := r.wantProblem(http.StatusBadRequest, codeInvalidRequest)
	for _, e := range p.Errors {
		if e.Field == field {
			return
		}
	}
	r.t.Errorf("%s errors = %v, want one of field %s", r.what, p.Errors, field)
}

func (r *reply) into(v any) {
	r.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		r.t.Fatalf("%s: reading %s: %v", r.what, r.body, err)
	}
}

// read returns the decoded body of r.
func read[T any](r *reply) (v T) {
	r.t.Helper()
	r.into(&v)
	return v
}

// same reports an error if got differs from want. what names the values in the error message.
func same(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const policyID = "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20"

// policy returns a policy document of org. changes replace members of the document.
func policy(org string, changes ...obj) obj {
	p := obj{
		"policy_id": policyID, "version": 1, "organization_id": org, "agent_id": "*",
		"allowed_action_types": []string{"deploy", "http_get"}, "denied_action_types": []string{"sql.drop"},
		"blocked_resource_patterns": []string{"https://vault.example.com/**"},
		"status":                    "active", "updated_at": "2026-11-20T00:00:00Z",
	}
	for _, c := range changes {
		maps.Copy(p, c)
	}
	return p
}

// register registers the document that policy returns for org and changes.
func (h *harness) register(org string, changes ...obj) {
	h.t.Helper()
	h.do("POST", "/v1/policies/register", h.operator(org), obj{"policy": policy(org, changes...)}).wantStatus(http.StatusCreated)
}

// intent returns the body of an evaluation with a new intent id. changes replace members of the
// intent.
func intent(changes ...obj) obj {
	in := obj{
		"intent_id": uuid.NewString(), "policy_id": policyID, "agent_id": "ci", "action_type": "deploy",
		"resource": "prod/web", "issued_at": "2026-11-21T10:00:00Z",
	}
	for _, c := range changes {
		maps.Copy(in, c)
	}
	return obj{"policy_id": policyID, "intent": in}
}

// result is PolicyEvaluationResult of the API contract.
type result struct {
	OK          bool            `json:"ok"`
	Approved    bool            `json:"approved"`
	Decision    string          `json:"decision"`
	Reasons     []string        `json:"reasons"`
	DecisionID  string          `json:"decision_id"`
	AuditDigest string          `json:"audit_digest"`
	Receipt     receipt.Receipt `json:"receipt"`
}

// evaluate evaluates body as an operator of org.
func (h *harness) evaluate(org string, body any) *reply {
	h.t.Helper()
	return h.do("POST", "/v1/policy/evaluate", h.operator(org), body)
}

// history returns all rows of org.
func (h *harness) history(org string) []storage.Record {
	h.t.Helper()
	list := read[page[storage.Record]](h.do("GET", "/v1/authorizations?limit=500", h.operator(org), nil).wantStatus(http.StatusOK))
	return list.Data
}

// wantRows checks how many rows org has.
func (h *harness) wantRows(org string, want int) {
	h.t.Helper()
	if n := len(h.history(org)); n != want {
		h.t.Errorf("%s has %d rows, want %d", org, n, want)
	}
}

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// logBuffer is the log of a test.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// faultStore is a store whose calls a test can make fail.
type faultStore struct {
	storage.Store
	mu     sync.Mutex
	faults map[string]error
	calls  map[string]int
	blocks map[string]func() // the next call with this name runs the function, once
	// corrupt, if set, modifies each policy that is read.
	corrupt func(*engine.ActionPolicy)
	// age is the time since the store last heard from its backend. While deaf is true, the store
	// reports no changes.
	age  atomic.Int64
	deaf atomic.Bool
	told []func(storage.Change)
}

// fail makes all later calls with this name return err. With a nil err these calls work again.
func (f *faultStore) fail(call string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[call] = err
}

func (f *faultStore) fault(call string) error {
	f.mu.Lock()
	block := f.blocks[call]
	delete(f.blocks, call)
	f.mu.Unlock()
	if block != nil {
		block()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = make(map[string]int)
	}
	f.calls[call]++
	if err := f.faults[call]; err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	return nil
}

func (f *faultStore) count(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// block makes the next call with this name send on entered and then wait for release.
func (f *faultStore) block(call string, entered chan<- struct{}, release <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocks == nil {
		f.blocks = make(map[string]func())
	}
	f.blocks[call] = func() {
		close(entered)
		<-release
	}
}
