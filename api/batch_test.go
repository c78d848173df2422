package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/api/limit"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// batch sends a batch and returns the elements of the answer, undecoded.
func (h *harness) batch(token, mode string, intents ...any) []json.RawMessage {
	h.t.Helper()
	var out struct {
		Results []json.RawMessage `json:"results"`
	}
	h.do("POST", batchPath, token, obj{"mode": mode, "intents": intents}).wantStatus(http.StatusOK).into(&out)
	if len(out.Results) != len(intents) {
		h.t.Fatalf("%d results for %d intents", len(out.Results), len(intents))
	}
	return out.Results
}

// oneOf is one element of a batch's answer: a result or a problem.
type oneOf struct {
	result
	Status int    `json:"status"`
	Code   string `json:"code"`
	Errors []struct {
		Field string `json:"field"`
	} `json:"errors"`
}

func (h *harness) read(element json.RawMessage) (o oneOf) {
	h.t.Helper()
	must(h.t, json.Unmarshal(element, &o))
	return o
}

func inner(body obj) obj { return body["intent"].(obj) }

// TestDecision_Batch_ResultsOrProblemsInOrder checks "POST /v1/policy/evaluate/batch: results or problems in order, one
// commit, one signature."
func TestDecision_Batch_ResultsOrProblemsInOrder(t *testing.T) {
	h := start(t)
	h.register(acme)
	known, allowed, blocked := intent(), inner(intent()), inner(intent(obj{"resource": "https://vault.example.com/k"}))
	first := h.evaluate(acme, known).wantStatus(http.StatusOK)
	conflict := intent(obj{"intent_id": inner(known)["intent_id"], "resource": "prod/other"})
	got := h.batch(h.operator(acme), "each",
		inner(known), allowed, blocked, inner(conflict), inner(intent(obj{"cost": obj{"amount_minor": 1}})),
		inner(intent(obj{"policy_id": uuid.NewString()})), allowed, inner(intent(obj{"agent_id": "", "surprise": 1})))
	if string(got[0]) != strings.TrimSpace(string(first.body)) {
		t.Errorf("a replay in a batch = %s, want the bytes of the first answer %s", got[0], first.body)
	}
	for i, want := range []string{"allow", "allow", "deny", codeIntentConflict, codeInvalidRequest, "policy_not_found", "allow", codeInvalidRequest} {
		o := h.read(got[i])
		if o.Code+o.Receipt.Decision != want {
			t.Errorf("result %d = %s, want %s", i, got[i], want)
		}
		if o.OK != (o.Status == 0) {
			t.Errorf("result %d has ok %v", i, o.OK)
		}
	}
	if string(got[6]) != string(got[1]) {
		t.Errorf("an intent given twice has two results: %s and %s", got[1], got[6])
	}
	if o := h.read(got[4]); len(o.Errors) != 1 || o.Errors[0].Field != "intents[4].cost.currency" {
		t.Errorf("errors = %+v, want the field intents[4].cost.currency", o.Errors)
	}
	// One signature covers all new decisions of the batch, so both receipts have the same head.
	heads := map[string]bool{}
	for _, i := range []int{1, 2} {
		o := h.read(got[i])
		must(t, receipt.Verify(o.Receipt, h.trusted, h.clock.Now()))
		head, err := o.Receipt.SignedHead()
		must(t, err)
		if heads[fmt.Sprint(head.Seq)] = true; head.Size != 2 {
			t.Errorf("a head over %d decisions, want 2", head.Size)
		}
	}
	if len(heads) != 1 {
		t.Errorf("heads %v, want one commit", heads)
	}
	h.wantRows(acme, 3)
}

// TestDecision_Batch_AllOrNone checks "all: if one is not allowed none is (batch.refused), atomically", "all counts an
// intent decided before with its first answer" and "batch.refused is final".
func TestDecision_Batch_AllOrNone(t *testing.T) {
	h := start(t)
	h.register(acme)
	token := h.operator(acme)
	ids := func(elements []json.RawMessage) (all []string) {
		for _, e := range elements {
			o := h.read(e)
			code, _, _ := strings.Cut(o.Reasons[0], ":")
			all = append(all, o.Receipt.Decision+" "+code)
		}
		return all
	}
	want := func(what string, elements []json.RawMessage, wanted ...string) {
		t.Helper()
		if got := ids(elements); fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s = %v, want %v", what, got, wanted)
		}
	}
	a, b, bad := inner(intent()), inner(intent()), inner(intent(obj{"action_type": "sql.drop"}))
	want("all allowed", h.batch(token, "all", a, b), "allow policy.allowed", "allow policy.allowed")
	c := inner(intent())
	refused := h.batch(token, "all", c, bad, a)
	want("one denied", refused, "deny batch.refused", "deny action.denied", "allow policy.allowed")
	want("what was refused, alone", h.batch(token, "each", c), "deny batch.refused")
	want("with one that was denied before", h.batch(token, "all", inner(intent()), bad), "deny batch.refused", "deny action.denied")
	want("with one that was allowed before", h.batch(token, "all", inner(intent()), a), "allow policy.allowed", "allow policy.allowed")
	again := h.do("POST", batchPath, token, obj{"mode": "all", "intents": []any{c, bad, a}}).wantStatus(http.StatusOK)
	if again.header.Get(headerReplayed) != "true" {
		t.Error("a batch of which all was decided before is no replay")
	}
	rows := len(h.history(acme))

	// This checks "one invalid item or a repeated intent id is 400 for all".
	d := inner(intent())
	h.do("POST", batchPath, token, obj{"mode": "all", "intents": []any{d, d}}).wantField("intents[1].intent_id")
	r := h.do("POST", batchPath, token, obj{"mode": "all", "intents": []any{
		d, inner(intent(obj{"resource": ""})), inner(intent(obj{"policy_id": "x"})), obj{"intent_id": 7},
	}})
	for _, field := range []string{"intents[1].resource", "intents[2].policy_id", "intents[3].intent_id"} {
		r.wantField(field)
	}
	h.do("POST", batchPath, token, obj{"mode": "all", "intents": []any{d, inner(intent(obj{"policy_id": uuid.NewString()}))}}).
		wantProblem(http.StatusNotFound, "policy_not_found")
	changed := inner(intent(obj{"intent_id": a["intent_id"], "resource": "elsewhere"}))
	p := h.do("POST", batchPath, token, obj{"mode": "all", "intents": []any{d, changed}}).wantProblem(http.StatusConflict, codeIntentConflict)
	if !strings.Contains(p.Detail, "intents[1]") {
		t.Errorf("detail = %q, want the intent at fault", p.Detail)
	}
	h.wantRows(acme, rows)
	want("what was in refused requests", h.batch(token, "each", d), "allow policy.allowed")
}

func TestBatch_RefusesWhatItCannotRead(t *testing.T) {
	h := start(t)
	h.register(acme)
	token := h.operator(acme)
	many := make([]any, maxBatch+1)
	for i := range many {
		many[i] = inner(intent())
	}
	for field, body := range map[string]any{
		"mode":      obj{"intents": []any{inner(intent())}},
		"intents":   obj{"mode": "each", "intents": []any{}},
		"policy_id": obj{"mode": "each", "policy_id": "x", "intents": []any{inner(intent())}},
		"surprise":  obj{"mode": "each", "surprise": 1, "intents": []any{inner(intent())}},
	} {
		h.do("POST", batchPath, token, body).wantField(field)
	}
	h.do("POST", batchPath, token, obj{"mode": "each", "intents": many}).wantField("intents")
	if got := h.batch(token, "each", many[:maxBatch]...); len(got) != maxBatch {
		t.Errorf("%d results, want %d", len(got), maxBatch)
	}
}

// TestDecision_Batch_MayHave4MiB checks that a batch may have a body of 4 MiB, and that other
// bodies still have the smaller limit.
func TestDecision_Batch_MayHave4MiB(t *testing.T) {
	h := start(t)
	h.register(acme)
	metadata := map[string]string{}
	for i := range 9 {
		metadata[fmt.Sprint("key", i)] = strings.Repeat("x", 4096)
	}
	var intents []any
	for range 100 {
		intents = append(intents, inner(intent(obj{"metadata": metadata})))
	}
	for i, o := range h.batch(h.operator(acme), "each", intents...) { // the body has 3.7 MB
		if got := h.read(o); got.Receipt.Decision != "allow" {
			t.Fatalf("result %d = %s, want allow", i, o)
		}
	}
	for path, most := range map[string]int{batchPath: 4 << 20, "/v1/policy/evaluate": 256 << 10, batchPath + "?x=1": 256 << 10} {
		r := h.raw(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
			path, h.operator(acme), most+1))
		if r.status != http.StatusRequestEntityTooLarge || r.code() != codeBodyTooLarge {
			t.Errorf("%d bytes to %s = %d %s, want 413", most+1, path, r.status, r.body)
		}
	}
}

// TestDecision_Batch_BoundKeys checks "POST /v1/tokens also takes agent_id and policy_id: such a key evaluates for
// those agents only, and its policy is the one meant by the endpoints beyond the contract that name none."
func TestDecision_Batch_BoundKeys(t *testing.T) {
	h := start(t)
	h.register(acme)
	other := uuid.NewString()
	h.register(acme, obj{"policy_id": other, "allowed_action_types": []string{"none"}})
	var minted struct {
		Token string `json:"token"`
	}
	h.do("POST", "/v1/tokens", h.operator(acme), obj{"name": "n", "agent_id": "ci", "policy_id": other}).wantStatus(http.StatusCreated).into(&minted)
	without := func(changes ...obj) obj {
		in := inner(intent(changes...))
		delete(in, "policy_id")
		return in
	}
	got := h.batch(minted.Token, "each", without(), inner(intent()), without(obj{"agent_id": "other"}))
	for i, want := range []string{"action.not_allowed", "policy.allowed", codeAgentNotBound} {
		if !strings.Contains(string(got[i]), want) {
			t.Errorf("result %d = %s, want %s", i, got[i], want)
		}
	}
	h.do("POST", batchPath, minted.Token, obj{"mode": "all", "intents": []any{without(obj{"agent_id": "other"})}}).wantProblem(http.StatusForbidden, codeAgentNotBound)
	h.do("POST", batchPath, h.operator(acme), obj{"mode": "all", "intents": []any{without()}}).wantField("intents[0].policy_id")
	h.do("POST", batchPath, h.operator(acme), obj{"mode": "all", "policy_id": other, "intents": []any{without(), inner(intent())}}).wantField("intents[1].policy_id")
}

// TestBatch_TheRateLimitCountsIntents checks that the rate limit counts intents, not requests. A
// batch is admitted when a single evaluation would be admitted. The next request is refused until
// the bucket has refilled for all intents of the batch.
func TestBatch_TheRateLimitCountsIntents(t *testing.T) {
	h := start(t, func(c *setup) { c.RateLimits.Evaluate = limit.Rate{PerSecond: 1, Burst: 5} })
	h.register(acme)
	token := h.operator(acme)
	var intents []any
	for range 12 {
		intents = append(intents, inner(intent()))
	}
	if got := h.batch(token, "each", intents...); h.read(got[11]).Receipt.Decision != "allow" {
		t.Errorf("the last of a batch = %s, want allow", got[11])
	}
	r := h.do("POST", "/v1/policy/evaluate", token, intent())
	r.wantProblem(http.StatusTooManyRequests, codeRateLimited)
	r.wantHeader("Retry-After", "8")
	h.clock.advance(7 * time.Second)
	h.do("POST", batchPath, token, obj{"mode": "each", "intents": intents[:1]}).wantProblem(http.StatusTooManyRequests, codeRateLimited)
	h.clock.advance(time.Second)
	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
}

// TestBatch_FaultsApproveNothing checks that a fault which prevents all decisions of a batch
// refuses the whole request. Nothing may be approved.
func TestBatch_FaultsApproveNothing(t *testing.T) {
	for _, mode := range []string{"each", "all"} {
		for _, call := range []string{"Commit", "Commit lost answer", "Count", "AgentsNamed", "Decided"} {
			if call == "Decided" && mode == "each" {
				continue // this mode does not call Decided
			}
			t.Run(mode+" "+call, func(t *testing.T) {
				h := start(t)
				h.register(acme)
				token := h.operator(acme)
				intents := []any{inner(intent()), inner(intent())}
				h.store.fail(call, storage.ErrUnavailable)
				h.do("POST", batchPath, token, obj{"mode": mode, "intents": intents}).wantProblem(http.StatusServiceUnavailable, codeStoreUnavailable)
				h.store.fail(call, nil)
				for i, o := range h.batch(token, mode, intents...) {
					if got := h.read(o); got.Receipt.Decision != "allow" {
						t.Errorf("result %d after the fault = %s, want allow", i, o)
					}
				}
				h.wantRows(acme, 2)
			})
		}
	}
}
