package api

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/gofiber/fiber/v2"

	"writ.example/writ/engine"
)

// route is one row of the table in routes.
type route struct {
	method, path string
	scope        scopeSet // the scopes that a credential must hold; public means that no credential is needed
	handler      handler
	param        string // the name of the parameter in the path, or empty
	traits       trait
}

// trait is a special property of a route. A route can have several traits.
type trait uint16

const (
	signed      trait = 1 << iota // needs no credential, but the handler verifies a header that signs the body
	anyQuery                      // accepts any query; all other routes refuse unknown parameters
	unlimited                     // needs no credential, and no rate limit applies
	urgent                        // takes no slot, so that it is answered even under overload
	deciding                      // waits in the queue of decisions, not in the queue of other work
	stored                        // stores the body unchanged, and refuses a body with a secret
	queried                       // has a handler that reads the query, although it is no GET
	conditional                   // accepts If-Match and If-None-Match
	resumable                     // accepts Last-Event-ID
	wide                          // is about the whole organization; a key that is bound to agents may not call it
	standard                      // is of AuthZEN, which echoes any request id and has its own statuses
	upgrades                      // may become a stream of intents
	owned                         // without the scope, a credential gets only the resources that it asked for itself
)

func (rt *route) is(t trait) bool { return rt.traits&t != 0 }

// routes lists every route of the public address.
func (s *Server) routes() []route {
	return []route{
		static("/", s.site.landing),
		static("/openapi", s.site.viewer),
		static("/v1/docs", s.site.reference),
		on("GET /docs", public, s.manualIndex),
		on("GET /docs/:page", public, s.manualPage),
		static("/openapi.yaml", s.site.yaml),
		static("/openapi.json", s.site.json),
		static("/v1/openapi.yaml", s.site.yaml),
		static("/v1/openapi.json", s.site.json),
		on("GET /schemas/:kind.schema.json", public, s.schema, anyQuery),
		on("GET /health", public, s.health, anyQuery, unlimited),
		on("GET /.well-known/jwks.json", public, s.jwks),

		on("GET /v1/hosted/config", public, s.hostedConfig),

		on("POST /v1/policy/evaluate", scopeEvaluate, withDecoder(s.decodeEvaluate, s.evaluate), deciding),
		on("GET "+evaluateStreamPath, scopeEvaluate, s.evaluateStream, upgrades),
		on("POST "+evaluateStreamPath, scopeEvaluate, s.evaluateStream, upgrades, queried),
		on("POST "+batchPath, scopeEvaluate, withDecoder(decodeBatch, s.evaluateBatch), deciding),
		on("POST /v1/governance/authorize", scopeEvaluate, withDecoder(s.decodeEvaluate, s.authorize), deciding),
		on("POST /v1/hooks/claude", scopeEvaluate, s.hookClaude, deciding, queried),
		on("POST "+evaluationPath, scopeEvaluate, s.accessEvaluation, deciding, standard),
		on("POST "+evaluationsPath, scopeEvaluate, s.accessEvaluations, deciding, standard),
		on("POST "+requestsPath, scopeApprovalsRead, s.requestAccess, standard, owned),
		on("GET "+requestsPath+"/:taskId", scopeApprovalsRead, s.accessTask, owned),
		on("GET /.well-known/authzen-configuration", public, s.accessConfiguration),
		on("POST /v1/policy/simulate", scopeEvaluate, withBody(s.simulate, s.checkSimulate)),

		on("POST /v1/policies/register", scopePolicyWrite, withDecoder(decodeRegister, s.registerPolicy), stored),
		on("GET /v1/policies", scopePolicyRead, s.listPolicies),
		on("GET /v1/policies/:policyId", scopePolicyRead, s.policyVersions),

		on("GET /v1/rules", scopeRulesRead, s.listRules),
		on("GET /v1/rules/:ruleId", scopeRulesRead, s.readRule),
		on("GET /v1/rules/:ruleId/revisions", scopeRulesRead,
			revisionsOf("rule", s.docs.RuleRevisions, asStored[*engine.Rule])),
		on("POST /v1/rules", scopeRulesWrite, withDecoder(decoding(s.checkNewRule), s.createRule), stored),
		on("PATCH /v1/rules/:ruleId", scopeRulesWrite, withDecoder(s.decodeChange, s.updateRule), stored, conditional),
		on("DELETE /v1/rules/:ruleId", scopeRulesWrite, s.deleteRule, urgent, conditional),

		on("GET /v1/lists", scopeRulesRead, listOf("lists", s.docs.ListLists, summarizeList)),
		on("GET /v1/lists/:name", scopeRulesRead, revisedOf("list", s.docs.List, s.docs.ListAt, changedList)),
		on("GET /v1/lists/:name/revisions", scopeRulesRead, revisionsOf("list", s.docs.ListRevisions, summarizeList)),
		on("PUT /v1/lists/:name", scopeRulesWrite, withBody(s.putList, checkList), stored, conditional),
		on("DELETE /v1/lists/:name", scopeRulesWrite, s.deleteList, conditional),

		on("GET /v1/libraries", scopeRulesRead, listOf("libraries", s.docs.ListLibraries, summarizeLibrary)),
		on("GET /v1/libraries/:name", scopeRulesRead,
			revisedOf("library", s.docs.Library, s.docs.LibraryAt, changedLibrary)),
		on("GET /v1/libraries/:name/revisions", scopeRulesRead,
			revisionsOf("library", s.docs.LibraryRevisions, summarizeLibrary)),
		on("PUT /v1/libraries/:name", scopeRulesWrite, withBody(s.putLibrary, checkLibrary), stored, conditional),
		on("DELETE /v1/libraries/:name", scopeRulesWrite, s.deleteLibrary, conditional),

		on("GET /v1/credential", anyCredential, s.credential),
		on("GET /v1/tokens", scopeTokensRead, s.listTokens),
		on("POST /v1/tokens", scopeTokensWrite, withBody(s.createToken, checkNewToken), stored),
		on("DELETE /v1/tokens/:tokenId", scopeTokensWrite, s.revokeToken, urgent),

		on("GET /v1/agents", scopeAgentsRead, listOf("agents", s.docs.ListAgents, asStored)),
		on("GET /v1/agents/:agentId", scopeAgentsRead, documentOf("agent", s.docs.Agent, changedAgent)),
		on("POST /v1/agents", scopeAgentsWrite, withBody(s.createAgent, checkNewAgent), stored),
		on("PATCH /v1/agents/:agentId/status", scopeAgentsWrite, withBody(s.setAgentStatus, checkStatus), urgent),

		on("GET /v1/sessions", scopeAgentsRead, listOf("sessions", s.docs.ListSessions, asStored)),
		on("GET /v1/sessions/:sessionId", scopeAgentsRead, getOf("session", s.session, asStored)),
		on("POST /v1/sessions", scopeSessionsWrite, withBody(s.createSession, checkNewSession), stored),
		on("PATCH /v1/sessions/:sessionId", scopeSessionsWrite, withBody(s.closeSession, checkClose), urgent),

		on("GET /v1/organization/status", scopeAgentsWrite, s.organizationStatus, wide),
		on("PATCH /v1/organization/status", scopeAgentsWrite,
			withBody(s.setOrganizationStatus, checkOrganizationStatus), urgent, wide),

		on("GET /v1/organization/export", operatorOnly, s.exportOrganization),

		on("GET /v1/authorizations", scopeHistoryRead, s.listAuthorizations),
		on("GET /v1/authorizations/export", scopeHistoryRead, s.exportAuthorizations),
		on("GET /v1/authorizations/stream", scopeHistoryRead, s.streamAuthorizations, resumable),
		on("GET /v1/authorizations/counts", scopeHistoryRead, s.counts),
		on("GET /v1/authorizations/:decisionId", scopeHistoryRead, s.authorization, owned),
		on("GET /v1/ledger/heads", scopeHistoryRead, s.listHeads, wide),
		on("GET /v1/changes", scopeHistoryRead, s.listChanges, wide),
		on("POST /v1/actions/record", scopeActionsRecord, withBody(s.recordAction, checkAction)),

		on("GET /v1/webhooks", operatorOnly, listOf("webhooks", s.docs.ListWebhooks, summarizeWebhook)),
		on("POST /v1/webhooks", operatorOnly, withBody(s.createWebhook, s.checkWebhook), stored),
		on("GET /v1/webhooks/:webhookId", operatorOnly, getOf("webhook", s.docs.Webhook, summarizeWebhook)),
		on("DELETE /v1/webhooks/:webhookId", operatorOnly, s.deleteWebhook, urgent),
		on("POST /v1/webhooks/:webhookId/rotate", operatorOnly, withoutBody(s.rotateWebhook)),
		on("POST /v1/webhooks/:webhookId/test", operatorOnly, withoutBody(s.testWebhook)),
		on("GET /v1/webhooks/:webhookId/deliveries", operatorOnly, s.listDeliveries),
		on("POST /v1/webhooks/:webhookId/replay", operatorOnly, withBody(s.replayDelivery, checkReplay)),
		on("GET /v1/approvals", scopeApprovalsRead, s.listApprovals),
		on("GET /v1/approvals/:approvalId", scopeApprovalsRead, s.approval, owned),
		on("PATCH /v1/approvals/:approvalId", scopeApprovalsDecide, withBody(s.judgeApproval, checkRuling), urgent),

		on("GET /v1/usage/summary", scopeUsageRead, s.usageSummary),
		on("GET /v1/ops/usage", service, s.opsUsage),

		on("GET /v1/billing/subscription", scopeBillingRead, s.subscription),
		on("POST /v1/billing/checkout", scopeBillingWrite, withDecoder(decoding(checkPlan), s.checkout)),
		on("POST /v1/billing/portal", scopeBillingWrite, withoutBody(s.billingPortal)),
		on("POST /v1/billing/webhook", public, s.billingWebhook, signed),
	}
}

// static returns the route of a fixed body. It accepts any query.
func static(path string, d fixed) route {
	return on("GET "+path, public, func(r *request) error { return r.ok(d) }, anyQuery)
}

// on returns the route of a pattern such as "GET /v1/lists/:name".
func on(pattern string, scope scopeSet, h handler, traits ...trait) route {
	method, path, _ := strings.Cut(pattern, " ")
	r := route{method: method, path: path, scope: scope, handler: h}
	if _, after, ok := strings.Cut(path, ":"); ok {
		r.param = after[:len(after)-len(strings.TrimLeftFunc(after, unicode.IsLetter))]
	}
	for _, t := range traits {
		r.traits |= t
	}
	return r
}

// assetRoutes lists the routes of the files that the pages use. These files are not part of the
// interface and may change with any release.
func (s *Server) assetRoutes() []route {
	var all []route
	for path, d := range s.site.assets {
		all = append(all, static(path, d))
	}
	return all
}

// mount adds the routes to app. A GET route also answers HEAD.
func (s *Server) mount(app *fiber.App) {
	for _, rt := range append(s.routes(), s.assetRoutes()...) {
		if rt.method == http.MethodGet {
			app.Get(rt.path, s.serve(rt))
		} else {
			app.Add(rt.method, rt.path, s.serve(rt))
		}
	}
	s.mountConsole(app)
}
