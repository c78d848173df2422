//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ/engine"
	"writ/examples"
	"writ/storage/embedded"
	"writ/storage/registry"
)

// fleet are servers on which outcomes and faults are caused.
type fleet struct {
	first, second *replica // behind the balancer
	core          *replica // asks an external core
	frozen        *replica // is stopped for moments, then overloaded
	full          *replica // its disk fills; nil where none can be mounted
	odd           *replica // its tip cannot be noted, few connections are allowed, it dies
	coreFails     *atomic.Bool
}

// replica is a server with the policy of register and an operator token.
type replica struct {
	*process
	data  dataDir
	token string
}

const unreadablePolicy = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10"

// startFleet starts the servers. One operator token is good on all.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{coreFails: new(atomic.Bool)}
	data, token := newData(t)
	run := func(data dataDir, flags ...string) *replica {
		r := &replica{start(t, data, flags...), data, token}
		register(t, r.url, token)
		return r
	}
	shared := func(dir string) dataDir {
		other := dataDir(filepath.Join(dir, "data"))
		secret, err := os.ReadFile(data.secret())
		if err != nil {
			t.Fatal(err)
		}
		if err := other.create(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(other.secret(), secret, 0o600); err != nil {
			t.Fatal(err)
		}
		return other
	}
	storeUnreadablePolicy(t, data)
	core := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if f.coreFails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"result":{"decision":"deny","reasons":["core.finding: no"]}}`) // who asked may be gone
	}))
	t.Cleanup(core.Close)
	many := manyEvaluations(t)
	f.first = run(data) // the free plan, which the load uses up
	f.second = run(shared(t.TempDir()), many)
	f.core = run(shared(t.TempDir()), many, "--evaluation-core-url", core.URL+"/v1/data/writ/core/result")
	f.frozen = run(shared(t.TempDir()), many, "--queue-deadline", "10ms")
	f.odd = run(shared(t.TempDir()), many, "--connections-per-address", "4")
	if mount, err := tryMountSmall(t, 384<<20); err != nil {
		t.Logf("SKIPPED the alerts of a full disk: mounting a small file system needs root: %v", err)
	} else {
		f.full = run(shared(mount), many)
	}
	return f
}

// storeUnreadablePolicy stores a policy that could not be registered.
func storeUnreadablePolicy(t *testing.T, data dataDir) {
	t.Helper()
	store, err := embedded.Open(data.store(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &engine.ActionPolicy{
		PolicyID: unreadablePolicy, Version: 1, OrganizationID: examples.Organization, AgentID: "*", AllowedActionTypes: []string{"*"},
		BlockedResourcePatterns: []string{"a["}, Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
	}
	if _, err := registry.New(store).PutPolicy(t.Context(), p, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) all() []*replica {
	all := []*replica{f.first, f.second, f.core, f.frozen, f.odd}
	if f.full != nil {
		all = append(all, f.full)
	}
	return all
}

// causeOutcomes has the first server answer in each way that a panel shows, and
// the core decide.
func (f *fleet) causeOutcomes(t *testing.T) {
	t.Helper()
	operator := oneConnection{newSender(t, f.first.token, 1), f.first.url}
	for condition, says := range map[string]string{
		`{"resource":"a"}`: "deny", `{"resource":"b"}`: "approval_required", `{"resource":"c"}`: "allow",
		`{"cel":"intent.metadata.env == 'prod'"}`: "allow", // an error without the key
	} {
		rule := fmt.Sprintf(`{"name":"r","condition":%q,"action":"{\"decision\":\"%s\"}"}`, condition, says)
		operator.do(t, "POST", "/v1/rules", rule, http.StatusCreated, nil)
	}
	send := func(in intent, status int, want string) answer {
		t.Helper()
		a, err := operator.evaluate(f.first.url, in)
		if err != nil || a.status != status || !strings.Contains(a.body, want) {
			t.Fatalf("evaluate = %+v, %v, want %d %s", a, err, status, want)
		}
		return a
	}
	for _, resource := range []string{"a", "b", "c", "d"} {
		send(newIntent("bot", "deploy", resource), http.StatusOK, "decision")
	}
	send(newIntent("other", "deploy", "d"), http.StatusOK, "decision")
	in := newIntent("bot", "drop", "d")
	send(in, http.StatusOK, "deny")
	send(in, http.StatusOK, "deny") // a replay
	changed := in
	changed.body = []byte(strings.Replace(string(in.body), `"drop"`, `"deploy"`, 1))
	send(changed, http.StatusConflict, "")
	unreadable := newIntent("bot", "deploy", "d")
	unreadable.body = []byte(strings.ReplaceAll(string(unreadable.body), testPolicy, unreadablePolicy))
	send(unreadable, http.StatusOK, "policy.unreadable")

	var row struct {
		Data []struct {
			DecisionID string `json:"decision_id"`
		} `json:"data"`
	}
	operator.do(t, "GET", "/v1/authorizations?decision=deny&limit=1", "", http.StatusOK, &row)
	operator.do(t, "POST", "/v1/actions/record", `{"decision_id":"`+row.Data[0].DecisionID+`","outcome":"executed"}`, http.StatusOK, nil)
	operator.do(t, "GET", "/nope", "", http.StatusNotFound, nil)
	for range 200 {
		guess := oneConnection{sender{operator.http, "writ_" + uuid.NewString()}, f.first.url}
		guess.do(t, "GET", "/v1/rules", "", http.StatusUnauthorized, nil)
	}
	if a, err := operator.evaluate(f.core.url, newIntent("bot", "deploy", "d")); err != nil || a.status != http.StatusOK {
		t.Fatalf("evaluate with an external core = %+v, %v", a, err)
	}
}

// freeze stops a busy server for moments, as a host does that gives its
// processors and its disk to others.
func (f *fleet) freeze(t *testing.T) {
	t.Helper()
	release := background(t, 16, f.frozen.token, func(s sender) bool {
		_, err := s.evaluate(f.frozen.url, newIntent("bot", "deploy", "k8s/staging/web"))
		return err == nil
	})
	defer release()
	for range 10 {
		time.Sleep(20 * time.Millisecond)
		f.frozen.signal(t, syscall.SIGSTOP)
		time.Sleep(350 * time.Millisecond)
		f.frozen.signal(t, syscall.SIGCONT)
	}
}

// overload gives the server that refuses soonest a rule that takes milliseconds,
// and more intents than it can decide by it.
func (f *fleet) overload(t *testing.T) {
	t.Helper()
	operator := oneConnection{newSender(t, f.frozen.token, 1), f.frozen.url}
	operator.do(t, "POST", "/v1/rules", `{"name":"dear","action":"{\"decision\":\"deny\"}","condition":`+
		`"{\"rego\":\"some a in input.intent.metadata; some b in input.intent.metadata; some c in input.intent.metadata; a == b; b == c; a == \\\"none\\\"\"}"}`,
		http.StatusCreated, nil)
	var metadata strings.Builder
	for i := range 20 {
		fmt.Fprintf(&metadata, `"k%d":"v%d",`, i, i)
	}
	var refused atomic.Bool
	release := background(t, 16, f.frozen.token, func(s sender) bool {
		in := newIntent("bot", "deploy", "k8s/staging/web")
		in.body = []byte(strings.Replace(string(in.body), `"resource":`, `"metadata":{`+strings.TrimSuffix(metadata.String(), ",")+`},"resource":`, 1))
		a, err := s.evaluate(f.frozen.url, in)
		if err == nil && a.status == http.StatusServiceUnavailable {
			refused.Store(true)
		}
		return err == nil
	})
	defer release()
	waitFor(t, "a refusal for overload", refused.Load)
}

func (r *replica) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// breakCore has the external core fail until its breaker opens.
func (f *fleet) breakCore(t *testing.T) {
	t.Helper()
	f.coreFails.Store(true)
	s := newSender(t, f.core.token, 1)
	for range 8 {
		if a, err := s.evaluate(f.core.url, newIntent("bot", "deploy", "d")); err != nil || a.status < 500 {
			t.Fatalf("evaluate with a core that fails = %+v, %v", a, err)
		}
	}
}

// fillDisk fills the disk of the server that has its own.
func (f *fleet) fillDisk(t *testing.T) {
	t.Helper()
	fill(t, filepath.Join(filepath.Dir(string(f.full.data)), "ballast"))
	s := newSender(t, f.full.token, 1)
	waitFor(t, "a refusal", func() bool {
		a, err := s.evaluate(f.full.url, newIntent("bot", "deploy", "d"))
		return err == nil && a.status >= 500
	})
}

// refuseTip puts something in the way of the odd server's tip, has it decide, and
// opens more connections than it takes.
func (f *fleet) refuseTip(t *testing.T) {
	t.Helper()
	tip := string(f.odd.data) + "/store.tip"
	if err := os.Remove(tip); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tip, "in-the-way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if a, err := newSender(t, f.odd.token, 1).evaluate(f.odd.url, newIntent("bot", "deploy", "d")); err != nil || a.status != http.StatusOK {
		t.Fatalf("evaluate = %+v, %v", a, err)
	}
	for range 8 {
		conn, err := net.Dial("tcp", hostOf(f.odd.url))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
	}
}
