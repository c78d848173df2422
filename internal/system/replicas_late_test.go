package system

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"writ.example/writ/examples"
	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
)

// TestReplicas_LateStream has a replica whose change stream is late by 5 s. A key that another replica revokes,
// and a policy that it suspends, must not hold there for longer than storage.MaxAge.
func TestReplicas_LateStream(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a member and two replicas")
	}
	t.Parallel()
	set, stream := mongotest.LateFor(t)
	c := newCluster(t, set)
	c.database = "writLate"
	c.start(t, 1)
	flags := c.serveFlags()
	for i := range flags {
		if flags[i] == "--mongodb-uri" {
			flags[i+1] += "&appName=" + stream.App
		}
	}
	late := start(t, c.data, flags...)
	first := newClient(t, c.replicas[0].url, c.token)
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	first.do(t, http.MethodPost, "/v1/tokens", object{"name": "gateway"}, http.StatusCreated, &made)
	keyed, operator := newSender(t, made.Token, 1), newSender(t, c.token, 1)
	evaluate := func(s sender) answer {
		got, err := s.evaluate(late.url, newIntent("bot", "deploy", "k8s/staging/web"))
		must(t, err)
		return got
	}
	stream.By(5 * time.Second)
	time.Sleep(6 * time.Second) // the events come again, late
	over := make(chan struct{})
	release := sync.OnceFunc(func() { close(over) })
	t.Cleanup(release)
	stream.At(func(c mongotest.Command, answered bool) { // each replica tries to sign changes, and would hear of all
		if c.Collection == "counters" && c.Name == "findAndModify" {
			<-over
		}
	})
	const allowed = `"reasons":["policy.allowed:`
	for _, s := range []sender{keyed, operator} { // if the caches are trusted, they have the key and the policy now
		if got := evaluate(s); got.status != http.StatusOK || !strings.Contains(got.body, allowed) {
			t.Fatalf("evaluate before = %d %s", got.status, got.body)
		}
	}
	first.do(t, http.MethodDelete, "/v1/tokens/"+made.ID, nil, http.StatusNoContent, nil)
	first.do(t, http.MethodPost, "/v1/policies/register", object{"policy": object{
		"policy_id": testPolicy, "version": 2, "organization_id": examples.Organization, "agent_id": "bot",
		"allowed_action_types": []string{"deploy"}, "status": "suspended", "updated_at": "2026-11-02T09:00:00Z",
	}}, http.StatusCreated, nil)
	answered := time.Now()
	time.Sleep(storage.MaxAge)
	for time.Since(answered) < 6*time.Second { // the events come meanwhile
		if got := evaluate(keyed); got.status != http.StatusUnauthorized {
			t.Fatalf("evaluate with a key that was revoked %v ago = %d %s", time.Since(answered), got.status, got.body)
		}
		if got := evaluate(operator); got.status != http.StatusOK || strings.Contains(got.body, allowed) {
			t.Fatalf("evaluate by a policy that was suspended %v ago = %d %s", time.Since(answered), got.status, got.body)
		}
		time.Sleep(100 * time.Millisecond)
	}
	release()
	late.stop(t)
	c.stop(t)
}
