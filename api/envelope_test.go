package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ/engine"
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
		"something else": {"/v1/policy/evaluate", "unknown field: want one of policy_id, intent", `{"intend":{}}`},
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

func TestEnvelope_KnowsEveryMember(t *testing.T) {
	members := func(of reflect.Type, but ...string) (names []string) {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if of.Field(i).IsExported() && !of.Field(i).Anonymous && !slices.Contains(but, name) {
				names = append(names, name)
			}
		}
		return names
	}
	if diff := cmp.Diff(members(reflect.TypeFor[engine.ActionPolicy]()), policyEnvelope().members); diff != "" {
		t.Errorf("a policy's members (-are +known):\n%s", diff)
	}
	// The body of an evaluation has a policy_id of its own.
	if diff := cmp.Diff(members(reflect.TypeFor[engine.Intent](), "policy_id"), intentEnvelope().members); diff != "" {
		t.Errorf("an intent's members (-are +known):\n%s", diff)
	}
}
