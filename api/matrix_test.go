package api

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/api/operator"
	"writ.example/writ/api/wire"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/storage"
)

var updateMatrix = flag.Bool("update-matrix", false, "rewrite the table of docs/routes.md")

const matrixFile = "../docs/routes.md"

// matrixColumns are the kinds of credential, in the order of the columns in docs/routes.md.
var matrixColumns = [...]string{
	"none", "broken", "expired", "revoked", "other scope", "other organization", "scope", "bound", "bound elsewhere", "operator",
	"service token",
}

// TestDecision_Credentials_AuthorizationMatrix sends requests to every route with every kind of
// credential. Each request is for an existing resource of acme. The statuses must equal the
// table in docs/routes.md.
func TestDecision_Credentials_AuthorizationMatrix(t *testing.T) {
	h := start(t, selling(&seller{}), func(c *setup) { c.ServiceToken = serviceToken })
	h.register(acme)
	h.subscribe(acme, "business") // the plan must allow exports
	h.subscribe(rival, "business")
	var got strings.Builder
	fmt.Fprintf(&got, "| endpoint | scope | %s |\n|---|---|%s\n", strings.Join(matrixColumns[:], " | "), strings.Repeat("---|", len(matrixColumns)))
	for _, rt := range h.server.routes() {
		need, credentials := h.credentials(rt)
		fmt.Fprintf(&got, "| `%s %s` | %s |", rt.method, strings.Replace(rt.path, ":"+rt.param, "{"+rt.param+"}", 1), need)
		for _, column := range matrixColumns {
			fmt.Fprintf(&got, " %d |", h.cell(rt, column, credentials[column]))
		}
		got.WriteString("\n")
	}
	text, err := os.ReadFile(matrixFile)
	must(t, err)
	before, table, found := strings.Cut(string(text), "\n\n| endpoint |")
	table, after, ended := strings.Cut("| endpoint |"+table, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table that begins with | endpoint | and ends with an empty line", matrixFile)
	}
	if *updateMatrix {
		must(t, os.WriteFile(matrixFile, []byte(before+"\n\n"+got.String()+"\n"+after), 0o644))
		return
	}
	if diff := cmp.Diff(strings.Split(table+"\n", "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("%s (-written +served):\n%s", matrixFile, diff)
	}
}

// credentials describes the credential that rt requires. It also returns credentials for each
// column.
func (h *harness) credentials(rt route) (need string, of map[string][]string) {
	h.t.Helper()
	scopes, others := Scopes(), []string{"policy:evaluate"}
	switch {
	case rt.is(signed):
		need = "Stripe's signature"
	case rt.scope == public:
		need = "none"
	case rt.scope == service:
		need = "the service token"
	case rt.scope == anyCredential:
		need = "any"
	default:
		need = "`" + rt.scope.String() + "`"
		scopes, others = rt.scope.names(), (scopeAll &^ rt.scope).names()
	}
	with, _ := h.key(acme, scopes...)
	without, _ := h.key(acme, others...)
	theirs, _ := h.key(rival, scopes...)
	others = []string{theirs, h.operator(rival)}
	if rt.scope == operatorOnly { // API keys cannot be operators
		others = others[1:]
	}
	expired, _ := h.keyExpiring(acme, scopes...)
	revoked, id := h.key(acme, scopes...)
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
	unknown, _ := apikey.New()
	forged, err := operator.Sign([]byte(strings.Repeat("x", sha256.Size)), acme, "op", h.clock.Now(), time.Hour)
	must(h.t, err)
	return need, map[string][]string{
		"none": {""},
		"broken": {"x", unknown, with[:40] + flip(with[40:41]) + with[41:], forged,
			h.sign(h.t, obj{"sub": "x", "exp": h.clock.Now().Add(time.Hour).Unix()})},
		"expired":            {expired, h.expiredOperator(acme)},
		"revoked":            {revoked},
		"other scope":        {without},
		"other organization": others,
		"scope":              {with},
		"bound":              {h.boundBefore("ci", Scopes()...)},
		"bound elsewhere":    {h.boundBefore("another", Scopes()...)},
		"operator":           {h.operator(acme)},
		"service token":      {serviceToken},
	}
}

// cell sends a request to rt with each token of a column. All tokens must get the same status,
// which cell returns.
func (h *harness) cell(rt route, column string, tokens []string) (status int) {
	h.t.Helper()
	var headers []string
	if rt.is(signed) {
		headers = []string{headerSignature, "t=1,v1=0"} // seller accepts any signature
	} else if rt.is(upgrades) {
		headers = []string{"Content-Type", wire.TypeLines}
	}
	for _, token := range tokens {
		path, body := h.sample(rt)
		r := h.do(rt.method, path, token, body, headers...)
		switch {
		case rt.scope == public:
		case r.status == http.StatusUnauthorized:
			if r.wantProblem(http.StatusUnauthorized, codeUnauthorized); r.header.Get("WWW-Authenticate") != "Bearer" {
				h.t.Errorf("%s, %s: WWW-Authenticate = %q, want Bearer", r.what, column, r.header.Get("WWW-Authenticate"))
			}
		case r.status == http.StatusForbidden && strings.HasPrefix(column, "bound") && rt.scope != operatorOnly:
			r.wantProblem(http.StatusForbidden, codeAgentNotBound)
		case r.status == http.StatusForbidden:
			if p := r.wantProblem(http.StatusForbidden, codeInsufficientScope); !strings.Contains(p.Detail, rt.scope.String()) {
				h.t.Errorf("%s: detail = %q, want the scope %s", r.what, p.Detail, rt.scope)
			}
		case column == "other organization" && strings.Contains(string(r.body), acme):
			h.t.Errorf("%s tells another organization of acme: %s", r.what, r.body)
		case column == "bound elsewhere" && tellsOfCI(r):
			h.t.Errorf("%s tells a key of another agent of ci: %s", r.what, r.body)
		}
		if status != 0 && r.status != status {
			h.t.Errorf("%s, %s: %d for one credential and %d for another", r.what, column, status, r.status)
		}
		status = r.status
	}
	return status
}

// tellsOfCI reports whether an answer contains data about the agent of the samples.
func tellsOfCI(r *reply) bool {
	return strings.Contains(string(r.body), `"ci"`) || strings.Contains(string(r.body), ",ci,")
}

// boundBefore stores a key of acme that is bound to agents. The key has scopes that a new bound key
// may not have.
func (h *harness) boundBefore(agents string, scopes ...string) string {
	h.t.Helper()
	key, id := apikey.New()
	must(h.t, h.docs.PutToken(h.t.Context(), &storage.Token{
		ID: id, OrganizationID: acme, Name: "n", Scopes: scopes, AgentID: agents,
		Hash: apikey.Hash([]byte(key)), CreatedAt: h.clock.Now(),
	}, 0))
	return key
}

// sample makes a resource of acme. It returns the path and body of a request to rt for that
// resource.
func (h *harness) sample(rt route) (path string, body any) {
	h.t.Helper()
	id := ""
	if strings.HasPrefix(rt.path, "/v1/webhooks") {
		h.deleteWebhooks(acme)
	}
	switch rt.method + " " + rt.path {
	case "POST /v1/policy/evaluate", "POST /v1/governance/authorize":
		body = intent()
	case "POST " + evaluateStreamPath:
		body = ref("a", intent())
	case "POST /v1/hooks/claude":
		body = obj{"cwd": "/srv", "tool_name": "Bash", "tool_input": obj{"command": "ls"}}
	case "POST " + evaluationPath, "POST " + evaluationsPath:
		body = obj{"subject": obj{"type": "ci", "id": "1"}, "action": obj{"name": "deploy"}, "resource": obj{"type": "prod", "id": "web"},
			"context": obj{"policy_id": policyID}}
	case "POST " + requestsPath:
		body = h.heldAccess(acme, "")
	case "GET " + requestsPath + "/:taskId":
		id = h.held(acme)
	case "POST /v1/policy/simulate":
		body = obj{"policy": policy(acme), "rules": []any{}, "intent": intent()["intent"]}
	case "POST " + batchPath:
		body = obj{"mode": "all", "intents": []any{intent()["intent"]}}
	case "POST /v1/policies/register":
		body = obj{"policy": policy(acme)}
	case "POST /v1/rules":
		body = obj{"name": "n", "condition": "{}", "action": `{"decision":"allow"}`}
	case "PATCH /v1/rules/:ruleId":
		id, body = h.rule(acme, "{}", `{"decision":"allow"}`), obj{"priority": 7}
	case "GET /v1/policies/:policyId":
		id = policyID
	case "GET /v1/agents/:agentId":
		id = h.agent(acme)
	case "GET /v1/rules/:ruleId", "GET /v1/rules/:ruleId/revisions", "DELETE /v1/rules/:ruleId":
		id = h.rule(acme, "{}", `{"decision":"allow"}`)
	case "GET /v1/lists/:name", "GET /v1/lists/:name/revisions", "DELETE /v1/lists/:name":
		id = "l-" + uuid.NewString()
		h.do("PUT", "/v1/lists/"+id, h.operator(acme), obj{"values": []string{"a"}})
	case "GET /v1/libraries/:name", "GET /v1/libraries/:name/revisions", "DELETE /v1/libraries/:name":
		id = "l_" + strings.ReplaceAll(uuid.NewString(), "-", "")
		h.do("PUT", "/v1/libraries/"+id, h.operator(acme), obj{"modules": obj{"a.rego": "package lib." + id}})
	case "PUT /v1/libraries/:name":
		id = "l_" + strings.ReplaceAll(uuid.NewString(), "-", "")
		body = obj{"modules": obj{"a.rego": "package lib." + id}}
	case "PUT /v1/lists/:name":
		id, body = "l-"+uuid.NewString(), obj{"values": []string{"a"}}
	case "POST /v1/sessions":
		body = obj{"policy_id": policyID, "agent_id": "ci", "ttl": 60}
	case "GET /v1/sessions/:sessionId":
		id = h.session(acme, nil)
	case "PATCH /v1/sessions/:sessionId":
		id, body = h.session(acme, nil), obj{"status": "closed"}
	case "POST /v1/tokens":
		body = obj{"name": "n", "scopes": []string{"tokens:write"}}
	case "DELETE /v1/tokens/:tokenId":
		_, id = h.key(acme)
	case "POST /v1/agents":
		body = obj{"name": "n"}
	case "PATCH /v1/agents/:agentId/status":
		id, body = h.agent(acme), obj{"status": "active"}
	case "PATCH /v1/organization/status":
		body = obj{"status": "active"}
	case "POST /v1/actions/record":
		decided := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
		body = obj{"decision_id": decided.DecisionID, "outcome": "executed"}
	case "GET /schemas/:kind.schema.json":
		id = "rule"
	case "GET /docs/:page":
		id = "concepts"
	case "GET /v1/authorizations/counts":
		return rt.path + "?by=decision", nil
	case "GET /v1/authorizations/:decisionId":
		decided := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
		id = decided.DecisionID
	case "POST /v1/webhooks":
		body = obj{"url": "https://example.com", "events": []string{"agent.disabled"}}
	case "GET /v1/webhooks/:webhookId", "DELETE /v1/webhooks/:webhookId", "POST /v1/webhooks/:webhookId/rotate",
		"POST /v1/webhooks/:webhookId/test", "GET /v1/webhooks/:webhookId/deliveries":
		id = h.webhook(acme)
	case "POST /v1/webhooks/:webhookId/replay":
		id = h.webhook(acme)
		body = obj{"message_id": h.testWebhook(acme, id)}
	case "GET /v1/approvals/:approvalId", "PATCH /v1/approvals/:approvalId":
		id = h.held(acme)
		if rt.method == http.MethodPatch {
			body = obj{"status": "approved"}
		}
	case "POST /v1/billing/checkout":
		body = obj{"plan": "pro"}
	case "POST /v1/billing/webhook":
		body = obj{}
	default:
		if rt.method != http.MethodGet && rt.path != "/v1/billing/portal" {
			h.t.Fatalf("no sample of a request for %s %s", rt.method, rt.path)
		}
	}
	return strings.Replace(rt.path, ":"+rt.param, id, 1), body
}

// held makes a decision that is held for approval and returns its id.
func (h *harness) held(org string) (id string) {
	h.t.Helper()
	agent, _ := h.key(org, "policy:evaluate")
	h.rule(org, `{"resource":"held"}`, persons)
	got := read[result](h.do("POST", "/v1/policy/evaluate", agent, intent(obj{"resource": "held"})).wantStatus(http.StatusOK))
	return got.DecisionID
}

func (h *harness) agent(org string) (id string) {
	h.t.Helper()
	var out struct {
		ID string `json:"id"`
	}
	h.do("POST", "/v1/agents", h.operator(org), obj{"name": "a"}).wantStatus(http.StatusCreated).into(&out)
	return out.ID
}
