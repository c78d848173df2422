package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/api/operator"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

func (h *harness) decision(token string, changes ...obj) (decisionID string) {
	h.t.Helper()
	decided := read[result](h.do("POST", "/v1/policy/evaluate", token, intent(changes...)).wantStatus(http.StatusOK))
	return decided.DecisionID
}

// TestDecision_Receipts_OneRowCanBeLookedUpWithItsReceipt checks "GET /v1/authorizations/{decisionId} shows the row"
// and "History rows carry their receipt, so that everybody can check the rows they see."
func TestDecision_Receipts_OneRowCanBeLookedUpWithItsReceipt(t *testing.T) {
	h := start(t)
	h.register(acme)
	id := h.decision(h.operator(acme))
	for _, spelled := range []string{id, strings.ToUpper(id)} {
		row := read[storage.Record](h.do("GET", "/v1/authorizations/"+spelled, h.operator(acme), nil).wantStatus(http.StatusOK))
		if diff := cmp.Diff(h.history(acme)[0], row); diff != "" {
			t.Errorf("row (-listed +looked up):\n%s", diff)
		}
		must(t, receipt.Verify(row.Receipt, h.trusted, h.clock.Now()))
		must(t, receipt.VerifyPayload(row.Receipt, ledger.Payload(&row)))
	}
	key, _ := h.key(acme, "actions:record")
	h.do("POST", "/v1/actions/record", key, obj{"decision_id": id, "outcome": "executed"}).wantStatus(http.StatusOK)
	row := read[storage.Record](h.do("GET", "/v1/authorizations/"+id, h.operator(acme), nil).wantStatus(http.StatusOK))
	if row.Settlement == nil || row.Settlement.Outcome != "executed" {
		t.Errorf("settlement = %+v, want what was recorded", row.Settlement)
	}
	h.do("GET", "/v1/authorizations/"+id+"?limit=1", h.operator(acme), nil).wantField("limit")
}

// TestDecision_Receipts_AuditDigestIsThatOfTheRowAsShown checks "audit_digest: the same kind of
// digest of the row as GET /v1/authorizations/{decisionId} shows it, less receipt, settlement,
// approval". A caller can compute the digest from the row. The receipt contains the digest, and its
// signature covers the digest.
func TestDecision_Receipts_AuditDigestIsThatOfTheRowAsShown(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.Minimal, ledger.Full} {
		t.Run(string(mode), func(t *testing.T) { auditDigests(t, start(t, func(c *setup) { c.Audit = mode })) })
	}
}

func auditDigests(t *testing.T, h *harness) {
	h.register(acme)
	h.clock.advance(123 * time.Millisecond)
	for _, changes := range []obj{
		{},
		{"cost": obj{"amount_minor": 12, "currency": "EUR"}, "metadata": map[string]string{"b": "1", "ä": "2", "a\"": "3", "€": "4"}},
		{"metadata": map[string]string{}},
		{"agent_id": "someone@example.com", "resource": "https://user:pw@example.com/a?b=c&d=<e>"},
		{"action_type": "sql.drop", "issued_at": "2026-11-21T10:00:00.5+02:00"},
		{"agent_id": "CI", "issued_at": "2026-11-21T10:00:00.1234567891Z"},
		{"agent_id": "ÄI", "resource": "https://example.com/a?b=c&d=<e>"},
	} {
		h.clock.advance(time.Second - 123*time.Millisecond) // times with and without a fraction
		var decided struct {
			DecisionID  string `json:"decision_id"`
			AuditDigest string `json:"audit_digest"`
		}
		r := h.evaluate(acme, intent(changes)).wantStatus(http.StatusOK)
		r.into(&decided)
		result, err := receipt.ParseResult(r.body)
		must(t, err)
		h.do("POST", "/v1/actions/record", h.operator(acme), obj{"decision_id": decided.DecisionID, "outcome": "failed"}).wantStatus(http.StatusOK)
		shown := h.do("GET", "/v1/authorizations/"+decided.DecisionID, h.operator(acme), nil).wantStatus(http.StatusOK)
		var row map[string]any
		shown.into(&row)
		for _, member := range []string{"audit_digest", "receipt", "settlement"} {
			if _, ok := row[member]; !ok {
				t.Errorf("the row has no %s", member)
			}
			delete(row, member)
		}
		rest, err := json.Marshal(row)
		must(t, err)
		canonical := jsontext.Value(rest)
		must(t, canonical.Canonicalize())
		if want := receipt.DigestBytes(canonical); decided.AuditDigest != want || result.AuditDigest != want {
			t.Errorf("audit_digest of %s = %s, want %s", canonical, decided.AuditDigest, want)
		}
		var record storage.Record
		shown.into(&record)
		payload := ledger.Payload(&record)
		must(t, receipt.VerifyPayload(result.Receipt, payload))
		payload.AuditDigest = "sha256:" + strings.Repeat("0", 64)
		if receipt.VerifyPayload(result.Receipt, payload) == nil {
			t.Error("the receipt stands over another row's digest")
		}
	}
}

// TestDecision_Audit_ARowNamesTheCredentialThatAsked checks "Nothing else of the request is ever
// stored, but the id of the credential that asked". Both the row and the list must contain that id.
func TestDecision_Audit_ARowNamesTheCredentialThatAsked(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, keyID := h.key(acme, "policy:evaluate")
	other, otherID := h.key(acme, "policy:evaluate")
	signed, err := operator.Sign([]byte(testSecret), acme, keyID, h.clock.Now(), 3600e9)
	must(t, err)
	want := map[string]string{
		h.decision(key): keyID, h.decision(other): otherID, h.decision(signed): "operator:" + keyID,
	}
	got := make(map[string]string)
	for _, row := range h.history(acme) {
		got[row.DecisionID] = row.Credential
	}
	same(t, "credentials", want, got)
	again := intent()
	h.do("POST", "/v1/policy/evaluate", key, again).wantStatus(http.StatusOK)
	h.do("POST", "/v1/policy/evaluate", other, again).wantStatus(http.StatusOK)
	if got := h.history(acme)[0].Credential; got != keyID {
		t.Errorf("credential of a replayed decision = %s, want the first that asked, %s", got, keyID)
	}
}

// TestDecision_Credentials_AKeyLooksUpWhatItAskedForAndNothingElse checks "One decision can be looked up: GET
// /v1/authorizations/{decisionId} (scope history:read, or the key that asked)."
func TestDecision_Credentials_AKeyLooksUpWhatItAskedForAndNothingElse(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	maker, _ := h.key(acme, "policy:evaluate", "tokens:write")
	made := read[tokenSecret](h.do("POST", "/v1/tokens", maker, obj{"name": "n", "scopes": []string{"policy:evaluate"}}).wantStatus(http.StatusCreated))
	own := h.decision(made.Token)
	reader, _ := h.key(acme, "history:read")
	foreign := h.decisionOf(rival)
	for _, tc := range []struct {
		name, token, id string
		status          int
	}{
		{"its own", made.Token, own, http.StatusOK},
		{"a reader's", reader, own, http.StatusOK},
		{"its maker", maker, own, http.StatusForbidden},
		{"another's", made.Token, h.decision(maker), http.StatusForbidden},
		{"an operator's", made.Token, h.decision(h.operator(acme)), http.StatusForbidden},
		{"another organization's", made.Token, foreign, http.StatusForbidden},
		{"nobody's", made.Token, uuid.NewString(), http.StatusForbidden},
		{"no id", made.Token, "x", http.StatusForbidden},
		{"another organization's, for a reader", reader, foreign, http.StatusNotFound},
		{"nobody's, for a reader", reader, uuid.NewString(), http.StatusNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := h.do("GET", "/v1/authorizations/"+tc.id, tc.token, nil).wantStatus(tc.status)
			switch tc.status {
			case http.StatusForbidden:
				r.wantProblem(http.StatusForbidden, codeInsufficientScope)
			case http.StatusNotFound:
				r.wantProblem(http.StatusNotFound, "decision_not_found")
			}
		})
	}
}

// decisionOf makes a decision as an operator of org and returns its id.
func (h *harness) decisionOf(org string) string {
	h.t.Helper()
	return h.decision(h.operator(org))
}

func TestAuthorization_AFaultOfTheStoreShowsNothing(t *testing.T) {
	h := start(t)
	h.register(acme)
	key, _ := h.key(acme, "policy:evaluate")
	id := h.decision(key)
	h.store.fail("Record", storage.ErrUnavailable)
	r := h.do("GET", "/v1/authorizations/"+id, key, nil)
	r.wantProblem(http.StatusServiceUnavailable, codeStoreUnavailable)
	if after := r.header.Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After = %q, want 1", after)
	}
}

// TestDecision_Audit_TheRevisionsItDecidedUnder checks that a row has the revisions of the policy,
// the rules and the agent at the time of the decision. A change or a removal of such a document
// increases the revision. A change by another organization does not.
func TestDecision_Audit_TheRevisionsItDecidedUnder(t *testing.T) {
	h := start(t)
	h.register(acme)
	decide := func() (row storage.Record) {
		t.Helper()
		res := read[result](h.evaluate(acme, intent()))
		h.do("GET", "/v1/authorizations/"+res.DecisionID, h.operator(acme), nil).wantStatus(http.StatusOK).into(&row)
		if got := ledger.AuditDigest(&row); got != row.AuditDigest {
			t.Errorf("the row's digest is %s, want %s", got, row.AuditDigest)
		}
		return row
	}
	before := decide()
	if before.PolicyRevision == 0 || before.AgentRevision != 0 {
		t.Errorf("revisions of policy and of no agent = %d, %d", before.PolicyRevision, before.AgentRevision)
	}
	var rule string
	for what, change := range []func(){
		func() { rule = h.rule(acme, `{"action_type":"none"}`, `{"decision":"deny"}`) },
		func() {
			h.do("PATCH", "/v1/rules/"+rule, h.operator(acme), obj{"priority": 7}).wantStatus(http.StatusOK)
		},
		func() { h.do("DELETE", "/v1/rules/"+rule, h.operator(acme), nil).wantStatus(http.StatusNoContent) },
	} {
		change()
		after := decide()
		if after.RulesRevision <= before.RulesRevision || after.PolicyRevision != before.PolicyRevision {
			t.Errorf("change %d: revisions of rules and policy = %d, %d, before %d, %d", what, after.RulesRevision, after.PolicyRevision,
				before.RulesRevision, before.PolicyRevision)
		}
		before = after
	}
	h.register(rival)
	if after := decide(); after.RulesRevision != before.RulesRevision {
		t.Errorf("another organization's change: revision of rules = %d, before %d", after.RulesRevision, before.RulesRevision)
	}
	var agent engine.Agent
	h.register(acme, obj{"version": 2})
	if after := decide(); after.PolicyRevision <= before.PolicyRevision {
		t.Errorf("a new version: revision of the policy = %d, before %d", after.PolicyRevision, before.PolicyRevision)
	}
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "n", "externalId": "ci"}).wantStatus(http.StatusCreated).into(&agent)
	registered := decide()
	h.do("PATCH", "/v1/agents/"+agent.ID+"/status", h.operator(acme), obj{"status": "disabled"}).wantStatus(http.StatusOK)
	if off := decide(); registered.AgentRevision == 0 || off.AgentRevision <= registered.AgentRevision {
		t.Errorf("revisions of the agent = %d, then %d", registered.AgentRevision, off.AgentRevision)
	}
}
