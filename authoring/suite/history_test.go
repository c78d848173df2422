package suite

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/go-json-experiment/json"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// FuzzHistory_HostileServer makes suites of whatever a server answers. If there are suites, then
// each has the server's policy and a test for each decision, and the text has no control character:
// no answer can begin a document of its own, end a comment or write to the terminal.
func FuzzHistory_HostileServer(f *testing.F) {
	const (
		policy = `{"policy_id":"0c0ffee0-0000-4000-8000-000000000001","version":1,"organization_id":"acme","agent_id":"*",` +
			`"allowed_action_types":["x"],"status":"active","updated_at":"2026-11-01T09:00:00Z"}`
		rule   = `{"id":"0c0ffee0-0000-4000-8000-000000000002","name":"n","condition":"{}","action":"{\"decision\":\"deny\"}","isActive":true}`
		record = `{"decision_id":"0c0ffee0-0000-4000-8000-000000000003","intent_id":"0c0ffee0-0000-4000-8000-000000000004",` +
			`"policy_id":"0c0ffee0-0000-4000-8000-000000000001","policy_version":1,"agent_id":"bot","action_type":"x","resource":"r",` +
			`"issued_at":"2026-11-01T09:00:00Z","decision":"deny","reasons":["rule.deny: no"],"metadata_keys":["KEY"]}`
	)
	for _, key := range []string{"team", `a\n---\nsuite: b`, `\u001b[2J`, `\u2028tests: []`, `\u0085- {}`, `\r\nx: y`, `a\n  decision-2: {}`, `\u007f`, `\ufeff`} {
		f.Add(policy, rule, strings.ReplaceAll(record, "KEY", key))
		f.Add(policy, strings.ReplaceAll(rule, `"n"`, `"`+key+`"`), record)
		f.Add(strings.ReplaceAll(policy, `"*"`, `"`+key+`"`), rule, record)
		f.Add(policy, rule, strings.ReplaceAll(record, `"bot"`, `"`+key+`"`))
		f.Add(policy, rule, strings.ReplaceAll(record, "rule.deny: no", "rule.deny: "+key))
	}
	f.Add(policy, strings.ReplaceAll(rule, `"{}"`, `"{}\n\n---\nsuite: b"`), record)
	f.Fuzz(func(t *testing.T, policy, rule, record string) {
		var (
			p engine.ActionPolicy
			r engine.Rule
			d storage.Record
		)
		if errors.Join(json.Unmarshal([]byte(policy), &p), json.Unmarshal([]byte(rule), &r),
			json.Unmarshal([]byte(record), &d)) != nil {
			t.Skip("the client refuses it")
		}
		h, err := NewHistory([]*engine.ActionPolicy{&p}, []engine.Rule{r})
		if err != nil {
			return
		}
		h.Take(&d)
		text, err := h.Format()
		if err != nil || h.Taken == 0 {
			return
		}
		if i := strings.IndexFunc(string(text), func(c rune) bool { return c != '\n' && unicode.IsControl(c) }); i >= 0 {
			t.Fatalf("the suite has a control character at %d:\n%q", i, text)
		}
		docs, err := document.Parse("history_test.yaml", text)
		if err != nil || len(docs) != 1 || docs[0].Kind != document.Suite {
			t.Fatalf("Parse = %d documents, %v, want one suite:\n%s", len(docs), err, text)
		}
		var got struct {
			Policy engine.ActionPolicy `json:"policy"`
			Rules  []any               `json:"rules"`
			Tests  []any               `json:"tests"`
			Given  map[string]any      `json:"intents"`
		}
		if err := json.Unmarshal(docs[0].JSON(), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Policy, p) || len(got.Rules) != 1 || len(got.Tests) != 1 || len(got.Given) != 1 {
			t.Fatalf("the suite has the policy %+v, %d rules, %d intents and %d tests, want %+v and one of each:\n%s",
				got.Policy, len(got.Rules), len(got.Given), len(got.Tests), p, text)
		}
	})
}
