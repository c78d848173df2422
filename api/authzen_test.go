package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"
)

// certification is the shipped example of the certification scenario.
const certification = "../examples/authzen/certification/"

// accessKey makes the certification scenario's policy and rules in an organization, and a key that is bound to the
// policy.
func (h *harness) accessKey(org string) (key string) {
	h.t.Helper()
	var p obj
	must(h.t, yaml.Unmarshal(readFile(h.t, certification+"policy.yaml"), &p))
	p["organization_id"] = org
	h.do("POST", "/v1/policies/register", h.operator(org), obj{"policy": p}).wantStatus(http.StatusCreated)
	rules := yaml.NewDecoder(bytes.NewReader(readFile(h.t, certification+"rules.yaml")))
	n := 0
	for ; ; n++ {
		var rule obj
		err := rules.Decode(&rule)
		if errors.Is(err, io.EOF) {
			break
		}
		must(h.t, err)
		for _, name := range []string{"condition", "action"} {
			text, err := json.Marshal(rule[name])
			must(h.t, err)
			rule[name] = string(text)
		}
		h.do("POST", "/v1/rules", h.operator(org), rule).wantStatus(http.StatusCreated)
	}
	if n != 3 {
		h.t.Fatalf("the example has %d rules, want 3", n)
	}
	return h.enforcer(org, p["policy_id"].(string))
}

// enforcer makes a key that is bound to a policy, or to none.
func (h *harness) enforcer(org, policyID string) (key string) {
	h.t.Helper()
	body := obj{"name": "pep", "scopes": []string{"policy:evaluate"}}
	if policyID != "" {
		body["policy_id"] = policyID
	}
	return read[tokenSecret](h.do("POST", "/v1/tokens", h.operator(org), body).wantStatus(http.StatusCreated)).Token
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return data
}

// The entities of the certification scenario.
const (
	alice    = `"subject":{"type":"user","id":"alice"}`
	bob      = `"subject":{"type":"user","id":"bob"}`
	reads    = `"action":{"name":"read"}`
	writes   = `"action":{"name":"write"}`
	record1  = `"resource":{"type":"record","id":"record-1"}`
	active   = `"resource":{"type":"record","id":"record-1","properties":{"status":"active"}}`
	archived = `"resource":{"type":"record","id":"record-2","properties":{"status":"archived"}}`
	admin    = `"subject":{"type":"user","id":"bob","properties":{"role":"admin"}}`
)

func object(members ...string) string { return "{" + strings.Join(members, ",") + "}" }

// TestAuthZEN_Certification has the cases of the working group's certification scenario that send a body: openid/authzen,
// certification/authorization-api-1_0-scenario.md at e287920. Its section is the name of a case. want is the decisions
// of a 200: T and F, or ? where the scenario leaves a decision open.
func TestAuthZEN_Certification(t *testing.T) {
	h := start(t)
	key := h.accessKey(acme)
	for _, tc := range []struct {
		section, path, body string
		status              int
		want                string
	}{
		{"1.4 rule 1", evaluationPath, object(alice, reads, record1), 200, "T"},
		{"1.4 rule 2", evaluationPath, object(alice, writes, record1), 200, "T"},
		{"1.4 rule 3", evaluationPath, object(bob, reads, record1), 200, "T"},
		{"1.4 rule 4", evaluationPath, object(bob, writes, record1), 200, "F"},
		{"2.2.1", evaluationPath, object(alice, reads, record1), 200, "T"},
		{"2.2.2", evaluationPath, object(bob, writes, record1), 200, "F"},
		{"2.2.3", evaluationPath, object(alice, reads, record1, `"context":{"time":"2025-06-27T18:03-07:00","ip":"192.168.1.1"}`), 200, "T"},
		{"2.2.4 rule 5", evaluationPath, object(alice, writes, archived), 200, "F"},
		{"2.2.5 rule 6", evaluationPath, object(admin, writes, archived), 200, "T"},
		{"2.2.6 rule 7", evaluationPath, object(alice, `"action":{"name":"delete","properties":{"soft":true}}`, record1), 200, "T"},
		{"2.2.7 rule 8", evaluationPath, object(alice, `"action":{"name":"delete","properties":{"soft":false}}`, record1), 200, "F"},
		{"2.2.8", evaluationPath, `{"subject":{"type":"user","id":"alice","properties":{"department":"Sales","role":"manager"}},
			"action":{"name":"read","properties":{"method":"GET"}},
			"resource":{"type":"record","id":"record-1","properties":{"status":"active","owner":"bob"}}}`, 200, "T"},
		{"2.2.9", evaluationPath, object(alice, reads, record1, `"foo":"bar","futureField":{"nested":true}`), 200, "T"},
		{"2.4.1 no subject", evaluationPath, object(reads, record1), 400, ""},
		{"2.4.1 no action", evaluationPath, object(alice, record1), 400, ""},
		{"2.4.1 no resource", evaluationPath, object(alice, reads), 400, ""},
		{"2.4.2 no subject.type", evaluationPath, object(`"subject":{"id":"alice"}`, reads, record1), 400, ""},
		{"2.4.2 no subject.id", evaluationPath, object(`"subject":{"type":"user"}`, reads, record1), 400, ""},
		{"2.4.2 no action.name", evaluationPath, object(alice, `"action":{}`, record1), 400, ""},
		{"2.4.2 no resource.type", evaluationPath, object(alice, reads, `"resource":{"id":"record-1"}`), 400, ""},
		{"2.4.2 no resource.id", evaluationPath, object(alice, reads, `"resource":{"type":"record"}`), 400, ""},
		{"2.4.4", evaluationPath, `{"subject":`, 400, ""},
		{"2.4.5", evaluationPath, ``, 400, ""},
		{"2.4.6 subject", evaluationPath, object(`"subject":"alice"`, reads, record1), 400, ""},
		{"2.4.6 action.name", evaluationPath, object(alice, `"action":{"name":123}`, record1), 400, ""},
		{"2.6 first", evaluationPath, object(alice, reads, record1), 200, "T"},
		{"2.6 second", evaluationPath, object(alice, reads, record1), 200, "T"},
		{"2.6 third", evaluationPath, object(alice, reads, record1), 200, "T"},
		{"3.2.1", evaluationsPath, object(alice, reads, `"evaluations":[{`+record1+`},{"resource":{"type":"record","id":"record-2"}}]`), 200, "T?"},
		{"3.2.2", evaluationsPath, object(bob, record1, `"evaluations":[{`+reads+`},{`+writes+`}]`), 200, "TF"},
		{"3.2.3", evaluationsPath, object(alice, writes, `"evaluations":[{`+active+`},{`+archived+`}]`), 200, "TF"},
		{"3.2.4", evaluationsPath, object(writes, archived, `"evaluations":[{`+alice+`},{`+admin+`}]`), 200, "FT"},
		{"3.2.5", evaluationsPath, object(`"evaluations":[` + object(alice, reads, record1) + "," + object(bob, writes, record1) + `]`), 200, "TF"},
		{"3.2.6", evaluationsPath, object(alice, reads, `"context":{"time":"2025-06-27T18:03-07:00"}`, `"evaluations":[{`+record1+`},
			{"resource":{"type":"record","id":"record-2"},"context":{"time":"2025-06-27T19:00-07:00","source":"batch-override"}}]`), 200, "??"},
		{"3.2.7", evaluationsPath, object(alice, writes, active, `"evaluations":[{},{`+archived+`}]`), 200, "TF"},
		{"3.4.1", evaluationsPath, object(alice, reads, `"options":{"evaluations_semantic":"execute_all"}`, `"evaluations":[{`+record1+`},{}]`), 200, "TF"},
		{"3.4.2", evaluationsPath, object(alice, reads, record1), 200, "T"},
		{"3.4.3", evaluationsPath, object(alice, reads, record1, `"evaluations":[]`), 200, "T"},
	} {
		id := "id"
		if tc.status == http.StatusOK {
			id = strings.Repeat("any <id>, ", 30) + tc.section
		}
		r := h.do("POST", tc.path, key, tc.body, headerRequestID, id)
		if got := r.header.Get(headerRequestID); got != id { // 2.5.1
			t.Errorf("%s: X-Request-ID = %q, want %q", tc.section, got, id)
		}
		if r.status != tc.status {
			t.Errorf("%s = %d %s, want %d", tc.section, r.status, r.body, tc.status)
			continue
		}
		if tc.status != http.StatusOK {
			continue
		}
		if got := decisions(t, r); !agree(got, tc.want) {
			t.Errorf("%s = %s %s, want %s", tc.section, got, r.body, tc.want)
		}
		if r.header.Get("Content-Type") != typeJSON { // 5
			t.Errorf("%s: Content-Type = %q", tc.section, r.header.Get("Content-Type"))
		}
	}
	body := object(alice, reads, record1)
	for _, contentType := range []string{"text/plain", "application/xml", "application/x-www-form-urlencoded"} { // 2.4.3
		h.do("POST", evaluationPath, key, body, "Content-Type", contentType).wantProblem(http.StatusBadRequest, codeInvalidRequest)
	}
	r := h.do("POST", evaluationPath, key, body).wantStatus(http.StatusOK) // 2.5.2
	if r.header.Get(headerRequestID) == "" {
		t.Error("a request without X-Request-ID got none")
	}
}

// decisions returns the decisions of an answer, T or F for each.
func decisions(t *testing.T, r *reply) (all string) {
	t.Helper()
	a := read[struct {
		Decision    jsontext.Value `json:"decision"`
		Evaluations []struct {
			Decision jsontext.Value `json:"decision"`
		} `json:"evaluations"`
	}](r)
	values := []jsontext.Value{a.Decision}
	if a.Evaluations != nil {
		if values = nil; a.Decision != nil {
			t.Errorf("%s has a decision beside evaluations: %s", r.what, r.body)
		}
		for _, e := range a.Evaluations {
			values = append(values, e.Decision)
		}
	}
	for _, v := range values {
		all += map[string]string{"true": "T", "false": "F"}[string(v)]
	}
	return all
}

func agree(got, want string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if want[i] != '?' && got[i] != want[i] {
			return false
		}
	}
	return true
}

// TestAuthZEN_Discovery has the scenario's cases of discovery. Without an https URL there is no metadata, and clients
// use the paths of the standard.
func TestAuthZEN_Discovery(t *testing.T) {
	const path = "/.well-known/authzen-configuration"
	h := start(t, func(c *setup) { c.Hosted.APIURL = "https://pdp.example.com/" })
	r := h.do("GET", path, "", nil).wantStatus(http.StatusOK)
	if r.header.Get("Content-Type") != typeJSON {
		t.Errorf("Content-Type = %q", r.header.Get("Content-Type"))
	}
	same(t, "the metadata", accessConfiguration{
		PolicyDecisionPoint:       "https://pdp.example.com",
		AccessEvaluationEndpoint:  "https://pdp.example.com/access/v1/evaluation",
		AccessEvaluationsEndpoint: "https://pdp.example.com/access/v1/evaluations",
	}, read[accessConfiguration](r))
	start(t).do("GET", path, "", nil).wantProblem(http.StatusNotFound, codeNotFound)
}

// TestAuthZEN_Policy holds which policy decides: the key's, otherwise the context's.
func TestAuthZEN_Policy(t *testing.T) {
	h := start(t)
	key := h.accessKey(acme)
	const of = "0c0ffee0-0000-4000-8000-0000000000b1"
	free := h.enforcer(acme, "")
	under := func(id string) string { return object(alice, reads, record1, `"context":{"policy_id":"`+id+`"}`) }
	h.do("POST", evaluationPath, free, object(alice, reads, record1)).wantField("context.policy_id")
	h.do("POST", evaluationPath, free, under("x")).wantField("context.policy_id")
	h.do("POST", evaluationPath, free, under(uuid.NewString())).wantProblem(http.StatusNotFound, "policy_not_found")
	h.do("POST", evaluationPath, key, under(uuid.NewString())).wantProblem(http.StatusForbidden, codePolicyNotBound)
	for _, k := range []string{free, key} {
		for _, id := range []string{of, strings.ToUpper(of)} {
			if got := decisions(t, h.do("POST", evaluationPath, k, under(id)).wantStatus(http.StatusOK)); got != "T" {
				t.Errorf("under %s: %s, want T", id, got)
			}
		}
	}
	h.do("POST", evaluationPath, h.accessKey(rival), under(of)).wantStatus(http.StatusOK)
	h.do("POST", evaluationPath, "", under(of)).wantProblem(http.StatusUnauthorized, codeUnauthorized)
	none, _ := h.key(acme, "history:read")
	h.do("POST", evaluationPath, none, under(of)).wantProblem(http.StatusForbidden, codeInsufficientScope)
}
