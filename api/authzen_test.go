package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"writ.example/writ/storage/ledger"
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
		AccessRequestEndpoint:     "https://pdp.example.com/access/v1/requests",
		Capabilities:              []string{"urn:openid:authzen:capability:access-request"},
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

// TestAuthZEN_Todo has the cases of the working group's Todo scenario.
func TestAuthZEN_Todo(t *testing.T) {
	const beth, morty, summer, jerry = "user/CiRmZDM2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs",
		"user/CiRmZDE2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs",
		"user/CiRmZDI2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs",
		"user/CiRmZDQ2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs"
	h := start(t)
	h.register(acme, obj{"agent_id": "user/*", "allowed_resource_patterns": []string{"user/*", "todo/*"}, "allowed_action_types": []string{
		"can_read_user", "can_read_todos", "can_create_todo", "can_update_todo", "can_delete_todo",
	}})
	h.rule(acme, `{"agent_id":{"$in":["`+beth+`","`+jerry+`"]},"action_type":{"$in":["can_create_todo","can_update_todo","can_delete_todo"]}}`,
		`{"decision":"deny","reason":"viewers read"}`)
	for editor, email := range map[string]string{morty: "morty@the-citadel.com", summer: "summer@the-smiths.com"} {
		h.rule(acme, `{"agent_id":"`+editor+`","action_type":{"$in":["can_update_todo","can_delete_todo"]},"metadata.resource.ownerID":{"$ne":"`+
			email+`"}}`, `{"decision":"deny","reason":"editors change what is theirs"}`)
	}
	key := h.enforcer(acme, policyID)
	var todo map[string]jsontext.Value
	must(t, json.Unmarshal(readFile(t, "testdata/authzen/todo.json"), &todo))
	n := 0
	for _, path := range []string{evaluationPath, evaluationsPath} {
		var cases []struct{ Request, Expected jsontext.Value }
		must(t, json.Unmarshal(todo[strings.TrimPrefix(path, "/access/v1/")], &cases, json.MatchCaseInsensitiveNames(true)))
		for _, tc := range cases {
			n++
			answer := read[map[string]jsontext.Value](h.do("POST", path, key, []byte(tc.Request)).wantStatus(http.StatusOK))
			got := answer["decision"]
			if path == evaluationsPath { // the runner compares the whole array
				got = answer["evaluations"]
			}
			must(t, tc.Expected.Compact())
			if string(got) != string(tc.Expected) {
				t.Errorf("%s %s = %s, want %s", path, tc.Request, got, tc.Expected)
			}
		}
	}
	if n != 43 {
		t.Errorf("ran %d cases, want 43", n)
	}
}

// TestAuthZEN_Hostile sends bodies that no honest client sends. None may be decided in another way than it reads.
func TestAuthZEN_Hostile(t *testing.T) {
	h := start(t)
	key := h.accessKey(acme)
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	long := strings.Repeat("x", 5000)
	many := make([]string, 65)
	for i := range many {
		many[i] = `"k` + uuid.NewString() + `":1`
	}
	for name, body := range map[string]string{
		"not an object":           `[]`,
		"null":                    `null`,
		"a member twice":          object(bob, alice, reads, record1),
		"a property twice":        object(`"subject":{"type":"user","id":"bob","properties":{"role":"x","role":"admin"}}`, writes, archived),
		"an entity is null":       object(`"subject":null`, reads, record1),
		"properties are an array": object(`"subject":{"type":"user","id":"bob","properties":[]}`, reads, record1),
		"context is a text":       object(alice, reads, record1, `"context":"x"`),
		"context is null":         object(alice, reads, record1, `"context":null`),
		"a slash in the type":     object(`"subject":{"type":"user/alice","id":"x"}`, reads, record1),
		"an empty id":             object(`"subject":{"type":"user","id":""}`, reads, record1),
		"an invisible id":         object(`"subject":{"type":"user","id":"ali\u200bce"}`, reads, record1),
		"broken UTF-8":            object("\"subject\":{\"type\":\"user\",\"id\":\"\xff\"}", reads, record1),
		"a lone surrogate":        object(`"subject":{"type":"user","id":"\ud800"}`, reads, record1),
		"an intent id":            object(alice, reads, record1, `"context":{"intent_id":"1"}`),
		"an approval":             object(alice, reads, record1, `"context":{"approval":true}`),
		"an approval without id":  object(alice, reads, record1, `"context":{"approval":{}}`),
		"depth":                   object(alice, reads, record1, `"context":{"x":`+deep+`}`),
		"length":                  object(alice, reads, record1, `"context":{"x":"`+long+`"}`),
		"number":                  object(alice, reads, record1, `"context":{`+strings.Join(many, ",")+`}`),
		"two documents":           object(alice, reads, record1) + object(alice, reads, record1),
	} {
		for _, path := range []string{evaluationPath, evaluationsPath} {
			if r := h.do("POST", path, key, body); r.status != http.StatusBadRequest {
				t.Errorf("%s: %s = %d %.300s, want 400", name, path, r.status, r.body)
			}
		}
	}
	for name, body := range map[string]string{
		"evaluations": object(alice, reads, record1, `"evaluations":{}`),
		"an item":     object(alice, reads, record1, `"evaluations":[1]`),
		"options":     object(alice, reads, record1, `"options":1,"evaluations":[{}]`),
		"a semantic":  object(alice, reads, record1, `"options":{"evaluations_semantic":"any"},"evaluations":[{}]`),
		"too many":    object(alice, reads, record1, `"evaluations":[{}`+strings.Repeat(",{}", maxBatch)+`]`),
		"null":        object(alice, reads, record1, `"evaluations":null`),
	} {
		if r := h.do("POST", evaluationsPath, key, body); r.status != http.StatusBadRequest {
			t.Errorf("%s = %d %s, want 400", name, r.status, r.body)
		}
	}
	h.wantRows(acme, 0)
	// An error of an item names the item's members, and permits nothing.
	r := h.do("POST", evaluationsPath, key, object(alice, reads, `"evaluations":[{"resource":{"type":"record"}},{"resource":null},{"context":{"policy_id":"`+
		uuid.NewString()+`"},`+record1+`}]`)).wantStatus(http.StatusOK)
	if got := decisions(t, r); got != "FFF" || !bytes.Contains(r.body, []byte(`"field":"resource.id"`)) || !bytes.Contains(r.body, []byte(codePolicyNotBound)) {
		t.Errorf("%s %s", got, r.body)
	}
}

// TestAuthZEN_Semantics holds that a batch that stops decides nothing behind the item that it stops at.
func TestAuthZEN_Semantics(t *testing.T) {
	h := start(t)
	key := h.accessKey(acme)
	items := `"evaluations":[{` + alice + `},{` + bob + `},{` + alice + `}]`
	rows := 0
	for semantic, want := range map[string]string{executeAll: "TFT", stopAtDeny: "TF", stopAtPermit: "T"} {
		r := h.do("POST", evaluationsPath, key, object(writes, record1, items, `"options":{"evaluations_semantic":"`+semantic+`","context":true}`))
		if got := decisions(t, r.wantStatus(http.StatusOK)); got != want {
			t.Errorf("%s = %s, want %s", semantic, got, want)
		}
		if n := bytes.Count(r.body, []byte(`"receipt":`)); n != len(want) {
			t.Errorf("%s: %d receipts, want %d: %s", semantic, n, len(want), r.body)
		}
		rows += len(want)
	}
	h.wantRows(acme, rows)
}

// TestAuthZEN_Repeated holds that an intent_id makes an evaluation one intent, for as long as its receipt holds.
func TestAuthZEN_Repeated(t *testing.T) {
	h := start(t)
	key := h.accessKey(acme)
	id := uuid.NewString()
	of := func(record string) string {
		return object(alice, reads, record, `"context":{"b":{"y":1,"x":[2, 3]},"intent_id":"`+id+`"}`)
	}
	first := h.do("POST", evaluationPath, key, of(record1)).wantStatus(http.StatusOK)
	h.clock.advance(time.Second)
	again := h.do("POST", evaluationPath, key, strings.Replace(of(record1), `{"y":1,"x":[2, 3]}`, `{"x":[2,3], "y":1}`, 1)).wantStatus(http.StatusOK)
	if !bytes.Equal(first.body, again.body) {
		t.Errorf("again = %s, want %s", again.body, first.body)
	}
	h.do("POST", evaluationPath, key, of(active)).wantProblem(http.StatusConflict, codeIntentConflict)
	h.clock.advance(time.Hour)
	if got := decisions(t, h.do("POST", evaluationPath, key, of(record1)).wantStatus(http.StatusOK)); got != "F" {
		t.Errorf("an allow whose receipt has expired = %s, want F", got)
	}
	h.wantRows(acme, 1)
}

// FuzzReadAccess holds that a body which is read as an intent says who, what and on what, and reads the same again.
func FuzzReadAccess(f *testing.F) {
	for _, body := range []string{object(alice, reads, record1), object(admin, writes, archived, `"context":{"x":[1,{"b":null,"a":2}]}`),
		object(alice, reads, record1, `"context":{"approval":{"id":"`+policyID+`"},"intent_id":"`+policyID+`"},"options":{},"evaluations":[{}]`),
		`{"subject":{"type":"a/b","id":"c"}}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := readAccess(data)
		if err != nil {
			return
		}
		if batch, err := body.batch(); err == nil && len(batch.items) > maxBatch {
			t.Errorf("%d items", len(batch.items))
		}
		in, err := body.intent()
		if err != nil {
			return
		}
		again, err := body.intent()
		if err != nil || ledger.IntentDigest(in.Intent) != ledger.IntentDigest(again.Intent) {
			t.Errorf("read again it is %+v, %v, not %+v", again, err, in)
		}
		subjectType, id, ok := strings.Cut(in.Intent.AgentID, "/")
		if !ok || subjectType == "" || id == "" || in.Intent.ActionType == "" || in.Intent.Resource == "" {
			t.Errorf("%s is the intent %+v", data, in.Intent)
		}
	})
}
