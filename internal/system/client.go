package system

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
)

// object is a JSON object.
type object map[string]any

const testPolicy = "0c0ffee0-0000-4000-8000-00000000beef"

// register stores a policy. Under it, bot may deploy, deploys of others need approval, and
// everything else is denied.
func register(t *testing.T, url, token string) {
	t.Helper()
	registerIn(t, url, token, examples.Organization)
}

// registerIn is register for another organization, which token is of.
func registerIn(t *testing.T, url, token, org string) {
	t.Helper()
	newClient(t, url, token).do(t, http.MethodPost, "/v1/policies/register", policyOf(org, 1), http.StatusCreated, nil)
}

// policyOf returns the request that registers a version of an organization's policy.
func policyOf(org string, version int) object {
	return object{"policy": object{
		"policy_id": testPolicy, "version": version, "organization_id": org, "agent_id": "bot",
		"allowed_action_types": []string{"deploy"}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
	}}
}

// intent is the request for an evaluation.
type intent struct {
	id   string
	body []byte
}

// newIntent makes an intent under the policy of register.
func newIntent(agent, action, resource string) intent {
	id := uuid.NewString()
	body, err := json.Marshal(object{"policy_id": testPolicy, "intent": object{
		"intent_id": id, "policy_id": testPolicy, "agent_id": agent, "action_type": action,
		"resource": resource, "issued_at": "2026-11-02T10:00:00Z",
	}})
	if err != nil {
		panic(fmt.Sprintf("encoding an intent of plain strings: %v", err))
	}
	return intent{id, body}
}

// answer is an answer of any status.
type answer struct {
	status      int
	contentType string
	replayed    string // the header Idempotent-Replayed
	retryAfter  string // the header Retry-After
	body        string
}

// sender sends intents over connections of its own.
type sender struct {
	http  *http.Client
	token string
}

func newSender(t *testing.T, token string, conns int) sender {
	tr := &http.Transport{MaxIdleConns: conns, MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true,
		TLSClientConfig: &tls.Config{RootCAs: balancerCA.Load().pool()}}
	t.Cleanup(tr.CloseIdleConnections)
	return sender{http: &http.Client{Transport: tr, Timeout: patience}, token: token}
}

// evaluate sends one intent. An error means that no complete answer arrived.
func (s sender) evaluate(url string, in intent) (answer, error) {
	return s.send(http.MethodPost, url+"/v1/policy/evaluate", in.body)
}

// decide sends one intent and fails the test unless it is decided.
func (s sender) decide(t testing.TB, url string, in intent) answer {
	t.Helper()
	got, err := s.evaluate(url, in)
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("evaluate %s = %d %s, %v, want 200", in.id, got.status, got.body, err)
	}
	return got
}

// send sends one request. headers override the usual headers. An error means that no complete
// answer arrived.
func (s sender) send(method, url string, body []byte, headers ...http.Header) (answer, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	// net/http repeats requests that it takes for idempotent. A test must count its own
	// requests.
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		maps.Copy(req.Header, h)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	got, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return answer{}, err
	}
	h := resp.Header
	return answer{resp.StatusCode, h.Get("Content-Type"), h.Get("Idempotent-Replayed"), h.Get("Retry-After"), string(got)}, nil
}

// get returns the status and the body of a plain GET.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return resp.StatusCode, string(body)
}

// client calls the API of one server with one credential.
type client struct {
	sender
	url string
}

// newClient returns a client with a connection of its own.
func newClient(t *testing.T, url, token string) client { return client{newSender(t, token, 1), url} }

// do sends a request and fails the test unless the answer has the wanted status. It decodes the
// answer into v, unless v is nil. A body that is not a string is sent as JSON.
func (c client) do(t testing.TB, method, path string, body any, want int, v any) {
	t.Helper()
	must(t, c.call(method, path, body, want, v))
}

// newAgent registers an active agent and returns its id.
func (c client) newAgent(t testing.TB, externalID string) string {
	t.Helper()
	var agent engine.Agent
	c.do(t, http.MethodPost, "/v1/agents", object{"name": "Bot", "externalId": externalID}, http.StatusCreated, &agent)
	return agent.ID
}

// setStatus sets the status of an agent. disabled throws the kill switch, and active releases
// it.
func (c client) setStatus(t testing.TB, id, status string) {
	t.Helper()
	c.do(t, http.MethodPatch, "/v1/agents/"+id+"/status", object{"status": status}, http.StatusOK, nil)
}

// call is like do, but it returns an error.
func (c client) call(method, path string, body any, want int, v any) error {
	text, ok := body.(string)
	if !ok && body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		text = string(data)
	}
	got, err := c.send(method, c.url+path, []byte(text))
	if err == nil && got.status != want {
		err = fmt.Errorf("%s %s = %d %s, want %d", method, path, got.status, got.body, want)
	}
	if err != nil || v == nil {
		return err
	}
	return json.Unmarshal([]byte(got.body), v)
}

// encode returns v as JSON.
func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return string(data)
}

// background calls f repeatedly in n senders, until f returns false or release is called.
// release waits for the senders.
func background(t *testing.T, n int, token string, f func(sender) bool) (release func()) {
	t.Helper()
	var (
		wg      sync.WaitGroup
		stopped atomic.Bool
	)
	for range n {
		wg.Go(func() {
			for s := newSender(t, token, 1); !stopped.Load() && f(s); {
			}
		})
	}
	return func() {
		stopped.Store(true)
		wg.Wait()
	}
}

// together calls f with 0 to n-1 at the same time, and waits for all calls.
func together(n int, f func(i int)) {
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	wg.Wait()
}
