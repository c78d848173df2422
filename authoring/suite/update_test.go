package suite

import (
	"strings"
	"testing"
	"testing/fstest"

	"writ.example/writ/internal/must"
)

// policyText is a policy that allows reading. rulesText has rules with two different outcomes.
const policyText = `policy_id: 0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10
version: 1
organization_id: demo
agent_id: bot
allowed_action_types: [db.read, db.write]
denied_action_types: [db.drop]
blocked_resource_patterns: ["db://prod/**"]
max_cost_minor: 100
status: active
updated_at: 2026-11-01T09:00:00Z
`

const rulesText = `name: Writes wait
condition: {all: [{field: action_type, op: eq, value: db.write}, {field: metadata.env, op: eq, value: prod}]}
action: {decision: approval_required, reason: somebody looks}
priority: 20
isActive: true
---
id: low
name: Windows
condition: {cel: "intent.metadata.window == 'freeze' || intent.agent_id == 'x'"}
action: {decision: deny}
priority: 10
isActive: true
`

const head = `policy: p.yaml
now: 2026-11-02T10:00:00Z
intents: {read: {agent_id: bot, action_type: db.read, resource: "db://stage/a"}}
`

// loaderOf returns a loader that reads files from a map. The map also gets the policy and the
// rules.
func loaderOf(files map[string]string) *Loader {
	all := fstest.MapFS{"p.yaml": {Data: []byte(policyText)}, "r.yaml": {Data: []byte(rulesText)}}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return &Loader{ReadFile: all.ReadFile, Glob: all.Glob}
}

func TestUpdate_KeepsCommentsAndLayout(t *testing.T) {
	const before = head + `tests:
  # the first
  - name: "é, and flow"    # here
    intent: read
    want: deny   # wrong
    codes: [ action.denied ,  policy.allowed ] # wrong, too
  - name: block
    intent: read
    set: {action_type: db.drop, resource: "db://prod/x"}
    want: 'allow'

  - name: table
    intent: read
    table:
      columns: [ action_type, want ]
      rows:
        - [ db.read,  deny  ]
        - [ db.write, allow ]
  - {name: alike, intent: read, each: {action_type: [db.x, db.y]}, want: allow}
  - {name: not alike, intent: read, each: {action_type: [db.x, db.read]}, want: approval_required}
  - {name: right, intent: read, want: allow, codes: [policy.allowed]}
`
	want := strings.NewReplacer(
		"want: deny   # wrong", "want: allow   # wrong",
		"[ action.denied ,  policy.allowed ]", "[policy.allowed]",
		"'allow'", `"deny"`,
		"[ db.read,  deny  ]", "[ db.read,  allow  ]",
		"y]}, want: allow", "y]}, want: deny",
	).Replace(before)
	const lines = head + `tests:
  # the first
  - name:   block    # here
    intent: read
    set: {action_type: db.drop, resource: "db://prod/x"}
    want: deny
    codes:
      - policy.allowed # goes
      - action.denied # stays
`
	linesWant := strings.NewReplacer(
		"name:   block    #", "name: block #", "- policy.allowed # goes\n      ", "", "stays\n", "stays\n      - action.not_allowed\n      - resource.blocked\n",
	).Replace(lines)
	for name, tc := range map[string]struct{ before, want string }{
		"a_test.yaml": {before, want},
		"lines.yaml":  {lines, linesWant}, // rewritten in canonical form
		"crlf.yaml":   {strings.ReplaceAll(before, "\n", "\r\n"), strings.ReplaceAll(want, "\n", "\r\n")},
		"b.json": {
			`{"policy": "p.yaml", "now": "2026-11-02T10:00:00Z", "intents": {"a": {"agent_id": "bot", "action_type": "db.x", "resource": "y"}},
 "tests": [{"name": "é", "intent": "a",
   "want": "allow", "codes": ["policy.allowed"]}]}`,
			`{"policy": "p.yaml", "now": "2026-11-02T10:00:00Z", "intents": {"a": {"agent_id": "bot", "action_type": "db.x", "resource": "y"}},
 "tests": [{"name": "é", "intent": "a",
   "want": "deny", "codes": ["action.not_allowed"]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := loaderOf(map[string]string{name: tc.before})
			suites := must.Get(l.Load(name))(t)
			report := must.Get(Run(t.Context(), suites, Options{}))(t)
			got := must.Get(l.Update(t.Context(), suites, report))(t)
			if len(got) != 1 || string(got[0].Data) != tc.want {
				t.Errorf("Update = %q, want\n%s", got, tc.want)
			}
		})
	}
}
