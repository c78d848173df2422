package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ/api"
	"writ/examples"
	"writ/storage/datadir"
)

// process is a running `writ serve`.
type process struct {
	url, admin string

	cmd    *exec.Cmd
	stderr *log
	done   chan struct{} // closed when it has ended
}

// log collects what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var serving = regexp.MustCompile(`^writ serves on (\S+); metrics and readiness on (\S+)$`)

// launch starts the real binary on free ports and returns without waiting for
// it to serve. ready gets true when it does, false when it has ended before.
func launch(t *testing.T, data datadir.Dir, flags ...string) (p *process, ready <-chan bool) {
	t.Helper()
	return launchAt(t, 0, data, flags...)
}

// launchAt is launch of a process whose clock is so much ahead.
func launchAt(t *testing.T, ahead time.Duration, data datadir.Dir, flags ...string) (p *process, ready <-chan bool) {
	t.Helper()
	args := append([]string{"serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--data", string(data)}, flags...)
	p = &process{cmd: exec.Command("writ", args...), stderr: new(log), done: make(chan struct{})}
	if ahead != 0 {
		p.cmd.Env = append(os.Environ(), clockAhead+"="+ahead.String())
	}
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() { p.kill(t) })
	served := make(chan bool, 1)
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				p.url, p.admin = m[1], m[2]
				served <- true
			}
		}
		_ = p.cmd.Wait() // how it ended is in its ProcessState
		served <- false
	}()
	return p, served
}

// start starts the real binary and waits until it serves.
func start(t *testing.T, data datadir.Dir, flags ...string) *process {
	t.Helper()
	p, ready := launch(t, data, flags...)
	p.serves(t, ready)
	return p
}

// serves waits until the process serves.
func (p *process) serves(t *testing.T, ready <-chan bool) {
	t.Helper()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("writ serve ended: %v\n%s", p.cmd.ProcessState, p.stderr)
		}
	case <-time.After(patience):
		t.Fatalf("writ serve does not serve after %v\n%s", patience, p.stderr)
	}
}

// kill ends the process as kill -9 does, unless it has ended.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err == nil {
		<-p.done
	}
}

// terminate asks the process to stop.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// ended waits for the process to end by itself, which must be with exit code 0.
func (p *process) ended(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("writ serve has not stopped %v after SIGTERM\n%s", patience, p.stderr)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != exitOK {
		t.Fatalf("writ serve = %v, want exit code 0\n%s", p.cmd.ProcessState, p.stderr)
	}
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	p.terminate(t)
	p.ended(t)
}

// newData returns an empty data directory and an operator token for it.
func newData(t *testing.T) (data datadir.Dir, operator string) {
	t.Helper()
	data = datadir.Dir(filepath.Join(t.TempDir(), "data"))
	return data, tokenOf(t, data)
}

func tokenOf(t *testing.T, data datadir.Dir) string {
	t.Helper()
	return signed(t, data, examples.Organization)
}

// signed returns an operator token of org.
func signed(t *testing.T, data datadir.Dir, org string) string {
	t.Helper()
	secret, err := data.Secret("")
	must(t, err)
	token, err := api.SignOperatorToken(secret, org, "test", time.Now(), time.Hour)
	must(t, err)
	return token
}

// manyEvaluations returns the flag of a plan that no test exhausts.
func manyEvaluations(t *testing.T) string {
	t.Helper()
	return plansOf(t, 1_000_000_000, 1)
}

// plansOf returns the flag of plans free and pro with so many evaluations.
func plansOf(t *testing.T, free, pro int) string {
	t.Helper()
	plan := func(name string, evaluations int) object {
		return object{"name": name, "evaluations": evaluations, "policies": 10, "agents": 10, "retention_days": 7}
	}
	return plansFlag(t, object{"free": plan("free", free), "pro": plan("pro", pro)})
}

// plansFlag returns the flag of plans in a file.
func plansFlag(t *testing.T, plans object) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plans.json")
	must(t, os.WriteFile(file, []byte(encode(t, plans)), 0o600))
	return "--plans=" + file
}

const testPolicy = "0c0ffee0-0000-4000-8000-00000000beef"

// register stores a policy by which bot may deploy, others need approval, and
// all else is denied.
func register(t *testing.T, url, token string) {
	t.Helper()
	policy := object{
		"policy_id": testPolicy, "version": 1, "organization_id": examples.Organization, "agent_id": "bot",
		"allowed_action_types": []string{"deploy"}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
	}
	api := client{base: url, token: token}
	api.do(t, http.MethodPost, "/v1/policies/register", object{"policy": policy}, http.StatusCreated)
}

// intent is an evaluation as it is sent.
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

// answer is what came back, whatever the status.
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
	tr := &http.Transport{MaxIdleConns: conns, MaxIdleConnsPerHost: conns, MaxConnsPerHost: conns, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return sender{http: &http.Client{Transport: tr, Timeout: patience}, token: token}
}

// evaluate sends one intent. An error means that no whole answer came back.
func (s sender) evaluate(url string, in intent) (answer, error) {
	return s.send(http.MethodPost, url+"/v1/policy/evaluate", in.body)
}

// send sends one request, with headers of its own over the usual ones. An error means
// that no whole answer came back.
func (s sender) send(method, url string, body []byte, headers ...http.Header) (answer, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	// net/http repeats requests that it takes for idempotent; a test counts its own.
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

// waitFor asks until ok, within bounds.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// oneConnection is a sender that also calls the rest of the API.
type oneConnection struct {
	sender
	url string
}

// do sends a request and decodes the answer into v, unless that is nil.
func (c oneConnection) do(t *testing.T, method, path, body string, want int, v any) {
	t.Helper()
	got, err := c.send(method, c.url+path, []byte(body))
	if err == nil && got.status == want && v != nil {
		err = json.Unmarshal([]byte(got.body), v)
	}
	if err != nil || got.status != want {
		t.Fatalf("%s %s = %d %s, %v, want %d", method, path, got.status, got.body, err, want)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do is call, which must succeed.
func (c client) do(t testing.TB, method, path string, body any, want int) []byte {
	t.Helper()
	got, err := c.call(t.Context(), method, path, body, want)
	must(t, err)
	return got
}
