package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

func TestAgents_LifeCycle(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	made := read[engine.Agent](h.do("POST", "/v1/agents", op, obj{"name": "Deploy bot", "externalId": "team-a/ci"}).wantStatus(http.StatusCreated))
	want := engine.Agent{
		ID: made.ID, Name: "Deploy bot", ExternalID: "team-a/ci", Status: engine.AgentActive,
		CreatedAt: h.clock.Now(), UpdatedAt: h.clock.Now(),
	}
	same(t, "created", want, made)
	h.clock.advance(time.Minute)
	want.Status, want.UpdatedAt = engine.AgentDisabled, h.clock.Now()
	for _, id := range []string{made.ID, url.PathEscape("team-a/ci")} {
		got := read[engine.Agent](h.do("PATCH", "/v1/agents/"+id+"/status", op, obj{"status": "disabled"}).wantStatus(http.StatusOK))
		same(t, fmt.Sprintf("PATCH %s", id), want, got)
	}
	list := read[page[engine.Agent]](h.do("GET", "/v1/agents", op, nil).wantStatus(http.StatusOK))
	same(t, "GET", []engine.Agent{want}, list.Data)
}

func TestAgents_Invalid(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	made := read[engine.Agent](h.do("POST", "/v1/agents", op, obj{"name": "a", "externalId": "ext"}).wantStatus(http.StatusCreated))
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

// TestDecision_Evaluation_ANewAgentWhoseIDEqualsAnothersAfterFoldingIs400 checks "New agents whose id or external id
// equals another's after folding are 400."
func TestDecision_Evaluation_ANewAgentWhoseIDEqualsAnothersAfterFoldingIs400(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	first := read[engine.Agent](h.do("POST", "/v1/agents", op, obj{"name": "a", "externalId": "Straße/ci"}).wantStatus(http.StatusCreated))
	for _, id := range []string{"Straße/ci", "STRASSE/CI", "strasse/ci", "ｓtraße/ci", "Straße／ci", strings.ToUpper(first.ID)} {
		h.do("POST", "/v1/agents", op, obj{"name": "b", "externalId": id}).wantField("externalId")
	}
	h.do("POST", "/v1/agents", h.operator(rival), obj{"name": "b", "externalId": "STRASSE/CI"}).wantStatus(http.StatusCreated)

	names := []string{"bot", "BOT", "Bot", "ｂｏｔ", "bOT", "ＢＯＴ", "boT", "BoT"}
	var made atomic.Int32
	var racers sync.WaitGroup
	for _, name := range names {
		racers.Go(func() {
			r := h.do("POST", "/v1/agents", op, obj{"name": "racer", "externalId": name})
			if r.status == http.StatusCreated {
				made.Add(1)
			} else {
				r.wantField("externalId")
			}
		})
	}
	racers.Wait()
	if made.Load() != 1 {
		t.Errorf("%d of %d registrations of one folded id were made, want 1", made.Load(), len(names))
	}
}

// TestDecision_Evaluation_DisabledAgentsDoNotCountTowardsThePlansLimit checks "Disabled agents do not count towards the
// plan's limit, up to ten times it, so that there is always room for a switch."
func TestDecision_Evaluation_DisabledAgentsDoNotCountTowardsThePlansLimit(t *testing.T) {
	h := start(t)
	op := h.operator(acme)
	create := func() (a engine.Agent) {
		h.do("POST", "/v1/agents", op, obj{"name": "n"}).wantStatus(http.StatusCreated).into(&a)
		return a
	}
	set := func(a engine.Agent, status string) *reply {
		return h.do("PATCH", "/v1/agents/"+a.ID+"/status", op, obj{"status": status})
	}
	used := func() int64 {
		usage := read[usageBody](h.do("GET", "/v1/usage/summary", op, nil).wantStatus(http.StatusOK))
		return usage.Meters.Agents.Used
	}
	var all []engine.Agent
	for range 5 {
		all = append(all, create())
	}
	h.do("POST", "/v1/agents", op, obj{"name": "n"}).wantProblem(http.StatusForbidden, codePlanLimit)
	set(all[0], "disabled").wantStatus(http.StatusOK)
	if got := used(); got != 4 {
		t.Errorf("agents used = %d, want 4: one is disabled", got)
	}
	rogue := create() // leaves one place for the switch
	set(all[0], "active").wantProblem(http.StatusForbidden, codePlanLimit)
	set(rogue, "disabled").wantStatus(http.StatusOK)
	set(all[0], "active").wantStatus(http.StatusOK)
	h.store.fail("Subscription", storage.ErrUnavailable)
	set(all[1], "disabled").wantStatus(http.StatusOK) // disabling must work without this read
}

func TestDecision_Plans_AgentsAreLimited(t *testing.T) {
	h := start(t)
	for range 5 {
		h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "n"}).wantStatus(http.StatusCreated)
	}
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "n"}).wantProblem(http.StatusForbidden, codePlanLimit)
}
