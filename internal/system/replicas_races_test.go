package system

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/examples"
)

// raceOfOneIntent sends each of several intents to three replicas at the same time. An intent must
// have one decision and one row under one head, and be metered once.
func raceOfOneIntent(t *testing.T, c *cluster) {
	const replicas = 3
	c.start(t, replicas)
	senders := make([]sender, replicas)
	for i := range senders {
		senders[i] = newSender(t, c.token, 1)
	}
	n := rounds(100, 1000)
	for range n {
		in := newIntent("bot", "deploy", "k8s/staging/web")
		answers, errs := make([]answer, replicas), make([]error, replicas)
		together(replicas, func(i int) { answers[i], errs[i] = c.settle(senders[i], i, in, c.urls) })
		first := 0
		for i, got := range answers {
			if errs[i] != nil || got.status != http.StatusOK || got.body != answers[0].body {
				t.Fatalf("replica %d: evaluate %s = %d %s, %v; replica 0 says %s", i, in.id, got.status, got.body, errs[i], answers[0].body)
			}
			if got.replayed == "" {
				first++
			}
		}
		if first != 1 {
			t.Errorf("%d answers to %s are no replays, want 1", first, in.id)
		}
	}
	c.proved(t, n, replicas)
	c.stop(t)
}

// raceOfPolicyVersions sends one policy version with three different contents to three replicas.
// All replicas must keep the same content. Each replica must apply that content as soon as it has
// the change.
func raceOfPolicyVersions(t *testing.T, c *cluster) {
	const replicas = 3
	c.start(t, replicas)
	s := newSender(t, c.token, replicas)
	n := rounds(20, 200)
	id := uuid.NewString()
	var decided atomic.Int64
	for version := 1; version <= n; version++ {
		status := make([]int, replicas)
		together(replicas, func(i int) {
			body, err := json.Marshal(object{"policy": object{
				"policy_id": id, "version": version, "organization_id": examples.Organization, "agent_id": "bot",
				"allowed_action_types": []string{fmt.Sprintf("deploy.%d", i)}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
			}})
			if err != nil {
				t.Error(err)
				return
			}
			status[i] = s.post(t, c.replicas[i].url+"/v1/policies/register", body)
		})
		winner := -1
		for i, got := range status {
			switch {
			case got == http.StatusCreated && winner < 0:
				winner = i
			case got != http.StatusBadRequest:
				t.Fatalf("version %d: register = %v, want one %d and %d for the others", version, status, http.StatusCreated, http.StatusBadRequest)
			}
		}
		if winner < 0 {
			t.Fatalf("version %d: register = %v, want one winner", version, status)
		}
		allows := func(i, content int) bool {
			in := newIntent("bot", fmt.Sprintf("deploy.%d", content), "k8s/staging/web")
			in.body = bytes.ReplaceAll(in.body, []byte(testPolicy), []byte(id))
			got, err := c.settle(s, i, in, c.urls)
			if err != nil || got.status != http.StatusOK {
				t.Errorf("version %d, replica %d: evaluate = %d %s, %v", version, i, got.status, got.body, err)
			}
			decided.Add(1)
			return strings.Contains(got.body, `"decision":"allow"`)
		}
		together(replicas, func(i int) {
			for late := time.Now().Add(patience); !allows(i, winner); { // the change reaches the other replicas
				if time.Now().After(late) {
					t.Errorf("version %d, replica %d: what the winner's policy allows is denied for %v", version, i, patience)
					return
				}
			}
			if loser := (winner + 1) % replicas; allows(i, loser) {
				t.Errorf("version %d, replica %d: what the policy of replica %d allows is allowed, though that of %d stands", version, i, loser, winner)
			}
		})
	}
	c.proved(t, int(decided.Load()), replicas)
	c.stop(t)
}

// post sends a body and returns the status.
func (s sender) post(t *testing.T, url string, body []byte) int {
	t.Helper()
	got, err := s.send(http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
	}
	return got.status
}

// raceToThePlansLimit sends three replicas more decisions than a plan allows. The number of
// decisions within the limit must equal the plan's limit. Unused places of an idle replica are
// returned after a while. The race therefore continues until nothing was allowed for some time.
func raceToThePlansLimit(t *testing.T, c *cluster) {
	const replicas, limit, quiet = 3, 777, 5 * time.Second
	c.plan(t, limit)
	c.start(t, replicas)
	var allowed, refused, last, early atomic.Int64
	began := time.Now()
	together(2*replicas, func(i int) {
		s := newSender(t, c.token, 1)
		for !t.Failed() && time.Since(began)-time.Duration(last.Load()) < quiet {
			got, err := c.settle(s, i, newIntent("bot", "deploy", "k8s/staging/web"), func() []string { return c.urls()[i%replicas : i%replicas+1] })
			switch {
			case err != nil || got.status != http.StatusOK:
				t.Errorf("evaluate = %d %s, %v", got.status, got.body, err)
			case strings.Contains(got.body, `"decision":"allow"`):
				last.Store(int64(time.Since(began)))
				early.Store(refused.Load())
				allowed.Add(1)
			case strings.Contains(got.body, "usage limit"):
				refused.Add(1)
			default:
				t.Errorf("evaluate = %s, want an allow or the limit", got.body)
			}
			if allowed.Load() == limit { // slower now: only to see that nothing more is allowed
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
	t.Logf("%d allowed, the last after %v; %d refused, %d of them before that, while other replicas held places",
		allowed.Load(), time.Duration(last.Load()).Round(time.Millisecond), refused.Load(), early.Load())
	if got := allowed.Load(); got != limit {
		t.Errorf("%d were allowed under a limit of %d", got, limit)
	}
	c.proved(t, int(allowed.Load()+refused.Load()), replicas)
	c.stop(t)
}
