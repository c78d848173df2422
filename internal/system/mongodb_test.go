package system

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ/engine"
	"writ/storage/datadir"
	"writ/storage/mongodb/mongotest"
)

// TestMongoDB_TwoReplicas has two processes share a store: what one is told the other
// knows when the answer arrives, and an intent has one decision.
func TestMongoDB_TwoReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	data, token := newData(t)
	flags := []string{"--store=mongodb", "--mongodb-uri", set.URI(), manyEvaluations(t)}
	a := start(t, data, append(flags, "--replica=a")...)
	b := start(t, data, append(flags, "--replica=b")...)
	register(t, a.url, token)
	one, other := newSender(t, token, 1), newSender(t, token, 1)
	operator := client{one, a.url}
	var agent engine.Agent
	operator.do(t, http.MethodPost, "/v1/agents", `{"name": "Bot", "externalId": "bot"}`, http.StatusCreated, &agent)
	for i := range 20 {
		status, want := "disabled", "agent.disabled:"
		if i%2 == 1 {
			status, want = "active", "policy.allowed:"
		}
		operator.do(t, http.MethodPatch, "/v1/agents/"+agent.ID+"/status", fmt.Sprintf(`{"status": %q}`, status), http.StatusOK, nil)
		in := newIntent("bot", "deploy", "k8s/staging/web")
		got, err := other.evaluate(b.url, in)
		if err != nil || got.status != http.StatusOK || !strings.Contains(got.body, `"reasons":["`+want) {
			t.Fatalf("round %d, agent %s: the other replica's evaluate = %d %s, %v, want reason %s", i, status, got.status, got.body, err, want)
		}
		again, err := one.evaluate(a.url, in)
		if err != nil || again.body != got.body {
			t.Fatalf("round %d: the same intent = %s and %s, %v", i, got.body, again.body, err)
		}
	}
	for _, r := range history(t, a.url, token) {
		if r.Writer != "b" || r.PolicyRevision == 0 || r.AgentRevision == 0 {
			t.Errorf("a row says writer %q, revisions %d and %d, want b and those it was decided under", r.Writer, r.PolicyRevision, r.AgentRevision)
		}
	}
	if ra, rb := history(t, a.url, token), history(t, b.url, token); len(ra) != 20 || len(rb) != 20 {
		t.Errorf("the replicas list %d and %d rows, want 20", len(ra), len(rb))
	}
	b.kill(t)
	if got, err := one.evaluate(a.url, newIntent("bot", "deploy", "k8s/staging/web")); err != nil || got.status != http.StatusOK {
		t.Errorf("evaluate beside a dead replica = %d %s, %v", got.status, got.body, err)
	}
	began := time.Now()
	operator.do(t, http.MethodPatch, "/v1/agents/"+agent.ID+"/status", `{"status": "disabled"}`, http.StatusOK, nil)
	t.Logf("a kill switch beside a dead replica took %v", time.Since(began).Round(time.Millisecond))
	a.stop(t)
	a = start(t, data, flags...)
	if rows := history(t, a.url, token); len(rows) != 21 {
		t.Errorf("after a restart there are %d rows, want 21", len(rows))
	}
	a.stop(t)
}

func TestMongoDB_FlagsOfOneStore(t *testing.T) {
	for _, flags := range [][]string{
		{"--store=mongodb"}, {"--mongodb-uri=mongodb://h/"}, {"--store=mongodb", "--mongodb-uri=mongodb://h/", "--audit-ack=queued"},
		{"--store=mongodb", "--mongodb-uri=mongodb://h/", "--accept-rollback=1"}, {"--store=other"},
	} {
		p, ready := launch(t, datadir.Dir(t.TempDir()), flags...)
		if <-ready {
			t.Errorf("writ serve %v serves, want a refusal", flags)
		}
		if text := p.stderr.String(); !strings.Contains(text, "--store") && !strings.Contains(text, "--mongodb-uri") {
			t.Errorf("writ serve %v says %q, want what to give", flags, text)
		}
	}
}

// TestMongoDB_AFrozenReplicaExits: a process that the others gave up while it was
// stopped decides nothing any more, says why, and ends, so that it is started again.
func TestMongoDB_AFrozenReplicaExits(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits until a replica is given up")
	}
	set := mongotest.For(t, 1)
	data, token := newData(t)
	flags := []string{"--store=mongodb", "--mongodb-uri", set.URI()}
	a, b := start(t, data, flags...), start(t, data, flags...)
	register(t, a.url, token)
	operator := newClient(t, a.url, token)
	time.Sleep(4 * time.Second) // until either may give the other up
	signal := func(s syscall.Signal) {
		t.Helper()
		must(t, b.cmd.Process.Signal(s))
	}
	signal(syscall.SIGSTOP)
	var agent engine.Agent
	operator.do(t, http.MethodPost, "/v1/agents", `{"name": "Bot", "externalId": "bot"}`, http.StatusCreated, &agent)
	operator.do(t, http.MethodPatch, "/v1/agents/"+agent.ID+"/status", `{"status": "disabled"}`, http.StatusOK, nil)
	signal(syscall.SIGCONT)
	select {
	case <-b.done:
	case <-time.After(patience):
		t.Fatalf("the replica still runs after %v", patience)
	}
	if code := b.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if text := b.stderr.String(); !strings.Contains(text, "was given up: start it again") {
		t.Errorf("it says %q, want why it ends", text)
	}
	a.stop(t)
}

// TestMongoDB_NoPrimary: serve ends with what to do and without a credential.
func TestMongoDB_NoPrimary(t *testing.T) {
	uri := "mongodb://walter:hunter2@127.0.0.1:1/?replicaSet=rs&serverSelectionTimeoutMS=300"
	p, ready := launch(t, datadir.Dir(t.TempDir()), "--store=mongodb", "--mongodb-uri", uri)
	if <-ready {
		t.Fatal("writ serve without a primary serves")
	}
	text := p.stderr.String()
	for _, want := range []string{"opening the store: MongoDB: the replica set had no primary", "start a majority of its members, or correct the URI", "connection refused"} {
		if !strings.Contains(text, want) {
			t.Errorf("writ serve without a primary says %q, want %q", text, want)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("writ serve says %q, want no password", text)
	}
}
