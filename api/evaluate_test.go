package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

func TestEvaluate_Outcomes(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"agent_id": "ci", "max_cost_minor": 500, "currency": "EUR"})
	for name, tc := range map[string]struct {
		change obj
		want   string
		code   engine.Code
	}{
		"allow":                  {nil, "allow", engine.CodePolicyAllowed},
		"denied action":          {obj{"action_type": "sql.drop"}, "deny", engine.CodeActionDenied},
		"action not listed":      {obj{"action_type": "sql.read"}, "deny", engine.CodeActionNotAllowed},
		"blocked resource":       {obj{"resource": "https://VAULT.example.com:443/x/../k"}, "deny", engine.CodeResourceBlocked},
		"another agent":          {obj{"agent_id": "other"}, "approval_required", engine.CodeAgentMismatch},
		"the cap itself":         {obj{"cost": obj{"amount_minor": 500, "currency": "EUR"}}, "allow", engine.CodePolicyAllowed},
		"over the cap":           {obj{"cost": obj{"amount_minor": 501, "currency": "EUR"}}, "deny", engine.CodeCostExceeded},
		"another currency":       {obj{"cost": obj{"amount_minor": 1, "currency": "USD"}}, "deny", engine.CodeCostCurrency},
		"intent in upper case":   {obj{"intent_id": strings.ToUpper(uuid.NewString())}, "allow", engine.CodePolicyAllowed},
		"metadata is not echoed": {obj{"action_type": "sql.drop", "metadata": obj{"k": "s3cr3t"}}, "deny", engine.CodeActionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.evaluate(acme, intent(tc.change)).wantStatus(http.StatusOK)
			var got result
			r.into(&got)
			if got.Receipt.Decision != tc.want || got.Decision != tc.want || got.Approved != (tc.want == "allow") || !got.OK {
				t.Errorf("evaluate = %s, want %s", r.body, tc.want)
			}
			if !strings.Contains(strings.Join(got.Reasons, "\n"), string(tc.code)+":") {
				t.Errorf("reasons = %q, want one of code %s", got.Reasons, tc.code)
			}
			if got.DecisionID != got.Receipt.DecisionID || uuid.MustParse(got.DecisionID).Version() != 7 {
				t.Errorf("decision_id = %s, in the receipt %s, want one UUIDv7", got.DecisionID, got.Receipt.DecisionID)
			}
			if err := receipt.Verify(got.Receipt, h.trusted, h.clock.Now()); err != nil {
				t.Errorf("receipt.Verify = %v, want nil", err)
			}
			if bytes.Contains(r.body, []byte("s3cr3t")) {
				t.Errorf("evaluate = %s, which echoes metadata", r.body)
			}
		})
	}
}

func TestEvaluate_BodyIsTheContracts(t *testing.T) {
	h := start(t)
	h.register(acme)
	r := h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	var got result
	r.into(&got)
	want, err := json.Marshal(got)
	must(t, err)
	same(t, "the body differs from what encoding by reflection gives", string(want), string(r.body))
	r.wantHeader("Content-Type", typeJSON)
}

func TestEvaluation_AppendJSONEscapes(t *testing.T) {
	e := &evaluation{
		Decision: engine.Deny, DecisionID: "id",
		Reasons: []string{"rule.deny: \"quoted\" \\ <b> \u2028 \x01 é", ""},
		Receipt: receipt.Receipt{Decision: "deny", DecisionID: "id", Digest: "d", Exp: 1, Sig: "s", KeyID: "k"},
	}
	var got result
	if err := json.Unmarshal(e.appendJSON(nil), &got); err != nil {
		t.Fatalf("appendJSON = %s: %v", e.appendJSON(nil), err)
	}
	if diff := cmp.Diff(e.Reasons, got.Reasons); diff != "" || got.Approved {
		t.Errorf("reasons read back (-want +got), approved %v:\n%s", got.Approved, diff)
	}
}

func TestDecision_Idempotency_SameIntentSameBytes(t *testing.T) {
	h := start(t)
	h.register(acme)
	body := intent()
	first := h.evaluate(acme, body).wantStatus(http.StatusOK)
	first.wantHeader(headerReplayed, "")
	for name, change := range map[string]func(){
		"at once":                  func() {},
		"receipt expired":          func() { h.clock.advance(time.Hour) },
		"policy suspended":         func() { h.register(acme, obj{"version": 2, "status": "suspended"}) },
		"agent disabled":           func() { h.disable(acme, "ci") },
		"a rule denies":            func() { h.rule(acme, `{}`, `{"decision":"deny"}`) },
		"next month":               func() { h.clock.advance(31 * 24 * time.Hour) },
		"spelled in another order": func() {},
	} {
		change()
		again := h.evaluate(acme, body).wantStatus(http.StatusOK)
		if !bytes.Equal(again.body, first.body) {
			t.Errorf("%s: the same intent = %s, want the first answer %s", name, again.body, first.body)
		}
		again.wantHeader(headerReplayed, "true")
	}
	h.wantRows(acme, 1)
}

// TestDecision_Idempotency_AReplayWhoseReceiptExpiredSaysSo checks "A replay of an allow whose receipt has expired is
// the same bytes with Receipt-Expired: true".
func TestDecision_Idempotency_AReplayWhoseReceiptExpiredSaysSo(t *testing.T) {
	h := start(t)
	h.register(acme)
	allowed, denied := intent(), intent(obj{"action_type": "sql.drop"})
	first := h.evaluate(acme, allowed).wantStatus(http.StatusOK)
	h.evaluate(acme, denied).wantStatus(http.StatusOK)
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, ""}, {ledger.DefaultTTL - time.Second, ""}, {time.Second, "true"}, {time.Hour, "true"}} {
		h.clock.advance(step.after)
		for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
			again := h.do("POST", path, h.operator(acme), allowed).wantStatus(http.StatusOK)
			if got := again.header.Get(headerExpired); got != step.want || again.header.Get(headerReplayed) != "true" {
				t.Errorf("%s after %v more: %s = %q, %s = %q, want %q and true", path, step.after, headerExpired, got,
					headerReplayed, again.header.Get(headerReplayed), step.want)
			}
			if !bytes.Equal(first.body, again.body) {
				t.Errorf("%s after %v more = %s, want %s", path, step.after, again.body, first.body)
			}
		}
		h.evaluate(acme, denied).wantStatus(http.StatusOK).wantHeader(headerExpired, "")
	}
}

func (h *harness) disable(org, externalID string) {
	h.t.Helper()
	h.do("POST", "/v1/agents", h.operator(org), obj{"name": "x", "externalId": externalID}).wantStatus(http.StatusCreated)
	h.do("PATCH", "/v1/agents/"+externalID+"/status", h.operator(org), obj{"status": "disabled"}).wantStatus(http.StatusOK)
}

func (h *harness) rule(org, condition, action string) (id string) {
	h.t.Helper()
	r := read[engine.Rule](h.do("POST", "/v1/rules", h.operator(org), obj{"name": "r", "condition": condition, "action": action}).wantStatus(http.StatusCreated))
	return r.ID
}

func TestDecision_Idempotency_ADifferentBodyIs409AndTellsNothing(t *testing.T) {
	h := start(t)
	h.register(acme)
	body := intent(obj{"resource": "prod/first-secret"})
	first := read[result](h.evaluate(acme, body).wantStatus(http.StatusOK))
	body["intent"].(obj)["resource"] = "prod/other"
	r := h.evaluate(acme, body)
	r.wantProblem(http.StatusConflict, codeIntentConflict)
	for _, secret := range []string{"first-secret", first.DecisionID, first.Receipt.Digest} {
		if bytes.Contains(r.body, []byte(secret)) {
			t.Errorf("conflict = %s, which tells %q of the earlier body", r.body, secret)
		}
	}
	h.register(rival)
	h.evaluate(rival, intent(obj{"intent_id": body["intent"].(obj)["intent_id"]})).wantStatus(http.StatusOK)
}

func TestDecision_Idempotency_AHundredConcurrentDuplicatesAreOneDecision(t *testing.T) {
	h := start(t, patient)
	h.register(acme)
	body, err := json.Marshal(intent())
	must(t, err)
	token := h.operator(acme)
	replies := make([]*reply, 100)
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() { replies[i] = h.do("POST", "/v1/policy/evaluate", token, body) })
	}
	all.Wait()
	replayed := 0
	for _, r := range replies {
		r.wantStatus(http.StatusOK)
		if !bytes.Equal(r.body, replies[0].body) {
			t.Fatalf("bodies differ: %s and %s", r.body, replies[0].body)
		}
		if r.header.Get(headerReplayed) == "true" {
			replayed++
		}
	}
	if replayed != 99 {
		t.Errorf("%d answers are replays, want 99", replayed)
	}
	h.wantRows(acme, 1)
	if n, err := h.store.Metered(context.Background(), acme, storage.MonthOf(h.clock.Now())); err != nil || n != 1 {
		t.Errorf("meter = %d, %v, want 1", n, err)
	}
}

func TestEvaluate_InvalidFields(t *testing.T) {
	h := start(t)
	h.register(acme)
	other := uuid.NewString()
	for name, tc := range map[string]struct {
		body  any
		field string
	}{
		"no intent":              {obj{"policy_id": policyID}, "intent"},
		"no policy_id":           {obj{"intent": intent()["intent"]}, "policy_id"},
		"policy_ids differ":      {obj{"policy_id": other, "intent": intent()["intent"]}, "intent.policy_id"},
		"unknown field":          {intent(obj{"ressource": "x"}), "intent.ressource"},
		"unknown field of body":  {obj{"policy_id": policyID, "intent": intent()["intent"], "x": 1}, "x"},
		"case variant":           {intent(obj{"Resource": "x"}), "intent.Resource"},
		"negative cost":          {intent(obj{"cost": obj{"amount_minor": -1, "currency": "EUR"}}), "intent.cost.amount_minor"},
		"currency in lower case": {intent(obj{"cost": obj{"amount_minor": 1, "currency": "eur"}}), "intent.cost.currency"},
		"cost without amount":    {intent(obj{"cost": obj{"currency": "EUR"}}), "intent.cost.amount_minor"},
		"fractional cost":        {intent(obj{"cost": obj{"amount_minor": 1.5, "currency": "EUR"}}), "intent.cost.amount_minor"},
		"null intent":            {`{"policy_id":"` + policyID + `","intent":null}`, "intent"},
		"null string":            {intent(obj{"agent_id": nil}), "intent.agent_id"},
		"intent_id is no UUID":   {intent(obj{"intent_id": "x"}), "intent.intent_id"},
		"issued_at is no time":   {intent(obj{"issued_at": "yesterday"}), "intent.issued_at"},
		"resource with NUL":      {intent(obj{"resource": "a\x00b"}), "intent.resource"},
		"doubly encoded":         {intent(obj{"resource": "https://a/%252e"}), "intent.resource"},
		"metadata not strings":   {intent(obj{"metadata": obj{"n": 1}}), "intent.metadata.n"},
		"empty body":             {"", "body"},
	} {
		t.Run(name, func(t *testing.T) { h.evaluate(acme, tc.body).wantField(tc.field) })
	}
	p := h.evaluate(acme, obj{"policy_id": "x", "intent": obj{}}).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	if len(p.Errors) < 6 {
		t.Errorf("errors = %v, want all invalid fields at once", p.Errors)
	}
	h.wantRows(acme, 0)
}

func TestEvaluate_HostileBodiesAreRefused(t *testing.T) {
	h := start(t)
	h.register(acme)
	good, err := json.Marshal(intent())
	must(t, err)
	text := string(good)
	for name, body := range map[string]string{
		"duplicate key":          strings.Replace(text, `"action_type":"deploy"`, `"action_type":"sql.drop","action_type":"deploy"`, 1),
		"escaped duplicate key":  strings.Replace(text, `"action_type":"deploy"`, `"action_type":"sql.drop","\u0061ction_type":"deploy"`, 1),
		"case-variant duplicate": strings.Replace(text, `"action_type":"deploy"`, `"action_type":"deploy","ACTION_TYPE":"deploy"`, 1),
		"trailing document":      text + text,
		"trailing junk":          text + "x",
		"trailing NUL":           text + "\x00",
		"BOM":                    "\ufeff" + text,
		"NUL first":              "\x00" + text,
		"invalid UTF-8":          strings.Replace(text, "prod/web", "prod/\xff", 1),
		"lone surrogate":         strings.Replace(text, "prod/web", `prod/\ud800`, 1),
		"deep nesting":           strings.Repeat("[", 100_000),
		"deep member":            `{"intent":` + strings.Repeat(`{"a":`, 20_000),
		"huge number":            strings.Replace(text, `"action_type"`, `"cost":{"amount_minor":1e400,"currency":"EUR"},"action_type"`, 1),
		"integer overflow":       strings.Replace(text, `"action_type"`, `"cost":{"amount_minor":92233720368547758080,"currency":"EUR"},"action_type"`, 1),
		"many digits":            strings.Replace(text, `"action_type"`, `"cost":{"amount_minor":`+strings.Repeat("9", 100_000)+`,"currency":"EUR"},"action_type"`, 1),
		"negative zero":          strings.Replace(text, `"action_type"`, `"cost":{"amount_minor":-1,"currency":"EUR"},"action_type"`, 1),
		"null":                   "null",
		"array":                  "[" + text + "]",
		"string":                 `"` + "x" + `"`,
		"number":                 "1",
		"single quotes":          strings.ReplaceAll(text, `"`, `'`),
		"comment":                "/* */" + text,
		"trailing comma":         strings.TrimSuffix(text, "}") + ",}",
		"NaN":                    strings.Replace(text, `"prod/web"`, "NaN", 1),
		"unclosed":               text[:len(text)-1],
		"only spaces":            "   ",
		"form":                   "policy_id=" + policyID,
	} {
		t.Run(name, func(t *testing.T) {
			h.evaluate(acme, body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
		})
	}
	h.evaluate(acme, good).wantStatus(http.StatusOK)
}

func TestEvaluate_EveryFaultRefuses(t *testing.T) {
	for _, call := range []string{"Policy", "AllRules", "AgentsNamed", "Subscription", "Count", "Commit", "Commit lost answer"} {
		t.Run(call, func(t *testing.T) {
			h := start(t)
			h.register(acme)
			token := h.operator(acme)
			h.tell(storage.Change{Kind: storage.SubscriptionKind, Org: acme}) // register has cached the plan and the policy
			h.tell(storage.Change{Kind: storage.PolicyKind, Org: acme, ID: policyID})
			h.store.fail(call, errors.New("disk on fire at /var/secret"))
			body := intent()
			for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
				r := h.do("POST", path, token, body)
				if call == "Commit lost answer" { // with a lost answer, the intent is stored
					r.wantProblem(http.StatusServiceUnavailable, codeStoreUnavailable)
				} else {
					r.wantProblem(http.StatusInternalServerError, codeInternal)
				}
				if bytes.Contains(r.body, []byte("disk")) {
					t.Errorf("%s = %s, which tells the cause", path, r.body)
				}
				if id := r.header.Get(headerRequestID); !strings.Contains(h.log.String(), id) || !strings.Contains(h.log.String(), "disk on fire") {
					t.Errorf("log = %s, want the cause with request id %s", h.log, id)
				}
			}
			h.store.fail(call, nil)
			h.do("POST", "/v1/policy/evaluate", token, body).wantStatus(http.StatusOK)
			h.wantRows(acme, 1)
		})
	}
}

func TestEvaluate_KillSwitchIsInForceWhenItAnswers(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	h.disable(acme, "ci")
	for range 3 {
		wantDecision(t, h.evaluate(acme, intent()), "deny")
		h.do("PATCH", "/v1/agents/ci/status", h.operator(acme), obj{"status": "active"}).wantStatus(http.StatusOK)
		wantDecision(t, h.evaluate(acme, intent()), "allow")
		h.do("PATCH", "/v1/agents/ci/status", h.operator(acme), obj{"status": "disabled"}).wantStatus(http.StatusOK)
	}
}

func wantDecision(t testing.TB, r *reply, want string) {
	t.Helper()
	var got result
	r.wantStatus(http.StatusOK).into(&got)
	if got.Receipt.Decision != want {
		t.Errorf("decision = %s (%q), want %s", got.Receipt.Decision, got.Reasons, want)
	}
}

func TestEvaluate_ChangesAreInForceWhenTheyAnswer(t *testing.T) {
	h := start(t)
	h.register(acme)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	id := h.rule(acme, `{"action_type":"deploy"}`, `{"decision":"approval_required"}`)
	wantDecision(t, h.evaluate(acme, intent()), "approval_required")
	h.do("PATCH", "/v1/rules/"+id, h.operator(acme), obj{"isActive": false}).wantStatus(http.StatusOK)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	h.register(acme, obj{"version": 2, "status": "revoked"})
	wantDecision(t, h.evaluate(acme, intent()), "deny")
}

func TestDecision_Evaluation_UnregisteredAgentsAreDeniedWhereRegistrationIsRequired(t *testing.T) {
	h := start(t, func(c *setup) { c.Service.RequireRegistered = true })
	h.register(acme)
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "CI", "externalId": "ci"}).wantStatus(http.StatusCreated)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
}

func TestAuthorize_DenyIs403WithTheWholeResult(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"agent_id": "ci"})
	body := intent(obj{"action_type": "sql.drop"})
	r := h.do("POST", "/v1/governance/authorize", h.operator(acme), body)
	p := r.wantProblem(http.StatusForbidden, codePolicyViolation)
	if p.DecisionID == "" || len(p.Reasons) == 0 || p.Receipt == nil || p.Receipt.Decision != "deny" {
		t.Fatalf("problem = %s, want decision_id, reasons and receipt", r.body)
	}
	if err := receipt.Verify(*p.Receipt, h.trusted, h.clock.Now()); err != nil {
		t.Errorf("receipt.Verify = %v, want nil", err)
	}
	same := read[result](h.evaluate(acme, body).wantStatus(http.StatusOK))
	if same.DecisionID != p.DecisionID || same.Approved {
		t.Errorf("evaluate of the same intent = %s, approved %v, want %s, false", same.DecisionID, same.Approved, p.DecisionID)
	}
	again := h.do("POST", "/v1/governance/authorize", h.operator(acme), body)
	if got := again.header.Get(headerReplayed); got != "true" || again.status != http.StatusForbidden {
		t.Errorf("the same again = %d, %s %q, want 403, true", again.status, headerReplayed, got)
	}
	wantDecision(t, h.do("POST", "/v1/governance/authorize", h.operator(acme), intent()), "allow")
	wantDecision(t, h.do("POST", "/v1/governance/authorize", h.operator(acme), intent(obj{"agent_id": "x"})), "approval_required")
}

func TestDecision_Evaluation_OverThePlansMeterIsADeny(t *testing.T) {
	plans := engine.DefaultPlans()
	plans["free"] = engine.Plan{Name: "free", Evaluations: 3, Agents: 5, Policies: 10}
	plans["pro"] = engine.Plan{Name: "pro", Evaluations: 5, Agents: 5, Policies: 10}
	h := start(t, func(c *setup) { c.Service.Plans = plans })
	h.register(acme)
	body := intent()
	for range 5 { // repeats are metered only once
		wantDecision(t, h.evaluate(acme, body), "allow")
	}
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	over := intent()
	wantDecision(t, h.evaluate(acme, over), "deny")
	h.do("POST", "/v1/governance/authorize", h.operator(acme), over).wantProblem(http.StatusForbidden, codeUsageLimit)
	must(t, storagetest.PutSubscription(context.Background(), h.docs, &storage.Subscription{OrganizationID: acme, Plan: "pro", Status: "active"}))
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	wantDecision(t, h.evaluate(acme, over), "deny") // this intent was decided before
	must(t, storagetest.PutSubscription(context.Background(), h.docs, &storage.Subscription{OrganizationID: acme, Plan: "unheard-of"}))
	wantDecision(t, h.evaluate(acme, intent()), "deny")
	h.clock.advance(31 * 24 * time.Hour)
	wantDecision(t, h.evaluate(acme, intent()), "allow")
	for _, want := range []string{
		`writ_meter_ticks_total{limit="within",plan="free"} 4`, `writ_meter_ticks_total{limit="beyond",plan="free"} 2`,
		`writ_meter_ticks_total{limit="within",plan="pro"} 1`,
	} {
		if text := h.admin("/metrics").Body.String(); !strings.Contains(text, want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestEvaluate_NotFoundLeavesTheIntentFree(t *testing.T) {
	h := start(t)
	body := intent()
	h.evaluate(acme, body).wantProblem(http.StatusNotFound, "policy_not_found")
	h.register(rival)
	h.evaluate(acme, body).wantProblem(http.StatusNotFound, "policy_not_found")
	h.register(acme)
	wantDecision(t, h.evaluate(acme, body), "allow")
	if n, err := h.store.Metered(context.Background(), acme, storage.MonthOf(h.clock.Now())); err != nil || n != 1 {
		t.Errorf("meter = %d, %v, want 1", n, err)
	}
}

// TestEvaluate_BodiesNeverBleed checks that no row and no answer contains bytes of another request.
// Such bytes could appear because Fiber reuses the memory of requests.
func TestEvaluate_BodiesNeverBleed(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Service.Plans = map[string]engine.Plan{"free": {Name: "free", Evaluations: 1 << 40, Policies: 9}}
	})
	h.register(acme)
	token := h.operator(acme)
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := range 25 {
				mark := fmt.Sprintf("w%02d-%03d-%s", worker, i, strings.Repeat(string(rune('a'+worker)), i))
				body := intent(obj{"agent_id": mark, "resource": "prod/" + mark, "metadata": obj{mark: mark}})
				send := func() *reply {
					return h.do("POST", "/v1/policy/evaluate", token, body, headerRequestID, fmt.Sprintf("w%d-%d", worker, i))
				}
				r := send()
				for tries := 0; r.status == http.StatusServiceUnavailable && tries < 50; tries++ { // a busy machine
					r = send()
				}
				if r.status != http.StatusOK || r.header.Get(headerRequestID) != fmt.Sprintf("w%d-%d", worker, i) {
					t.Errorf("evaluate = %d with id %s, want 200 with its own", r.status, r.header.Get(headerRequestID))
				}
			}
		})
	}
	all.Wait()
	rows := h.history(acme)
	if len(rows) != 400 {
		t.Fatalf("history has %d rows, want 400", len(rows))
	}
	for _, row := range rows {
		if row.Resource != "prod/"+row.AgentID || !cmp.Equal(row.MetadataKeys, []string{row.AgentID}) || row.OrganizationID != acme {
			t.Errorf("row mixes requests: agent %q, resource %q, keys %q", row.AgentID, row.Resource, row.MetadataKeys)
		}
	}
}
