package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ/bench/corpus"
	"writ/engine"
)

// victimConns are enough that an arrival finds a free one unless answers take
// a tenth of a second.
const victimConns = 16

// victimRules are how many rules the victim has.
const victimRules = 20

// victim is an organization that sends ordinary evaluations.
type victim struct {
	*server
	conns []*conn
}

func (s *server) newVictim(ctx context.Context) (*victim, error) {
	op, err := s.operator(ctx, "victim")
	if err != nil {
		return nil, err
	}
	defer op.close()
	p := corpus.ReferencePolicy()
	p.OrganizationID = "victim"
	if err := op.post("/v1/policies/register", map[string]any{"policy": p}, nil); err != nil {
		return nil, err
	}
	for _, r := range corpus.Rules(victimRules, 1) {
		if err := op.post("/v1/rules", rule(r.Name, r.Condition, r.Action), nil); err != nil {
			return nil, err
		}
	}
	v := &victim{server: s}
	v.conns, err = s.mint(ctx, op, victimConns, "policy:evaluate")
	return v, err
}

func rule(name, condition, action string) map[string]any {
	return map[string]any{"name": name, "condition": condition, "action": action}
}

// evaluateCall is the request that evaluates in under a new intent id.
func evaluateCall(in engine.Intent) (call, error) {
	in.IntentID = uuid.NewString()
	body, err := json.Marshal(map[string]any{"policy_id": in.PolicyID, "intent": &in})
	return call{http.MethodPost, "/v1/policy/evaluate", body}, err
}

// drive sends the victim's requests on schedule for d. What was not answered
// with a decision counts as failed.
func (v *victim) drive(ctx context.Context, d time.Duration) (*latencies, error) {
	var (
		n     = int(v.rate * d.Seconds())
		due   = make(chan time.Time, n) // an arrival waits here for a connection
		mu    sync.Mutex
		wg    sync.WaitGroup
		all   latencies
		first error
	)
	for _, c := range v.conns {
		// The server closes what has been idle.
		if err := c.redial(ctx); err != nil {
			return nil, err
		}
		wg.Go(func() {
			for at := range due {
				took, ok, err := v.one(ctx, c, at)
				mu.Lock()
				all.note(took, ok)
				if first == nil {
					first = err
				}
				mu.Unlock()
			}
		})
	}
	start := time.Now()
	for i := range n {
		at := start.Add(time.Duration(float64(i) / v.rate * float64(time.Second)))
		time.Sleep(time.Until(at))
		due <- at
	}
	close(due)
	wg.Wait()
	return &all, first
}

func (v *victim) one(ctx context.Context, c *conn, due time.Time) (time.Duration, bool, error) {
	r, err := evaluateCall(*corpus.AllowedIntent())
	if err != nil {
		return 0, false, err
	}
	status, body, err := c.do(r)
	took := time.Since(due)
	if err != nil {
		return took, false, c.redial(ctx)
	}
	if status != http.StatusOK && status != http.StatusServiceUnavailable {
		return took, false, fmt.Errorf("the victim was answered %d: %s", status, body)
	}
	return took, status == http.StatusOK, nil
}
