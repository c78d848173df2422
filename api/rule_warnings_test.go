package api

import (
	"net/http"
	"strings"
	"testing"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
)

// kindsOf returns the fields and the kinds of warnings.
func kindsOf(warnings []lint.Warning) string {
	var kinds []string
	for _, w := range warnings {
		kinds = append(kinds, w.Field+" "+w.Rule)
	}
	return strings.Join(kinds, ", ")
}

// TestRules_Warnings checks that each answer with a stored rule has its warnings, when the rule is created,
// changed, read and listed.
func TestRules_Warnings(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	const echoing = "package mail\n\nmatch if input.intent.metadata.to == \"x\"\n\nreason contains sprintf(\"%s is a stranger\", [input.intent.metadata.to])"
	const quiet = "package mail\n\nmatch if input.intent.action_type == \"x\"\n\nreason contains \"a stranger\""
	type answer struct {
		engine.Rule
		Warnings []lint.Warning `json:"warnings"`
	}
	wants := func(what string, got []lint.Warning, want string) {
		t.Helper()
		if kindsOf(got) != want {
			t.Errorf("%s warns of %q, want %q", what, kindsOf(got), want)
		}
		for _, w := range got {
			if w.Message == "" || w.Instead == "" {
				t.Errorf("%s has a warning without a message: %+v", what, w)
			}
		}
	}
	const echoes = "condition echoes-metadata"
	got := read[answer](h.do("POST", "/v1/rules", op, denying(t, echoing)).wantStatus(http.StatusCreated))
	wants("POST", got.Warnings, echoes)
	path := "/v1/rules/" + got.ID
	wants("GET", read[answer](h.do("GET", path, op, nil).wantStatus(http.StatusOK)).Warnings, echoes)
	wants("PATCH of another member", read[answer](h.do("PATCH", path, op, obj{"priority": 7}).wantStatus(http.StatusOK)).Warnings, echoes)
	other := read[answer](h.do("POST", "/v1/rules", op, obj{"name": "n", "condition": `{"issued_at":{"$gt":"2026-01-01T00:00:00Z"}}`, "action": `{"decision":"deny"}`}).wantStatus(http.StatusCreated))
	wants("POST", other.Warnings, "condition caller-time")
	listed := read[[]answer](h.do("GET", "/v1/rules?warnings=true", op, nil).wantStatus(http.StatusOK))
	if len(listed) != 2 {
		t.Fatalf("GET /v1/rules has %d rules, want 2", len(listed))
	}
	wants("the list", append(listed[0].Warnings, listed[1].Warnings...), "condition caller-time, "+echoes)
	for _, query := range []string{"", "?warnings=false"} {
		if body := h.do("GET", "/v1/rules"+query, op, nil).wantStatus(http.StatusOK).body; strings.Contains(string(body), "warnings") {
			t.Errorf("the list %q has warnings: %s", query, body)
		}
	}
	h.do("GET", "/v1/rules?warnings=yes", op, nil).wantField("warnings")
	pages := h.visit(op)
	pages.get("/console/rules").want(http.StatusOK, "echoes-metadata").want(http.StatusOK, "caller-time")
	pages.get("/console/rules/"+got.ID).want(http.StatusOK, "so it is left out of the reasons")
	wants("PATCH of the condition", read[answer](h.do("PATCH", path, op, denying(t, quiet)).wantStatus(http.StatusOK)).Warnings, "")
	if page := pages.get("/console/rules/" + got.ID).want(http.StatusOK); strings.Contains(page.body, "Warnings") {
		t.Error("the page of a rule without warnings has the heading")
	}
	if body := h.do("GET", path, op, nil).wantStatus(http.StatusOK).body; strings.Contains(string(body), "warnings") {
		t.Errorf("a rule without warnings has the member: %s", body)
	}
}

// TestLibraries_Warnings checks that storing a library warns of the rules that import it.
func TestLibraries_Warnings(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	type answer struct {
		Warnings []lint.Warning `json:"warnings"`
	}
	put := func(source string, status int) []lint.Warning {
		t.Helper()
		return read[answer](h.do("PUT", "/v1/libraries/text", op, module("text", source)).wantStatus(status)).Warnings
	}
	if w := put(`of(i) := i.action_type`, http.StatusCreated); len(w) > 0 {
		t.Errorf("a library that no rule imports warns of %+v", w)
	}
	rule := denying(t, "package team\n\nimport data.lib.text\n\nmatch if input.intent.resource == \"x\"\n\nreason contains text.of(input.intent)")
	id := read[engine.Rule](h.do("POST", "/v1/rules", op, rule).wantStatus(http.StatusCreated)).ID
	w := put(`of(i) := i.metadata.to`, http.StatusOK)
	if kindsOf(w) != "modules echoes-metadata" || !strings.Contains(w[0].Message, id) {
		t.Errorf("a library through which a reason echoes metadata warns of %+v, want the rule %s", w, id)
	}
}
