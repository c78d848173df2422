//go:build linux

package system

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/internal/freeze"
)

// silence freezes the leading replica until another replica treats it as dead. A kill switch waits
// for that moment. Then the other replica leads, and MongoDB prevents it from sweeping.
func (f *fleet) silence(t *testing.T) {
	t.Helper()
	operator := newClient(t, f.shares.url, f.shares.token)
	agent := operator.newAgent(t, "mute")
	freeze.Process(t, f.mute.cmd.Process)
	defer f.mute.thaw(t)
	allow, err := f.set.RefuseCommand(t.Context(), "aggregate", "writ.records")
	must(t, err)
	operator.setStatus(t, agent, "disabled")
	waitFor(t, "a sweep that fails", func() bool { return value(t, f.shares.process, "writ_retention_failures_total") > 0 })
	must(t, allow())
}

// loseMongoDB stops the replica set. Then it sends a decision that needs the replica set.
func (f *fleet) loseMongoDB(t *testing.T) {
	t.Helper()
	must(t, f.set.Kill(0))
	a, err := newSender(t, f.shares.token, 1).evaluate(f.shares.url, newIntent("bot", "deploy", "d"))
	if err != nil || a.status != http.StatusServiceUnavailable {
		t.Fatalf("evaluate without MongoDB = %+v, %v, want 503", a, err)
	}
}

// refusePlaces makes MongoDB refuse changes of meters. Then it sends a decision that needs a
// place in a meter.
func (f *fleet) refusePlaces(t *testing.T) {
	t.Helper()
	allow, err := f.set.RefuseCommand(t.Context(), "findAndModify", "writ.quotas")
	must(t, err)
	a, err := newSender(t, signed(t, f.shares.data, "newcomer"), 1).evaluate(f.shares.url, newIntent("bot", "deploy", "d"))
	if err != nil || a.status != http.StatusServiceUnavailable {
		t.Fatalf("evaluate without a place in the meter = %+v, %v, want 503", a, err)
	}
	must(t, allow())
}

// causeOutcomes makes the first server give every kind of answer that a panel shows. It also makes
// the external core decide.
func (f *fleet) causeOutcomes(t *testing.T) {
	t.Helper()
	operator := newClient(t, f.first.url, f.first.token)
	for condition, says := range map[string]string{
		`{"resource":"a"}`: "deny", `{"resource":"b"}`: "approval_required", `{"resource":"c"}`: "allow",
		`{"cel":"intent.metadata.env == 'prod'"}`: "allow", // this condition fails if the key is missing
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
		guess := client{sender{operator.http, "writ_" + uuid.NewString()}, f.first.url}
		guess.do(t, "GET", "/v1/rules", "", http.StatusUnauthorized, nil)
	}
	others := newSender(t, f.first.token, 1)
	defer others.http.CloseIdleConnections() // the server odd allows few connections
	for _, r := range []*replica{f.core, f.shares, f.odd, f.odd, f.odd} {
		if r == nil {
			continue
		}
		others.decide(t, r.url, newIntent("bot", "deploy", "d"))
	}
}

// expire makes the second server hold an intent that nobody approves or rejects.
func (f *fleet) expire(t *testing.T) {
	t.Helper()
	s, held := newSender(t, f.second.token, 1), newIntent("other", "deploy", "d")
	ask := func() string {
		a := s.decide(t, f.second.url, held)
		return a.body
	}
	_, rest, _ := strings.Cut(ask(), `"decision_id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	held.body = []byte(strings.TrimSuffix(string(held.body), "}") + `,"approval_id":"` + id + `"}`)
	waitFor(t, "an approval that nobody decides to expire", func() bool { return strings.Contains(ask(), "approval.expired") })
}

// refuseEvents causes an event whose webhook has a host name that does not exist.
func (f *fleet) refuseEvents(t *testing.T) {
	t.Helper()
	operator := newClient(t, f.first.url, f.first.token)
	var hook struct {
		ID string `json:"id"`
	}
	operator.do(t, "POST", "/v1/webhooks", `{"url":"https://hooks.invalid/","events":["agent.disabled"]}`, http.StatusCreated, &hook)
	operator.do(t, "POST", "/v1/webhooks/"+hook.ID+"/test", "", http.StatusAccepted, nil)
}

// freeze repeatedly pauses a busy server for a short time until the server's alert fires. An
// overcommitted host has the same effect. Only requests that arrive during a pause wait long.
func (f *fleet) freeze(t *testing.T, p *promServer) {
	t.Helper()
	release := background(t, 16, f.frozen.token, func(s sender) bool {
		_, err := s.evaluate(f.frozen.url, newIntent("bot", "deploy", "k8s/staging/web"))
		return err == nil
	})
	defer release()
	for n := 0; n < 10 || n < 50 && !p.firing(t)["WritQueue"]; n++ {
		time.Sleep(20 * time.Millisecond)
		freeze.Process(t, f.frozen.cmd.Process)
		time.Sleep(350 * time.Millisecond)
		f.frozen.thaw(t)
	}
}

// overload sends a slow rule to the server with the shortest queue. Then it sends more intents than
// the server can decide with that rule.
func (f *fleet) overload(t *testing.T) {
	t.Helper()
	operator := newClient(t, f.frozen.url, f.frozen.token)
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

func (r *replica) thaw(t *testing.T) {
	t.Helper()
	must(t, r.cmd.Process.Signal(syscall.SIGCONT))
}

// breakCore makes the external core fail until the breaker opens.
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

// panic makes the handler of a request panic.
func (f *fleet) panic(t *testing.T) {
	t.Helper()
	operator := newClient(t, f.core.url, f.core.token)
	operator.do(t, "POST", "/v1/billing/checkout", `{"plan":"pro"}`, http.StatusInternalServerError, nil)
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

// refuseTip makes the file of the tip unwritable on the server odd, and sends that server a
// decision. Then it opens more connections than the server accepts.
func (f *fleet) refuseTip(t *testing.T) {
	t.Helper()
	tip := string(f.odd.data) + "/store.tip"
	must(t, os.Remove(tip))
	must(t, os.MkdirAll(filepath.Join(tip, "in-the-way"), 0o700))
	newSender(t, f.odd.token, 1).decide(t, f.odd.url, newIntent("bot", "deploy", "d"))
	for range 8 {
		conn, err := net.Dial("tcp", hostOf(f.odd.url))
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() }) // the server may have closed the connection
	}
}
