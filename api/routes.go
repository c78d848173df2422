package api

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/gofiber/fiber/v2"
)

// route is one row of the table below.
type route struct {
	method, path string
	scope        scopeSet // what a credential must hold; public needs none
	handler      handler
	param        string // the name of the path's parameter, if it has one
	traits       trait
}

// trait is what sets a route apart from the others; routes can have several.
type trait uint8

const (
	signed      trait = 1 << iota // public, yet has a body, which a header signs and the handler authenticates by it
	anyQuery                      // does not look at the query: all others refuse the parameters that they don't know
	unlimited                     // no rate limit holds it; it is public
	urgent                        // takes no slot: however much waits, it is answered
	deciding                      // waits with the decisions, not with the work on documents
	stored                        // the body is stored as it is written, and refused if it holds a secret
	conditional                   // may name in If-Match the state that it is to change
	owned                         // a credential without the scope may ask for what is its own: the handler checks
)

func (rt *route) is(t trait) bool { return rt.traits&t != 0 }

// routes lists every route of the public address.
func (s *Server) routes() []route {
	return []route{
		static("/", s.site.landing),
		static("/openapi", s.site.viewer),
		static("/v1/docs", s.site.reference),
		static("/openapi.yaml", s.site.yaml),
		static("/openapi.json", s.site.json),
		static("/v1/openapi.yaml", s.site.yaml),
		static("/v1/openapi.json", s.site.json),
		get("/schemas/:kind.schema.json", public, s.schema, anyQuery),
		get("/health", public, s.health, anyQuery, unlimited),
		get("/.well-known/jwks.json", public, s.jwks),

		get("/v1/hosted/config", public, s.hostedConfig),

		post("/v1/policy/evaluate", scopeEvaluate, withDecoder(s.decodeEvaluate, s.evaluate), deciding),
		post(batchPath, scopeEvaluate, withDecoder(decodeBatch, s.evaluateBatch), deciding),
		post("/v1/governance/authorize", scopeEvaluate, withDecoder(s.decodeEvaluate, s.authorize), deciding),
		post("/v1/policy/simulate", scopeEvaluate, checked(s.simulate, s.checkSimulate)),

		post("/v1/policies/register", scopePolicyWrite, withDecoder(decodeRegister, s.registerPolicy), stored),
		get("/v1/policies", scopePolicyRead, listOf("policies", s.docs.ListPolicies, whole)),

		get("/v1/rules", scopeRulesRead, s.listRules),
		post("/v1/rules", scopeRulesWrite, withBody(s.createRule, s.checkNewRule), stored),
		patch("/v1/rules/:ruleId", scopeRulesWrite, withOptionalBody(s.updateRule, s.checkChange), stored, conditional),
		del("/v1/rules/:ruleId", scopeRulesWrite, s.deleteRule, urgent, conditional),

		get("/v1/lists", scopeRulesRead, listOf("lists", s.docs.ListLists, summarizeList)),
		get("/v1/lists/:name", scopeRulesRead, getOf("list", s.docs.List, whole)),
		put("/v1/lists/:name", scopeRulesWrite, checked(s.putList, checkList), stored, conditional),
		del("/v1/lists/:name", scopeRulesWrite, s.deleteList, conditional),

		get("/v1/tokens", scopeTokensRead, s.listTokens),
		post("/v1/tokens", scopeTokensWrite, withBody(s.createToken, checkNewToken), stored),
		del("/v1/tokens/:tokenId", scopeTokensWrite, s.revokeToken, urgent),

		get("/v1/agents", scopeAgentsRead, listOf("agents", s.docs.ListAgents, whole)),
		post("/v1/agents", scopeAgentsWrite, checked(s.createAgent, checkNewAgent), stored),
		patch("/v1/agents/:agentId/status", scopeAgentsWrite, checked(s.setAgentStatus, checkStatus), urgent),

		get("/v1/sessions", scopeAgentsRead, listOf("sessions", s.docs.ListSessions, whole)),
		get("/v1/sessions/:sessionId", scopeAgentsRead, getOf("session", s.session, whole)),
		post("/v1/sessions", scopeAgentsWrite, withBody(s.createSession, checkNewSession), stored),
		patch("/v1/sessions/:sessionId", scopeAgentsWrite, checked(s.closeSession, checkClose), urgent),

		get("/v1/authorizations", scopeHistoryRead, s.listAuthorizations),
		get("/v1/authorizations/export", scopeHistoryRead, s.exportAuthorizations),
		get("/v1/authorizations/:decisionId", scopeHistoryRead, s.authorization, owned),
		get("/v1/ledger/heads", scopeHistoryRead, s.listHeads),
		get("/v1/changes", scopeHistoryRead, s.listChanges),
		post("/v1/actions/record", scopeActionsRecord, checked(s.recordAction, func(_ *request, in *actionBody) error {
			return in.validate()
		})),

		get("/v1/webhooks", operatorOnly, listOf("webhooks", s.docs.ListWebhooks, summarizeWebhook)),
		post("/v1/webhooks", operatorOnly, checked(s.createWebhook, s.checkWebhook), stored),
		get("/v1/webhooks/:webhookId", operatorOnly, getOf("webhook", s.docs.Webhook, summarizeWebhook)),
		del("/v1/webhooks/:webhookId", operatorOnly, s.deleteWebhook, urgent),
		post("/v1/webhooks/:webhookId/rotate", operatorOnly, withOptionalBody(s.rotateWebhook, unchecked)),
		post("/v1/webhooks/:webhookId/test", operatorOnly, withOptionalBody(s.testWebhook, unchecked)),
		get("/v1/webhooks/:webhookId/deliveries", operatorOnly, s.listDeliveries),
		post("/v1/webhooks/:webhookId/replay", operatorOnly, checked(s.replayDelivery, checkReplay)),
		get("/v1/approvals", scopeApprovalsRead, s.listApprovals),
		get("/v1/approvals/:approvalId", scopeApprovalsRead, s.approval, owned),
		patch("/v1/approvals/:approvalId", scopeApprovalsDecide, checked(s.judgeApproval, checkRuling), urgent),

		get("/v1/usage/summary", scopeUsageRead, s.usageSummary),
		get("/v1/ops/usage", service, s.opsUsage),

		get("/v1/billing/subscription", scopeBillingRead, s.subscription),
		post("/v1/billing/checkout", scopeBillingWrite, withBody(s.checkout, checkPlan)),
		post("/v1/billing/portal", scopeBillingWrite, withOptionalBody(s.billingPortal, unchecked)),
		post("/v1/billing/webhook", public, s.billingWebhook, signed),
	}
}

func get(path string, scope scopeSet, h handler, traits ...trait) route {
	return newRoute(http.MethodGet, path, scope, h, traits)
}

func post(path string, scope scopeSet, h handler, traits ...trait) route {
	return newRoute(http.MethodPost, path, scope, h, traits)
}

func put(path string, scope scopeSet, h handler, traits ...trait) route {
	return newRoute(http.MethodPut, path, scope, h, traits)
}

func patch(path string, scope scopeSet, h handler, traits ...trait) route {
	return newRoute(http.MethodPatch, path, scope, h, traits)
}

func del(path string, scope scopeSet, h handler, traits ...trait) route {
	return newRoute(http.MethodDelete, path, scope, h, traits)
}

// static is a document that stays the same. Whoever links to it may add a query.
func static(path string, d document) route {
	return get(path, public, func(*request) (response, error) { return answerOK(d), nil }, anyQuery)
}

func newRoute(method, path string, scope scopeSet, h handler, traits []trait) route {
	r := route{method: method, path: path, scope: scope, handler: h}
	if _, after, ok := strings.Cut(path, ":"); ok {
		r.param = after[:len(after)-len(strings.TrimLeftFunc(after, unicode.IsLetter))]
	}
	for _, t := range traits {
		r.traits |= t
	}
	return r
}

// assetRoutes lists the files that the pages are made of, which are no part of the
// interface and may change with any release.
func (s *Server) assetRoutes() []route {
	var all []route
	for path, d := range s.site.assets {
		all = append(all, static(path, d))
	}
	return all
}

// mount adds the routes to app. A GET route answers HEAD too.
func (s *Server) mount(app *fiber.App) {
	for _, rt := range append(s.routes(), s.assetRoutes()...) {
		if rt.method == http.MethodGet {
			app.Get(rt.path, s.serve(rt))
		} else {
			app.Add(rt.method, rt.path, s.serve(rt))
		}
	}
}
