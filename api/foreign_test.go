package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"writ.example/writ/engine"
	"writ.example/writ/internal/apikey"
)

// foreignID is an endpoint that takes an id. theirs is an id of another organization, and missing
// is an id that does not exist.
type foreignID struct {
	method, path    string
	theirs, missing string
	body            any
}

// foreignIDs returns all endpoints that take an id in a path or a body. Each field theirs is an id
// of the organization rival.
func (h *harness) foreignIDs() []foreignID {
	h.t.Helper()
	h.register(rival)
	heldID := h.held(rival)
	accessID, _ := h.heldAccess(rival, "")["denial"].(obj)["evaluation_id"].(string)
	ruleID := h.rule(rival, `{}`, `{"decision":"deny"}`)
	_, tokenID := h.key(rival)
	agent := read[engine.Agent](h.do("POST", "/v1/agents", h.operator(rival), obj{"name": "a"}).wantStatus(http.StatusCreated))
	decided := read[result](h.evaluate(rival, intent()).wantStatus(http.StatusOK))
	hook := h.webhook(rival)
	message := h.testWebhook(rival, hook)
	h.do("PUT", "/v1/lists/theirs", h.operator(rival), obj{"values": []string{"a"}}).wantStatus(http.StatusCreated)
	h.do("PUT", "/v1/libraries/theirs", h.operator(rival),
		obj{"modules": obj{"a.rego": "package lib.theirs\n\nx := 1\n"}}).wantStatus(http.StatusCreated)
	sessionID := h.session(rival, nil)
	return []foreignID{
		{"GET", "/v1/webhooks/ID", hook, uuid.NewString(), nil},
		{"GET", "/v1/webhooks/ID/deliveries", hook, uuid.NewString(), nil},
		{"POST", "/v1/webhooks/ID/rotate", hook, uuid.NewString(), nil},
		{"POST", "/v1/webhooks/ID/test", hook, uuid.NewString(), nil},
		{"POST", "/v1/webhooks/ID/replay", hook, uuid.NewString(), obj{"message_id": message}},
		{"DELETE", "/v1/webhooks/ID", hook, uuid.NewString(), nil},
		{"GET", "/v1/sessions/ID", sessionID, uuid.NewString(), nil},
		{"PATCH", "/v1/sessions/ID", sessionID, uuid.NewString(), obj{"status": "closed"}},
		{"GET", "/v1/lists/ID", "theirs", "missing", nil},
		{"GET", "/v1/lists/ID/revisions", "theirs", "missing", nil},
		{"DELETE", "/v1/lists/ID", "theirs", "missing", nil},
		{"GET", "/v1/libraries/ID", "theirs", "missing", nil},
		{"GET", "/v1/libraries/ID/revisions", "theirs", "missing", nil},
		{"DELETE", "/v1/libraries/ID", "theirs", "missing", nil},
		{"GET", "/v1/policies/ID", policyID, uuid.NewString(), nil},
		{"GET", "/v1/rules/ID", ruleID, uuid.NewString(), nil},
		{"GET", "/v1/rules/ID/revisions", ruleID, uuid.NewString(), nil},
		{"GET", "/v1/agents/ID", agent.ID, uuid.NewString(), nil},
		{"GET", "/v1/rules/ID?revision=1", ruleID, uuid.NewString(), nil},
		{"GET", "/v1/lists/ID?revision=1", "theirs", "missing", nil},
		{"GET", "/v1/libraries/ID?revision=1", "theirs", "missing", nil},
		{"GET", "/v1/authorizations/ID?explain=true", decided.DecisionID, uuid.NewString(), nil},
		{"PATCH", "/v1/rules/ID", ruleID, uuid.NewString(), obj{"name": "x"}},
		{"DELETE", "/v1/rules/ID", ruleID, uuid.NewString(), nil},
		{"DELETE", "/v1/tokens/ID", tokenID, second(apikey.New()), nil},
		{"PATCH", "/v1/agents/ID/status", agent.ID, uuid.NewString(), obj{"status": "disabled"}},
		{"POST", "/v1/actions/record", decided.DecisionID, uuid.NewString(), obj{"decision_id": "ID", "outcome": "executed"}},
		{"GET", "/v1/authorizations/ID", decided.DecisionID, uuid.NewString(), nil},
		{"GET", "/v1/approvals/ID", heldID, uuid.NewString(), nil},
		{"PATCH", "/v1/approvals/ID", heldID, uuid.NewString(), obj{"status": "approved"}},
		{"GET", requestsPath + "/ID", heldID, uuid.NewString(), nil},
		{"POST", requestsPath, accessID, uuid.NewString(), accessed("ID")},
		{"POST", evaluationPath, policyID, uuid.NewString(), access(obj{"policy_id": "ID"})},
		{"POST", evaluationPath, accessID, uuid.NewString(), access(obj{"policy_id": policyID, "approval": obj{"id": "ID"}})},
		{"POST", "/v1/policy/evaluate", policyID, uuid.NewString(), intent(obj{"policy_id": "ID"})},
		{"POST", "/v1/governance/authorize", policyID, uuid.NewString(), intent(obj{"policy_id": "ID"})},
	}
}

func TestDecision_Credentials_AnotherOrganizationsIsTheSame404AsMissing(t *testing.T) {
	h := start(t)
	covered := make(map[string]bool)
	for _, f := range h.foreignIDs() {
		malformed := f.missing
		if strings.Contains(f.path, "ID") {
			malformed = "not-an-id"
			covered[f.method+" "+f.path] = true
		}
		t.Run(f.method+" "+f.path, func(t *testing.T) {
			h.foreign(f, uuid.NewString()) // this fills every cache
			want, wantCalls := h.foreign(f, f.missing)
			if want.status != http.StatusNotFound {
				t.Fatalf("missing = %d %s, want 404", want.status, want.body)
			}
			for name, id := range map[string]string{"theirs": f.theirs, "malformed": malformed} {
				got, calls := h.foreign(f, id)
				if a, b := anonymous(got, id), anonymous(want, f.missing); a != b || got.status != want.status {
					t.Errorf("%s = %d %s, missing = %s, want the same", name, got.status, a, b)
				}
				if diff := cmp.Diff(comparable404(want), comparable404(got)); diff != "" {
					t.Errorf("headers (-missing +%s):\n%s", name, diff)
				}
				if diff := cmp.Diff(wantCalls, calls); diff != "" {
					t.Errorf("what the store is asked (-missing +%s):\n%s", name, diff)
				}
			}
		})
	}
	for _, rt := range h.server.routes() {
		if path := strings.Replace(rt.path, ":"+rt.param, "ID", 1); rt.param != "" && rt.scope != public && rt.method != http.MethodPut && !covered[rt.method+" "+path] { // a PUT makes what is missing
			t.Errorf("%s %s takes an id and is not in the table", rt.method, path)
		}
	}
}

// TestDecision_Credentials_FiltersFindNothingOfAnotherOrganization looks for another organization's rows by
// each id that they have. The other organization finds them so.
func TestDecision_Credentials_FiltersFindNothingOfAnotherOrganization(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	key, _ := h.key(rival, "policy:evaluate")
	session := h.session(rival, nil)
	ruleID := h.rule(rival, `{"resource":"held"}`, persons)
	body := in(session, intent(obj{"resource": "held"}))
	intentID := body["intent"].(obj)["intent_id"].(string)
	held := read[result](h.do("POST", "/v1/policy/evaluate", key, body).wantStatus(http.StatusOK)).DecisionID
	h.do("PATCH", "/v1/approvals/"+held, h.operator(rival), obj{"status": "approved"}).wantStatus(http.StatusOK)
	body["approval_id"] = held
	h.do("POST", "/v1/policy/evaluate", key, body).wantStatus(http.StatusOK)
	credential := h.history(rival)[0].Credential
	for _, query := range []string{
		"/v1/authorizations?intent_id=" + intentID, "/v1/authorizations?rule_id=" + ruleID, "/v1/authorizations?session_id=" + session,
		"/v1/authorizations?credential=" + url.QueryEscape(credential), "/v1/authorizations?approval_id=" + held, "/v1/approvals?intent_id=" + intentID,
	} {
		for org, want := range map[string]bool{rival: true, acme: false} {
			got := read[page[obj]](h.do("GET", query, h.operator(org), nil).wantStatus(http.StatusOK))
			if (len(got.Data) > 0) != want {
				t.Errorf("%s finds %d for %s, want some: %t", query, len(got.Data), org, want)
			}
		}
	}
	for org, want := range map[string]int64{rival: 1, acme: 0} {
		counted := read[countsAnswer](h.do("GET", "/v1/authorizations/counts?by=rule_id", h.operator(org), nil).wantStatus(http.StatusOK))
		n := int64(0)
		for _, at := range counted.Data {
			n += at.Counts[ruleID]
		}
		if n != want {
			t.Errorf("%s counts %d decisions of the rule, want %d", org, n, want)
		}
	}
	token := h.operator(acme)
	reader := h.stream(token, "?rule_id="+ruleID, "")
	h.do("POST", "/v1/policy/evaluate", key, in(session, intent(obj{"resource": "held"}))).wantStatus(http.StatusOK)
	all := h.stream(token, "", reader.id)
	ours := h.decideN(1)
	all.want(ours...) // and none of the other organization before
}

// foreign sends a request with id as an operator of acme. It returns the answer and the counts of
// the store calls. It leaves out Count, by which places of the meter also come back at any time.
func (h *harness) foreign(f foreignID, id string) (r *reply, calls map[string]int) {
	h.t.Helper()
	calls = h.store.during(func() {
		r = h.do(f.method, strings.Replace(f.path, "ID", id, 1), h.operator(acme), substitute(f.body, id))
	})
	delete(calls, "Count")
	return r, calls
}

// comparable404 returns the headers of r without the headers that always differ between two
// answers. Content-Length is left out, because it depends on the length of the caller's id.
func comparable404(r *reply) http.Header {
	h := r.header.Clone()
	for _, name := range []string{headerRequestID, "Date", "Ratelimit", "Content-Length"} {
		h.Del(name)
	}
	return h
}

// BenchmarkForeignIDs compares the median times of two kinds of 404: for an id of another
// organization and for an id that does not exist. Requests of the two kinds alternate, so that
// other load on the machine affects both kinds equally.
func BenchmarkForeignIDs(b *testing.B) {
	h := start(b, func(c *setup) { c.Service.Now = time.Now })
	h.clock.advance(time.Since(h.clock.Now()))
	operator := h.operator(acme)
	handler := h.server.app.Handler()
	for _, f := range h.foreignIDs() {
		b.Run(f.method+strings.ReplaceAll(f.path, "/", "_"), func(b *testing.B) {
			var took [2][]time.Duration
			var ctx [2]fasthttp.RequestCtx
			var body [2][]byte
			for i, id := range []string{f.missing, f.theirs} {
				data, err := json.Marshal(substitute(f.body, id))
				must(b, err)
				if f.body != nil {
					body[i] = data
				}
			}
			for b.Loop() {
				for i, id := range []string{f.missing, f.theirs} {
					prepare(&ctx[i], f.method, strings.Replace(f.path, "ID", id, 1), operator, body[i])
					began := time.Now()
					handler(&ctx[i])
					took[i] = append(took[i], time.Since(began))
					if ctx[i].Response.StatusCode() != http.StatusNotFound {
						b.Fatalf("%d %s", ctx[i].Response.StatusCode(), ctx[i].Response.Body())
					}
				}
			}
			for i, unit := range []string{"ns-missing", "ns-foreign"} {
				slices.Sort(took[i])
				b.ReportMetric(float64(took[i][len(took[i])/2]), unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func prepare(ctx *fasthttp.RequestCtx, method, path, token string, body []byte) {
	ctx.Request.Reset()
	ctx.Response.Reset()
	ctx.Request.Header.SetMethod(method)
	ctx.Request.SetRequestURI(path)
	ctx.Request.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		ctx.Request.Header.SetContentType(typeJSON)
		ctx.Request.SetBodyRaw(body)
	}
}
