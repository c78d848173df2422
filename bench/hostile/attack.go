package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"writ/bench/corpus"
	"writ/engine"
)

// attack is what one organization does to all others.
type attack struct {
	name string
	// policy changes the reference policy, intent the allowed intent, both if not
	// nil; rules are the conditions of its rules, as JSON documents.
	policy func(*engine.ActionPolicy)
	intent func(*engine.Intent)
	rules  []string
	// refused says that its rules may be refused when they are created, which ends
	// the attack.
	refused bool
	// history is set where there is something to search.
	history bool
	// next returns the n-th request of a connection; nil evaluates the intent
	// under a new id.
	next func(a *attack, conn, n int) (call, error)

	org   string
	in    engine.Intent
	conns []*conn
}

// everyScope is what an organization's own keys can hold.
func everyScope() []string {
	return []string{"policy:evaluate", "policy:read", "policy:write", "rules:read", "rules:write", "history:read"}
}

// prepare registers what a needs and connects.
func (s *server) prepare(ctx context.Context, a *attack) error {
	a.org = fmt.Sprintf("hostile-%s-%d", a.name, os.Getpid()) // of each round its own: changes are limited
	op, err := s.operator(ctx, a.org)
	if err != nil {
		return err
	}
	defer op.close()
	p := corpus.ReferencePolicy()
	p.OrganizationID = a.org
	if a.policy != nil {
		a.policy(p)
	}
	if err := op.post("/v1/policies/register", map[string]any{"policy": p}, nil); err != nil {
		return err
	}
	for i, condition := range a.rules {
		if err := op.post("/v1/rules", rule(fmt.Sprintf("rule %d", i), condition, `{"decision":"deny","reason":"hostile"}`), nil); err != nil {
			return err
		}
	}
	a.in = *corpus.AllowedIntent()
	if a.intent != nil {
		a.intent(&a.in)
	}
	if a.conns, err = s.mint(ctx, op, s.conns, everyScope()...); err != nil || !a.history {
		return err
	}
	return s.fill(a)
}

// fill makes the history of a's organization.
func (s *server) fill(a *attack) error {
	errs := make([]error, len(a.conns))
	var wg sync.WaitGroup
	for i, c := range a.conns {
		wg.Go(func() {
			for n := 0; n < s.history/len(a.conns); {
				r, err := evaluateCall(a.in)
				if err != nil {
					errs[i] = err
					return
				}
				status, _, err := c.do(r)
				if err != nil {
					errs[i] = err
					return
				}
				if status == http.StatusOK {
					n++
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// launch attacks over all of a's connections until ctx ends.
func (s *server) launch(ctx context.Context, a *attack) <-chan report {
	done := make(chan report, 1)
	go func() {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			total report
		)
		for i, c := range a.conns {
			wg.Go(func() {
				r := a.loop(ctx, i, c)
				mu.Lock()
				defer mu.Unlock()
				total.add(r)
			})
		}
		wg.Wait()
		done <- total
	}()
	return done
}

// loop sends one request after the other over c.
func (a *attack) loop(ctx context.Context, number int, c *conn) report {
	r := report{Statuses: make(map[int]int)}
	if r.err = c.redial(context.WithoutCancel(ctx)); r.err != nil {
		return r
	}
	// A connection that waits when the time is up is given up with its request.
	defer context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(time.Now().Add(time.Second)) })()
	for n := 0; ctx.Err() == nil; n++ {
		next, err := a.call(number, n)
		if err != nil {
			r.err = err
			return r
		}
		sent := time.Now()
		status, _, err := c.do(next)
		if err != nil {
			r.Dropped++
			if r.err = c.redial(context.WithoutCancel(ctx)); r.err != nil {
				return r
			}
			continue
		}
		r.Statuses[status]++
		if status == http.StatusServiceUnavailable {
			r.Refused.note(time.Since(sent), false)
		}
	}
	return r
}

func (a *attack) call(conn, n int) (call, error) {
	if a.next != nil {
		return a.next(a, conn, n)
	}
	return evaluateCall(a.in)
}
