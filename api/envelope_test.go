package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
)

func TestEnvelope_ADocumentWithoutItIsToldSo(t *testing.T) {
	h := start(t)
	for name, tc := range map[string]struct {
		path, want string
		body       any
	}{
		"a policy":       {"/v1/policies/register", `belongs inside "policy": send {"policy": {"`, policy(acme)},
		"half a policy":  {"/v1/policies/register", `{"policy": {"status": …`, `{"status":"active"}`},
		"an intent":      {"/v1/policy/evaluate", `belongs inside "intent": send {"intent": {"`, intent()["intent"]},
		"to authorize":   {"/v1/governance/authorize", `belongs inside "intent"`, intent()["intent"]},
		"something else": {"/v1/policy/evaluate", "unknown field: did you mean intent?", `{"intend":{}}`},
		"a member below": {"/v1/policy/evaluate", "unknown field: want one of intent_id, ", `{"intent":{"version":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.do("POST", tc.path, h.operator(acme), tc.body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
			if !slices.ContainsFunc(p.Errors, func(f engine.FieldError) bool { return strings.Contains(f.Message, tc.want) }) {
				t.Errorf("errors = %v, want one that says %s", p.Errors, tc.want)
			}
		})
	}
}
