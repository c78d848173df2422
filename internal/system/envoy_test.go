package system

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/examples"
	"writ.example/writ/internal/freeze"
	"writ.example/writ/storage/datadir"
)

// guarded is an application behind Envoy, which asks writ about every request.
type guarded struct {
	url      string // of Envoy
	writ     *process
	data     datadir.Dir
	flags    []string
	operator client

	mu   sync.Mutex
	seen []string // the requests that the application got, with their decisions
}

// newGuarded starts the application, writ and Envoy. Below http://shop.example an agent may read what is
// not private. Its posts are held. replace changes Envoy's configuration.
func newGuarded(t *testing.T, replace ...string) *guarded {
	p := new(guarded)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, r.Method+" "+r.RequestURI)
		decision := r.Header.Get("X-Writ-Decision")
		_, err := uuid.Parse(decision)
		if err != nil && (decision != "" || r.URL.Path != "/mcp") || r.Header.Get("X-Writ-Approval") != "" {
			t.Errorf("the application got the headers %v, want the decision alone", r.Header)
		}
	}))
	t.Cleanup(app.Close)
	var token string
	p.data, token = newData(t)
	p.writ = start(t, p.data)
	p.operator = newClient(t, p.writ.url, token)
	p.operator.do(t, http.MethodPost, "/v1/policies/register", object{"policy": object{
		"policy_id": testPolicy, "version": 1, "organization_id": examples.Organization, "agent_id": "bot",
		"allowed_action_types": []string{"http_get", "http_post", "mcp.crm.find"}, "allowed_resource_patterns": []string{"http://shop.example/**", "mcp/crm/*"},
		"blocked_resource_patterns": []string{"http://shop.example/private/**"},
		"status":                    "active", "updated_at": "2026-11-01T09:00:00Z",
	}}, http.StatusCreated, nil)
	p.operator.do(t, http.MethodPost, "/v1/rules", object{
		"name": "Posts wait", "condition": `{"action_type":"http_post"}`, "action": `{"decision":"require_approval"}`,
	}, http.StatusCreated, nil)
	var key struct {
		Token string `json:"token"`
	}
	p.operator.do(t, http.MethodPost, "/v1/tokens", object{
		"name": "envoy", "scopes": []string{"policy:evaluate", "facts:assert"}, "policy_id": testPolicy, "agent_id": "bot",
	}, http.StatusCreated, &key)
	p.writ.stop(t)
	dir, err := os.MkdirTemp("", "envoy-") // a path of a socket is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	file, socket := filepath.Join(dir, "key"), filepath.Join(dir, "s")
	must(t, os.WriteFile(file, []byte(key.Token+"\n"), 0o600))
	p.flags = []string{"--ext-authz", "unix:" + socket, "--ext-authz-api-key-file", file, manyEvaluations(t)}
	p.restart(t)
	info, err := os.Stat(socket)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v, want 0600", info.Mode().Perm())
	}
	p.url = startEnvoy(t, socket, hostOf(app.URL), replace...)
	return p
}

func (p *guarded) restart(t *testing.T) {
	p.writ = start(t, p.data, p.flags...)
	p.operator.url = p.writ.url
}

// proxyAnswer is the answer to a request through Envoy.
type proxyAnswer struct {
	status   int
	approval string // the header x-writ-approval
	body     string
}

// send sends a request without a body as it is written, and returns the answer.
func (p *guarded) send(t *testing.T, method, target string, headers ...string) proxyAnswer {
	t.Helper()
	return p.post(t, method, target, "", headers...)
}

// post is send with a body.
func (p *guarded) post(t *testing.T, method, target, body string, headers ...string) proxyAnswer {
	t.Helper()
	conn, err := net.Dial("tcp", hostOf(p.url))
	must(t, err)
	defer conn.Close()
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: shop.example", "Connection: close"}, headers...)
	lines = append(lines, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
	_, err = io.WriteString(conn, strings.Join(lines, "\r\n"))
	must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	got, err := io.ReadAll(res.Body)
	must(t, err)
	must(t, res.Body.Close())
	return proxyAnswer{res.StatusCode, res.Header.Get("X-Writ-Approval"), string(got)}
}

// passed returns the requests that the application got since the last call.
func (p *guarded) passed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// want sends a request and checks its status, and that the application got it if and only if it is 200.
func (p *guarded) want(t *testing.T, status int, method, target string, headers ...string) proxyAnswer {
	t.Helper()
	got := p.send(t, method, target, headers...)
	if seen := p.passed(); got.status != status || len(seen) != 0 != (status == http.StatusOK) {
		t.Errorf("%s %s = %d %s, the application got %q; want %d", method, target, got.status, got.body, seen, status)
	}
	return got
}

// TestEnvoy sends requests through a real Envoy. A call that is denied, held or undecided does not
// reach the application. An approval lets one request through.
func TestEnvoy(t *testing.T) {
	p := newGuarded(t)
	p.passed()
	t.Run("allowed and denied", func(t *testing.T) {
		p.want(t, http.StatusOK, "GET", "/goods?color=red")
		got := p.want(t, http.StatusForbidden, "GET", "/private/x")
		if !strings.Contains(got.body, "resource.blocked") {
			t.Errorf("a denied request = %s, want its reasons", got.body)
		}
		for _, target := range []string{
			"/goods/../private/x", "/%70rivate/x", "//private/x", "/./private//x", "/goods/%2e%2e/private/x",
			"/private%2Fx", "/goods%2F..%2Fprivate/x", "/private/\xff", "*", "http://shop.example/private/x",
		} {
			got := p.send(t, "GET", target)
			if seen := p.passed(); got.status < 400 || len(seen) > 0 {
				t.Errorf("GET %q = %d, the application got %q; want a refusal", target, got.status, seen)
			}
		}
		p.want(t, http.StatusForbidden, "GET", "/goods", "Host: evil.example")
	})
	t.Run("a client cannot say who it is", func(t *testing.T) {
		id := uuid.NewString()
		for range 2 { // the second would be a replay, or a conflict
			p.want(t, http.StatusOK, "GET", "/goods", "x-request-id: "+id, "x-writ-decision: "+id,
				"x-writ-agent: other", "policy_id: "+id, "authorization: Bearer other")
		}
	})
	t.Run("an approval lets one request through", func(t *testing.T) {
		held := p.want(t, http.StatusForbidden, "POST", "/orders")
		with := "x-writ-approval: " + held.approval
		if again := p.want(t, http.StatusForbidden, "POST", "/orders", with); again.approval != held.approval {
			t.Errorf("a request whose approval is pending = %+v, want the same approval", again)
		}
		p.operator.do(t, http.MethodPatch, "/v1/approvals/"+held.approval, `{"status":"approved"}`, http.StatusOK, nil)
		p.want(t, http.StatusForbidden, "POST", "/other", with)
		p.want(t, http.StatusForbidden, "POST", "/orders", with, with)
		p.want(t, http.StatusForbidden, "POST", "/orders", with+"x")
		var once atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if p.send(t, "POST", "/orders", with).status == http.StatusOK {
					once.Add(1)
				}
			})
		}
		all.Wait()
		if seen := p.passed(); once.Load() != 1 || len(seen) != 1 {
			t.Errorf("8 requests with one approval: %d passed, the application got %q; want one", once.Load(), seen)
		}
		p.want(t, http.StatusForbidden, "POST", "/orders", with)
		refused := p.want(t, http.StatusForbidden, "POST", "/orders")
		p.operator.do(t, http.MethodPatch, "/v1/approvals/"+refused.approval, `{"status":"rejected"}`, http.StatusOK, nil)
		p.want(t, http.StatusForbidden, "POST", "/orders", "x-writ-approval: "+refused.approval)
	})
	t.Run("without writ nothing passes", func(t *testing.T) {
		freeze.Process(t, p.writ.cmd.Process)
		p.want(t, http.StatusForbidden, "GET", "/goods")
		must(t, p.writ.cmd.Process.Signal(syscall.SIGCONT))
		p.writ.kill(t)
		p.want(t, http.StatusForbidden, "GET", "/goods")
		p.restart(t)
		waitFor(t, "writ to be asked again", func() bool { return p.send(t, "GET", "/goods").status == http.StatusOK })
		p.passed()
		p.want(t, http.StatusForbidden, "GET", "/private/x")
	})
}

// TestEnvoy_AsTheApplicationGetsIt turns off what Envoy mends in a path. Then the application gets other
// paths, and writ decides about these.
func TestEnvoy_AsTheApplicationGetsIt(t *testing.T) {
	p := newGuarded(t, "normalize_path: true", "normalize_path: false", "merge_slashes: true", "merge_slashes: false",
		"path_with_escaped_slashes_action: REJECT_REQUEST", "path_with_escaped_slashes_action: KEEP_UNCHANGED")
	p.passed()
	for _, target := range []string{
		"/goods/../private/x", "/%70rivate/x", "/./private//x", "/goods/%2e%2e/private/x",
		"/private%2Fx", "/goods%2F..%2Fprivate/x", "//private/x",
	} {
		p.want(t, http.StatusForbidden, "GET", target)
	}
	p.want(t, http.StatusOK, "GET", "/goods/x")
	// The history has the paths that Envoy was asked for.
	var page struct {
		Data []struct {
			Resource string `json:"resource"`
		} `json:"data"`
	}
	p.operator.do(t, http.MethodGet, "/v1/authorizations?limit=50&decision=allow", nil, http.StatusOK, &page)
	if len(page.Data) == 0 || page.Data[0].Resource != "http://shop.example/goods/x" {
		t.Errorf("the last allow is of %+v, want /goods/x", page.Data)
	}
}

// TestEnvoy_MCP decides about what is asked of an MCP server, which stands in the body.
func TestEnvoy_MCP(t *testing.T) {
	p := newGuarded(t, "failure_mode_allow: false", `failure_mode_allow: false
                      with_request_body: {max_request_bytes: 300, allow_partial_message: true, pack_as_bytes: true}`,
		"route: {cluster: app}", `route: {cluster: app}
                          typed_per_filter_config:
                            envoy.filters.http.ext_authz:
                              "@type": type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute
                              check_settings: {context_extensions: {mcp_server: crm}}`)
	p.passed()
	call := func(tool string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"q":"ana"}}}`
	}
	for body, want := range map[string]int{
		call("find"): http.StatusOK, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`: http.StatusOK,
		call("drop"): http.StatusForbidden, "": http.StatusForbidden, "[" + call("find") + "]": http.StatusForbidden,
		// Envoy cuts it.
		strings.Repeat(" ", 300) + call("find"): http.StatusForbidden, call("find") + strings.Repeat(" ", 300): http.StatusForbidden,
	} {
		got := p.post(t, "POST", "/mcp", body, "Content-Type: application/json", "x-writ-decision: forged",
			"x-envoy-auth-partial-body: false")
		if seen := p.passed(); got.status != want || len(seen) != 0 != (want == http.StatusOK) {
			t.Errorf("%.60s = %d %s, the application got %q; want %d", body, got.status, got.body, seen, want)
		}
	}
}
