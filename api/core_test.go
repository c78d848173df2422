package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// elsewhere is an external core whose decisions a test sets.
type elsewhere struct {
	decide func(context.Context, engine.Set, *engine.Input) (engine.Result, error)
	asked  int
}

func (e *elsewhere) Evaluate(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
	e.asked++
	return e.decide(ctx, set, in)
}

func startElsewhere(t *testing.T, mods ...func(*setup)) (*harness, *elsewhere) {
	t.Helper()
	core := &elsewhere{decide: allows}
	h := start(t, append(mods, func(c *setup) { c.Service.Core = core })...)
	h.register(acme)
	return h, core
}

func allows(context.Context, engine.Set, *engine.Input) (engine.Result, error) {
	return engine.Result{Decision: engine.Allow, Findings: []engine.Finding{
		{Code: engine.CodePolicyAllowed, Outcome: engine.Allow, Reason: "policy.allowed: the core says so"},
	}}, nil
}

func TestDecision_ExternalEvaluationCore_DecidesInPlaceOfTheEngine(t *testing.T) {
	h, core := startElsewhere(t)
	h.rule(acme, `{"action_type":"deploy"}`, `{"decision":"deny"}`)
	core.decide = func(_ context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
		if set.Policy.Document().PolicyID != policyID || len(set.Rules.Rules()) != 1 || in.Intent.ActionType != "deploy" {
			t.Errorf("the core was asked about %v, %v", set, in)
		}
		return allows(t.Context(), set, in)
	}
	r := h.evaluate(acme, intent())
	wantDecision(t, r, "allow")
	if !bytes.Contains(r.body, []byte("the core says so")) {
		t.Errorf("evaluate = %s, want the core's reason", r.body)
	}
	h.evaluate(acme, intent(obj{"resource": "a\x00b"})).wantField("intent.resource")
	if core.asked != 1 {
		t.Errorf("the core was asked %d times, want 1: an invalid intent is nobody's decision", core.asked)
	}
}

func TestDecision_ExternalEvaluationCore_SecretsInReasonsAreReplaced(t *testing.T) {
	h, core := startElsewhere(t)
	core.decide = func(_ context.Context, _ engine.Set, in *engine.Input) (engine.Result, error) {
		return engine.Result{Decision: engine.Deny, Findings: []engine.Finding{
			{Code: engine.CodeCoreFinding, Outcome: engine.Deny, Reason: "opa.no: not with " + in.Intent.Metadata["note"]},
		}}, nil
	}
	r := h.evaluate(acme, intent(obj{"metadata": obj{"note": madeUp}}))
	wantDecision(t, r, "deny")
	history := h.do("GET", "/v1/authorizations", h.operator(acme), nil).wantStatus(http.StatusOK)
	for _, body := range [][]byte{r.body, history.body} {
		if !bytes.Contains(body, []byte("opa.no: not with [redacted:github-pat]")) || bytes.Contains(body, []byte(madeUp)) {
			t.Errorf("body = %s, want the reason without the secret", body)
		}
	}
}

// later is an error that has a retry time.
type later struct{ error }

func (later) RetryAfter() time.Duration { return 1500 * time.Millisecond }

// silent is the error of a core that does not answer.
type silent struct{ error }

func (silent) Unanswered() bool { return true }

// spared is the error of an open circuit breaker.
type spared struct{ later }

func (spared) Unanswered() bool { return true }

// TestDecision_ExternalEvaluationCore_NothingIsApprovedByItsErrors checks "When it is reached and
// answers nonsense the answer is 500 and nothing is approved. A core that does not answer in time,
// or that the open breaker spares, is 503, nothing decided."
func TestDecision_ExternalEvaluationCore_NothingIsApprovedByItsErrors(t *testing.T) {
	h, core := startElsewhere(t)
	for name, err := range map[string]error{
		"plain":     errors.New("connection refused by http://secret"),
		"later":     later{errors.New("breaker is open")},
		"not found": storage.ErrNotFound,
		"invalid":   &engine.InvalidError{Fields: []engine.FieldError{{Field: "x", Message: "y"}}},
		"deadline":  context.DeadlineExceeded,
		"silent":    silent{errors.New("no answer in time")},
		"spared":    spared{later{errors.New("breaker is open")}},
	} {
		t.Run(name, func(t *testing.T) {
			// The server must ignore a result that comes with an error.
			core.decide = func(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
				res, _ := allows(ctx, set, in)
				return res, err
			}
			for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
				r := h.do("POST", path, h.operator(acme), intent())
				want := ""
				switch name {
				case "silent":
					want = "1"
				case "later", "spared":
					want = "2"
				}
				if name == "silent" || name == "spared" {
					r.wantProblem(http.StatusServiceUnavailable, codeCoreUnavailable)
				} else {
					r.wantProblem(http.StatusInternalServerError, codeCoreFailed)
				}
				if got := r.header.Get("Retry-After"); got != want || bytes.Contains(r.body, []byte("secret")) {
					t.Errorf("%s = %s with Retry-After %q, want %q and no cause", path, r.body, got, want)
				}
			}
		})
	}
	h.wantRows(acme, 0)
	if n, err := h.store.Metered(t.Context(), acme, storage.MonthOf(h.clock.Now())); err != nil || n != 0 {
		t.Errorf("meter = %d, %v, want 0", n, err)
	}
	if strings.Contains(h.log.String(), "request failed") {
		t.Errorf("log = %s, want none: the core logs at a bounded rate", h.log)
	}
}

func TestDecision_ExternalEvaluationCore_NoDecisionIsNoneToo(t *testing.T) {
	h, core := startElsewhere(t)
	for name, res := range map[string]engine.Result{
		"zero": {}, "no findings": {Decision: engine.Allow}, "out of range": {Decision: 9, Findings: []engine.Finding{{Reason: "x: y"}}},
	} {
		core.decide = func(context.Context, engine.Set, *engine.Input) (engine.Result, error) { return res, nil }
		t.Run(name, func(t *testing.T) {
			h.evaluate(acme, intent()).wantProblem(http.StatusInternalServerError, codeInternal)
		})
	}
}

func TestDecision_ExternalEvaluationCore_KillSwitchMeterAndRegistrationStayHere(t *testing.T) {
	plans := engine.DefaultPlans()
	plans["free"] = engine.Plan{Name: "free", Evaluations: 3, Agents: 5, Policies: 10}
	h, core := startElsewhere(t, func(c *setup) { c.Service.Plans, c.Service.RequireRegistered = plans, true })
	wantReason := func(r *reply, code engine.Code) {
		t.Helper()
		wantDecision(t, r, "deny")
		if !bytes.Contains(r.body, []byte(string(code)+":")) || bytes.Contains(r.body, []byte("the core says so")) {
			t.Errorf("evaluate = %s, want the reason %s alone", r.body, code)
		}
	}
	wantReason(h.evaluate(acme, intent()), engine.CodeAgentUnregistered)
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "CI", "externalId": "ci"}).wantStatus(http.StatusCreated)
	wantDecision(t, h.evaluate(acme, intent()), "allow")

	// The agent is disabled while the core decides.
	core.decide = func(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
		h.do("PATCH", "/v1/agents/ci/status", h.operator(acme), obj{"status": "disabled"}).wantStatus(http.StatusOK)
		return allows(ctx, set, in)
	}
	wantReason(h.evaluate(acme, intent()), engine.CodeAgentDisabled)
	core.decide = allows
	h.do("PATCH", "/v1/agents/ci/status", h.operator(acme), obj{"status": "active"}).wantStatus(http.StatusOK)
	wantReason(h.evaluate(acme, intent()), engine.CodeUsageLimit)
	h.do("POST", "/v1/governance/authorize", h.operator(acme), intent()).wantProblem(http.StatusForbidden, codeUsageLimit)
}

// TestDecision_Organization_StopAsksNoCore checks that a core that does not answer delays no stop, and that
// a stop during its answer counts.
func TestDecision_Organization_StopAsksNoCore(t *testing.T) {
	h, core := startElsewhere(t)
	core.decide = func(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
		h.stopEverything(acme)
		return allows(ctx, set, in)
	}
	for range 2 { // the second is decided without the core
		r := h.evaluate(acme, intent())
		wantDecision(t, r, "deny")
		if !bytes.Contains(r.body, []byte(`"reasons":["organization.stopped:`)) {
			t.Errorf("evaluate = %s, want organization.stopped", r.body)
		}
		core.decide = func(context.Context, engine.Set, *engine.Input) (engine.Result, error) {
			t.Error("a core is asked of a stopped organization")
			return engine.Result{}, errors.New("down")
		}
	}
	h.wantRows(acme, 2)
	h.resumeEverything(acme)
	core.decide = allows
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}

func TestDecision_ExternalEvaluationCore_WhatChangedMeanwhileIsRefused(t *testing.T) {
	h, core := startElsewhere(t)
	changes := []func(){
		func() { h.register(acme, obj{"version": 2, "status": "suspended"}) },
		func() { h.rule(acme, `{}`, `{"decision":"deny"}`) },
	}
	for _, change := range changes {
		core.decide = func(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
			change()
			return allows(ctx, set, in)
		}
		body := intent()
		r := h.evaluate(acme, body)
		r.wantProblem(http.StatusInternalServerError, codeCoreFailed)
		r.wantHeader("Retry-After", "1")
		h.store.fail("Policy", errors.New("gone")) // the compiled rules stay cached
		core.decide = allows
		h.evaluate(acme, body).wantStatus(http.StatusOK)
		h.store.fail("Policy", nil)
	}
	core.decide = func(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
		h.store.fail("Policy", errors.New("disk on fire"))
		h.server.decisions.Sets.InvalidatePolicy(acme, policyID)
		return allows(ctx, set, in)
	}
	h.evaluate(acme, intent()).wantProblem(http.StatusInternalServerError, codeInternal)
}

func TestDecision_ExternalEvaluationCore_ReplaysDoNotDependOnIt(t *testing.T) {
	h, core := startElsewhere(t)
	body := intent()
	first := h.evaluate(acme, body).wantStatus(http.StatusOK)
	core.decide = func(context.Context, engine.Set, *engine.Input) (engine.Result, error) {
		return engine.Result{}, errors.New("gone")
	}
	again := h.evaluate(acme, body).wantStatus(http.StatusOK)
	if !bytes.Equal(first.body, again.body) || again.header.Get(headerReplayed) != "true" {
		t.Errorf("the replay = %s, %s %q, want the first answer %s", again.body, headerReplayed, again.header.Get(headerReplayed), first.body)
	}
	conflict := intent(obj{"intent_id": body["intent"].(obj)["intent_id"], "resource": "other"})
	h.evaluate(acme, conflict).wantProblem(http.StatusConflict, codeIntentConflict)
	if core.asked != 1 {
		t.Errorf("the core was asked %d times, want 1", core.asked)
	}
	h.evaluate(acme, intent(obj{"intent_id": uuid.NewString()})).wantProblem(http.StatusInternalServerError, codeCoreFailed)
	h.store.fail("Decided", errors.New("disk on fire"))
	h.evaluate(acme, body).wantProblem(http.StatusInternalServerError, codeInternal)
}

func TestDecision_ExternalEvaluationCore_IntentsDecidedTwiceAtOnceAreDecidedOnce(t *testing.T) {
	h, core := startElsewhere(t)
	body := intent()
	inner := false
	core.decide = func(ctx context.Context, set engine.Set, in *engine.Input) (engine.Result, error) {
		if !inner {
			inner = true
			wantDecision(t, h.evaluate(acme, body), "deny")
			return allows(ctx, set, in)
		}
		return engine.Result{Decision: engine.Deny, Findings: []engine.Finding{{Code: engine.CodeRuleDeny, Outcome: engine.Deny, Reason: "rule.deny: no"}}}, nil
	}
	r := h.evaluate(acme, body)
	wantDecision(t, r, "deny")
	if n := len(h.history(acme)); n != 1 || r.header.Get(headerReplayed) != "true" {
		t.Errorf("history has %d rows, %s %q, want 1 and a replay", n, headerReplayed, r.header.Get(headerReplayed))
	}
}
