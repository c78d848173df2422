package api

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ/engine"
)

func TestAgents_LifeCycle(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	var made engine.Agent
	h.do("POST", "/v1/agents", op, obj{"name": "Deploy bot", "externalId": "team-a/ci"}).wantStatus(http.StatusCreated).into(&made)
	want := engine.Agent{
		ID: made.ID, Name: "Deploy bot", ExternalID: "team-a/ci", Status: engine.AgentActive,
		CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now(),
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	h.clock.advance(time.Minute)
	want.Status, want.UpdatedAt = engine.AgentDisabled, h.clock.Now()
	for _, id := range []string{made.ID, url.PathEscape("team-a/ci")} {
		var got engine.Agent
		h.do("PATCH", "/v1/agents/"+id+"/status", op, obj{"status": "disabled"}).wantStatus(http.StatusOK).into(&got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("PATCH %s (-want +got):\n%s", id, diff)
		}
	}
	var list page[engine.Agent]
	h.do("GET", "/v1/agents", op, nil).wantStatus(http.StatusOK).into(&list)
	if diff := cmp.Diff([]engine.Agent{want}, list.Data); diff != "" {
		t.Errorf("GET (-want +got):\n%s", diff)
	}
}

func TestAgents_Invalid(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	var made engine.Agent
	h.do("POST", "/v1/agents", op, obj{"name": "a", "externalId": "ext"}).wantStatus(http.StatusCreated).into(&made)
	for name, tc := range map[string]struct {
		body  any
		field string
	}{
		"no name":                     {obj{}, "name"},
		"empty externalId":            {obj{"name": "n", "externalId": ""}, "externalId"},
		"null externalId":             {obj{"name": "n", "externalId": nil}, "externalId"},
		"externalId taken":            {obj{"name": "n", "externalId": "ext"}, "externalId"},
		"externalId is another's id":  {obj{"name": "n", "externalId": made.ID}, "externalId"},
		"long externalId":             {obj{"name": "n", "externalId": strings.Repeat("e", 257)}, "externalId"},
		"externalId of 257 bytes":     {obj{"name": "n", "externalId": strings.Repeat("é", 128) + "e"}, "externalId"},
		"externalId with U+200B":      {obj{"name": "n", "externalId": "c\u200bi"}, "externalId"},
		"externalId with U+202E":      {obj{"name": "n", "externalId": "c\u202ei"}, "externalId"},
		"externalId with space":       {obj{"name": "n", "externalId": "ci "}, "externalId"},
		"client-chosen status":        {obj{"name": "n", "status": "disabled"}, "status"},
		"externalId in another style": {obj{"name": "n", "external_id": "x"}, "external_id"},
	} {
		t.Run(name, func(t *testing.T) { h.do("POST", "/v1/agents", op, tc.body).wantField(tc.field) })
	}
	for _, body := range []any{obj{}, obj{"status": "off"}, obj{"status": "Active"}, obj{"status": ""}, obj{"status": nil}, ""} {
		h.do("PATCH", "/v1/agents/"+made.ID+"/status", op, body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	}
	for _, id := range []string{"nope", "%00", "%ff", "a%2Fb", strings.Repeat("x", 600)} {
		h.do("PATCH", "/v1/agents/"+id+"/status", op, obj{"status": "active"}).status404(t, id)
	}
	h.do("POST", "/v1/agents", h.operator(rival), obj{"name": "n", "externalId": "ext"}).wantStatus(http.StatusCreated)
}

func (r *reply) status404(t testing.TB, id string) {
	t.Helper()
	if r.status != http.StatusNotFound {
		t.Errorf("agent %.20q = %d %s, want 404", id, r.status, r.body)
	}
}

func TestDecision_Plans_AgentsAreLimited(t *testing.T) {
	h := start(t)
	for range 5 {
		h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "n"}).wantStatus(http.StatusCreated)
	}
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "n"}).wantProblem(http.StatusForbidden, codePlanLimit)
}
