package api

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

// madeUp has the format of a real token. The literal is split in two, so that secret scanners
// ignore this file.
const madeUp = "gh" + "p_9fKq2LmX7wZb4Rt8Yv1Nc6Hd3Jg5Ps0Aq2We"

func TestStored_DocumentsWithASecretAreRefused(t *testing.T) {
	h := start(t)
	token := h.operator(acme)
	rule := func(field, value string) obj {
		o := obj{"name": "r", "condition": `{}`, "action": `{"decision":"deny","reason":"no"}`}
		o[field] = value
		return o
	}
	policy := func(field string, value any) obj {
		return obj{"policy": policy(acme, obj{field: value})}
	}
	tests := map[string]struct {
		path   string
		body   obj
		fields []string
	}{
		"policy":             {"/v1/policies/register", policy("blocked_resource_patterns", []string{"a", "https://h/" + madeUp}), []string{"policy.blocked_resource_patterns[1]"}},
		"policy's agent":     {"/v1/policies/register", policy("agent_id", "bot/"+madeUp), []string{"policy.agent_id"}},
		"unknown member":     {"/v1/policies/register", obj{madeUp: 1}, []string{"[redacted:github-pat]"}},
		"rule's name":        {"/v1/rules", rule("name", madeUp), []string{"name"}},
		"rule's description": {"/v1/rules", rule("description", "see "+madeUp), []string{"description"}},
		"match object":       {"/v1/rules", rule("condition", `{"metadata.a":{"$in":["x","`+madeUp+`"]}}`), []string{"condition.metadata.a.$in[1]"}},
		"escaped":            {"/v1/rules", rule("condition", `{"metadata.a":"\u0067`+madeUp[1:]+`"}`), []string{"condition.metadata.a"}},
		"cel":                {"/v1/rules", rule("condition", `{"cel":"intent.resource == '`+madeUp+`'"}`), []string{"condition.cel"}},
		"reason":             {"/v1/rules", rule("action", `{"decision":"deny","reason":"`+madeUp+`"}`), []string{"action.reason"}},
		"two fields":         {"/v1/agents", obj{"name": madeUp, "externalId": "a:" + madeUp + "@h"}, []string{"externalId", "name"}},
		"base64":             {"/v1/agents", obj{"name": "ci " + base64.StdEncoding.EncodeToString([]byte(madeUp))}, []string{"name"}},
		"hexadecimal":        {"/v1/agents", obj{"name": "ci " + hex.EncodeToString([]byte(madeUp))}, []string{"name"}},
		"token's name":       {"/v1/tokens", obj{"name": "of " + madeUp}, []string{"name"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := h.do("POST", test.path, token, test.body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
			var fields []string
			for _, f := range p.Errors {
				fields = append(fields, f.Field)
				if strings.Contains(f.Message, madeUp) || !strings.Contains(f.Message, "looks like a secret (") {
					t.Errorf("the message of %s is %q", f.Field, f.Message)
				}
			}
			slices.Sort(fields)
			if !slices.Equal(fields, test.fields) {
				t.Errorf("fields = %q, want %q", fields, test.fields)
			}
		})
	}
}

// TestStored_DocumentsMayNameSomebody checks that a document may contain an e-mail address or a
// card number. "Documents that hold a secret are 400", but these are not secrets.
func TestStored_DocumentsMayNameSomebody(t *testing.T) {
	h := start(t)
	token := h.operator(acme)
	for _, id := range []string{"bob@acme.example", "4111111111111111", "*@customers.example"} {
		h.register(acme, obj{
			"policy_id": uuid.NewString(), "agent_id": id,
			"allowed_resource_patterns": []string{id, "mailto:" + id}, "blocked_resource_patterns": []string{"https://h.example/users/" + id},
		})
		h.do("POST", "/v1/rules", token, obj{
			"name": "of " + id, "description": "asks " + id, "condition": `{"agent_id":"` + id + `"}`, "action": `{"decision":"deny","reason":"ask ` + id + `"}`,
		}).wantStatus(http.StatusCreated)
		h.do("POST", "/v1/agents", token, obj{"name": id, "externalId": id}).wantStatus(http.StatusCreated)
		h.do("POST", "/v1/tokens", token, obj{"name": "of " + id}).wantStatus(http.StatusCreated)
	}
	got := string(h.do("GET", "/v1/agents", token, nil).wantStatus(http.StatusOK).body)
	if !strings.Contains(got, `"externalId":"bob@acme.example"`) {
		t.Errorf("the agents = %s, want them as they were written", got)
	}
}

// TestStored_WhatOnlyLooksLikeASecretIsKept checks that texts which only resemble secrets are
// stored, both in documents and in intents.
func TestStored_WhatOnlyLooksLikeASecretIsKept(t *testing.T) {
	h := start(t)
	token := h.operator(acme)
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	texts := []string{
		"git@github.com:org/repo", "npm:left-pad@1.3.0", "docker.io/library/alpine@" + digest, "alpine:3.19@" + digest,
		"s3://assets/logo@2x.png", "arn:aws:iam::123456789012:role/deployer", "https://h.example/commit/8ade135a41bc03ea155e62e844d188df1ea18608",
	}
	patterns := append([]string{"https://h.example/list?page_token=CAUQAA0123456789abcd", "https://h.example/chat?max_tokens=4096"}, texts...)
	h.register(acme, obj{"agent_id": "*", "allowed_resource_patterns": []string{"**"}, "blocked_resource_patterns": patterns})
	for _, text := range append(patterns, "ssh://git@host.example/x") {
		h.do("POST", "/v1/rules", token, obj{
			"name": text, "description": "about " + text, "condition": `{"cel":"intent.resource == '` + text + `'"}`,
			"action": `{"decision":"deny","reason":"` + text + `"}`,
		}).wantStatus(http.StatusCreated)
	}
	h.do("POST", "/v1/agents", token, obj{"name": texts[0], "externalId": texts[1]}).wantStatus(http.StatusCreated)
	h.do("POST", "/v1/tokens", token, obj{"name": texts[2]}).wantStatus(http.StatusCreated)
	for _, text := range texts {
		h.evaluate(acme, intent(obj{"resource": text})).wantStatus(http.StatusOK)
	}
	got := string(h.do("GET", "/v1/authorizations", token, nil).wantStatus(http.StatusOK).body)
	for _, text := range texts {
		if !strings.Contains(got, `"resource":"`+text+`"`) {
			t.Errorf("the history lacks the resource %s", text)
		}
	}
}

func TestDecision_Audit_HistoryIsFoundByWhatTheIntentSaid(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.evaluate(acme, intent(obj{"agent_id": "bot/" + madeUp})).wantStatus(http.StatusOK)
	got := string(h.do("GET", "/v1/authorizations?agent_id=bot/"+madeUp, h.operator(acme), nil).wantStatus(http.StatusOK).body)
	if !strings.Contains(got, `"agent_id":"bot/[github-pat:`) || strings.Contains(got, madeUp) {
		t.Errorf("the history of the agent = %s, want its row, scrubbed", got)
	}
}

// TestDecision_Audit_WhatLooksLikeATagIsRefused checks that an id in the form of a tag is refused
// before anything is decided. Such an id could be mistaken for the tag of somebody else's id. A
// resource is refused even if only its stored form looks like a tag.
func TestDecision_Audit_WhatLooksLikeATagIsRefused(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.evaluate(acme, intent(obj{"agent_id": "bob@acme.example"})).wantStatus(http.StatusOK)
	var page struct {
		Data []storage.Record `json:"data"`
	}
	h.do("GET", "/v1/authorizations?agent_id=bob@acme.example", h.operator(acme), nil).wantStatus(http.StatusOK).into(&page)
	if len(page.Data) != 1 || !strings.HasPrefix(page.Data[0].AgentID, "[email-address:") {
		t.Fatalf("the rows of bob = %v, want one with a tag", page.Data)
	}
	tag := page.Data[0].AgentID
	for name, test := range map[string]struct {
		fields obj
		want   []string
	}{
		"agent":            {obj{"agent_id": tag}, []string{"intent.agent_id"}},
		"within an agent":  {obj{"agent_id": "x/" + tag + "/y"}, []string{"intent.agent_id"}},
		"resource":         {obj{"resource": "users/" + tag}, []string{"intent.resource"}},
		"address":          {obj{"resource": "mailto:" + tag}, []string{"intent.resource"}},
		"both":             {obj{"agent_id": tag, "resource": "users/" + tag}, []string{"intent.agent_id", "intent.resource"}},
		"and another flaw": {obj{"agent_id": tag, "issued_at": "now"}, []string{"intent.agent_id", "intent.issued_at"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.evaluate(acme, intent(test.fields)).wantProblem(http.StatusBadRequest, codeInvalidRequest)
			var fields []string
			for _, f := range p.Errors {
				fields = append(fields, f.Field)
			}
			slices.Sort(fields)
			if !slices.Equal(fields, test.want) {
				t.Errorf("fields = %q, want %q", fields, test.want)
			}
		})
	}
	h.do("GET", "/v1/authorizations?agent_id="+url.QueryEscape(tag), h.operator(acme), nil).wantStatus(http.StatusOK).into(&page)
	if len(page.Data) != 1 {
		t.Errorf("the rows that show %s = %d, want bob's alone", tag, len(page.Data))
	}
	h.evaluate(acme, intent(obj{"agent_id": "private[0]", "resource": "users/[redacted:email-address]"})).wantStatus(http.StatusOK)
}

func TestDecision_Record_SecretInAReferenceIsReplaced(t *testing.T) {
	h := start(t)
	h.register(acme)
	decided := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	body := obj{"decision_id": decided.DecisionID, "outcome": "executed", "external_ref": "of " + madeUp}
	for range 2 { // a repeat gets the same answer
		row := read[storage.Record](h.do("POST", "/v1/actions/record", h.operator(acme), body).wantStatus(http.StatusOK))
		if got, want := row.Settlement.ExternalRef, "of [redacted:github-pat]"; got != want {
			t.Errorf("external_ref = %q, want %q", got, want)
		}
	}
}

func TestMetrics_NoLabelIsOfTheCallers(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.evaluate(acme, intent(obj{"agent_id": "bot-marker", "action_type": "marker", "resource": "marker"}))
	h.do("GET", "/marker?marker=marker", "marker", nil, headerRequestID, "marker", "User-Agent", "marker")
	h.do("PATCH", "/v1/rules/marker", h.operator(acme), obj{"name": "marker"})
	families, err := h.server.cfg.Registry.Gather()
	must(t, err)
	for _, f := range families {
		if text := f.String(); strings.Contains(text, "marker") || strings.Contains(text, `"`+acme+`"`) {
			t.Errorf("a label is of the caller's: %s", text)
		}
	}
}

// TestStored_TheAnswerDoesNotOutgrowTheBody sends a body with many secrets, deeply nested under
// long names. The answer must stay small. The search must not build the path of every value: all
// paths together would need gigabytes.
func TestStored_TheAnswerDoesNotOutgrowTheBody(t *testing.T) {
	h := start(t)
	const depth = 2000
	body := strings.Repeat(`{"`+strings.Repeat("n", 40)+`":`, depth) +
		"[" + strings.Repeat(`"`+madeUp+`",`, 1000) + "0]" + strings.Repeat("}", depth)
	r := h.do("POST", "/v1/rules", h.operator(acme), body)
	p := r.wantProblem(http.StatusBadRequest, codeInvalidRequest)
	if len(p.Errors) != condition.MaxMistakes || len(r.body) > 32<<10 {
		t.Errorf("%d fields in %d bytes, want %d in a few kilobytes", len(p.Errors), len(r.body), condition.MaxMistakes)
	}
	if got := len(p.Errors[0].Field); got > condition.MaxLabel+len("…") {
		t.Errorf("the name of a field has %d bytes, want at most %d", got, condition.MaxLabel)
	}
}
