package api

import (
	"net/http"
	"strings"
	"testing"

	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"writ.example/writ/rego"
)

// examplesOf returns the examples of a body by name.
func examplesOf(t *testing.T, media *v3.MediaType) map[string]any {
	t.Helper()
	all := map[string]any{}
	decode := func(name string, node interface{ Decode(any) error }) {
		var value any
		must(t, node.Decode(&value))
		all[name] = value
	}
	if media.Example != nil {
		decode("example", media.Example)
	}
	for name, e := range media.Examples.FromOldest() {
		decode(name, e.Value)
	}
	return all
}

// TestContract_EverythingHasAnExample checks that the document has an example of each body.
func TestContract_EverythingHasAnExample(t *testing.T) {
	missing := func(where string, content *orderedmap.Map[string, *v3.MediaType]) {
		for kind, media := range content.FromOldest() {
			json := kind == typeJSON || kind == typeProblem
			if json && media.Example == nil && media.Examples.Len() == 0 && !strings.Contains(where, "openapi.json") {
				t.Errorf("%s: %s has no example", where, kind)
			}
		}
	}
	for path, item := range mustContract(t).model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if op.RequestBody != nil {
				missing(method+" "+path, op.RequestBody.Content)
			}
			for status, response := range op.Responses.Codes.FromOldest() {
				missing(method+" "+path+" "+status, response.Content)
			}
		}
	}
}

// TestContract_ExampleRequestsAreAccepted sends every example of a request body to a server. That
// server has all documents to which the examples refer.
func TestContract_ExampleRequestsAreAccepted(t *testing.T) {
	const org = "demo"
	h := start(t, selling(&seller{}), func(c *setup) { c.Service.CompileRego = rego.CompileCondition })
	h.register(acme) // the samples are acme's
	h.register(org, obj{
		"policy_id": "0c0ffee0-0000-4000-8000-000000000003", "agent_id": "release-bot", "allowed_action_types": []string{"deploy.*"},
	})
	sent := 0
	send := func(rt route) {
		for name, body := range h.examples(rt) {
			path, made := h.sample(rt)
			sample, _ := made.(obj)
			token := h.operator(org)
			if rt.param != "" {
				token = h.operator(acme)
			}
			if decided, ok := sample["decision_id"]; ok {
				token = h.operator(acme)
				body.(obj)["decision_id"] = decided
			}
			if denial, ok := sample["denial"]; ok {
				token = h.operator(acme)
				body.(obj)["denial"] = denial
			}
			if message, ok := sample["message_id"]; ok {
				body.(obj)["message_id"] = message
			}
			if rt.path == "/v1/hooks/claude" { // its policy and agent are the key's
				token = read[tokenSecret](h.do("POST", "/v1/tokens", token, obj{
					"name": "hook", "scopes": []string{"policy:evaluate", "facts:assert"},
					"policy_id": "0c0ffee0-0000-4000-8000-000000000003", "agent_id": "release-bot",
				})).Token
			}
			if rt.path == "/v1/libraries/:name" {
				path = "/v1/libraries/net" // the package in the example
			}
			if r := h.do(rt.method, path, token, body, headerSignature, "t=1,v1=0"); r.status >= 300 {
				t.Errorf("example %q of %s = %d %s, want it accepted", name, r.what, r.status, r.body)
			}
			sent++
		}
	}
	routes := h.server.routes()
	for _, rt := range routes { // one route registers the policy that the intents name
		if rt.path == "/v1/policies/register" {
			send(rt)
		}
	}
	for _, rt := range routes {
		send(rt)
	}
	if sent < 12 {
		t.Errorf("sent %d examples, want all", sent)
	}
}

// examples returns the examples of the request body of rt.
func (h *harness) examples(rt route) map[string]any {
	t := h.t.(*testing.T)
	item := mustContract(t).model.Paths.PathItems.GetOrZero(strings.Replace(rt.path, ":"+rt.param, "{"+rt.param+"}", 1))
	op := item.GetOperations().GetOrZero(strings.ToLower(rt.method))
	if rt.method == http.MethodGet || op.RequestBody == nil {
		return nil
	}
	media, ok := op.RequestBody.Content.Get(typeJSON)
	if !ok {
		return nil // the lines of a stream
	}
	return examplesOf(t, media)
}
