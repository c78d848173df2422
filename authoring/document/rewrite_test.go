package document

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/internal/must"
)

const twoRules = `# Two rules.

# The first.
name:   one   # of two
condition: {action_type: a,   cost.amount_minor: {$gt: 5}} # when
action: {decision: deny}
priority: 100
isActive: true
updatedAt: 2026-11-01T09:00:00Z
---
# The second.
name: 'two'
condition:
  all:
    # cheap
    - {field: cost.amount_minor, op: lt, value: 5}
    # dear
    - {field: cost.amount_minor, op: gt, value: 9}
action: '{"decision":"deny"}'
priority: 2
isActive: true
# The end.
`

// TestRewrite_Golden checks that a change of scalars changes only their text. After any other
// change, the unchanged values keep their comments.
func TestRewrite_Golden(t *testing.T) {
	first, _, _ := strings.Cut(twoRules, "---\n")
	one := `{"name":"one","condition":{"cost.amount_minor":{"$gt":5},"action_type":"a"},"action":"{\"decision\":\"deny\"}","priority":7,"isActive":false,"updatedAt":"2026-11-02T09:00:00Z"}`
	for name, tt := range map[string]struct {
		edits   []Edit
		replace []string // old text, new text, old text, new text
	}{
		"nothing": {},
		"scalars": {
			[]Edit{{0, []byte(one)}},
			[]string{"priority: 100\nisActive: true\nupdatedAt: 2026-11-01", "priority: 7\nisActive: false\nupdatedAt: 2026-11-02"},
		},
		"a quoted name and a value in a condition": {
			[]Edit{{1, []byte(`{"name":"it's \"2\"","condition":"{\"all\":[{\"field\":\"cost.amount_minor\",\"op\":\"lt\",\"value\":50},{\"field\":\"cost.amount_minor\",\"op\":\"gt\",\"value\":9}]}","action":{"decision":"deny"},"priority":2,"isActive":true}`)}},
			[]string{"'two'", `"it's \"2\""`, "op: lt, value: 5}", "op: lt, value: 50}"},
		},
		"more than scalars: the form is canonical": {
			[]Edit{{1, []byte(`{"id":"x","name":"two","condition":{"all":[{"field":"cost.amount_minor","op":"gt","value":9},{"field":"agent_id","op":"eq","value":"b"},{"field":"action_type","op":"eq","value":"b"}]},"action":{"decision":"deny"},"priority":2,"isActive":true}`)}},
			[]string{
				"name:   one   # of two", "name: one # of two", "{action_type: a,   cost", "{action_type: a, cost",
				"# The second.\n", "# The second.\nid: x\n",
				"    # cheap\n    - {field: cost.amount_minor, op: lt, value: 5}\n", "",
				"op: gt, value: 9}\n", "op: gt, value: 9}\n    - {field: agent_id, op: eq, value: b}\n    - {field: action_type, op: eq, value: b}\n",
				`'{"decision":"deny"}'`, "{decision: deny}",
			},
		},
		"removed and added": {
			[]Edit{{0, nil}, {9, []byte(`{"name":"three","condition":"{}","action":"{}","priority":1,"isActive":true}`)}},
			[]string{
				first + "---\n", "",
				`'{"decision":"deny"}'`, "{decision: deny}",
				"# The end.\n", "\n# The end.\n---\nname: three\ncondition: {}\naction: {}\npriority: 1\nisActive: true\n",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := must.Get(Rewrite("r.yaml", []byte(twoRules), tt.edits...))(t)
			want := twoRules
			for i := 0; i < len(tt.replace); i += 2 {
				if !strings.Contains(want, tt.replace[i]) {
					t.Fatalf("the file does not hold %q", tt.replace[i])
				}
				want = strings.Replace(want, tt.replace[i], tt.replace[i+1], 1)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("Rewrite (-want +got):\n%s", diff)
			}
		})
	}
	if got, err := Rewrite("r.yaml", []byte(twoRules), Edit{0, nil}, Edit{1, nil}); err != nil || len(got) != 0 {
		t.Errorf("Rewrite without a document = %q, %v, want nothing", got, err)
	}
}

// FuzzRewrite checks that the rewritten file has exactly the wanted documents.
func FuzzRewrite(f *testing.F) {
	for _, doc := range []string{
		`{"name":"a: b # c","condition":{"cel":"x\n y\n"},"action":{},"priority":1}`, `{"name":" \n x\t","condition":{"rego":"\u0001\u2028"}}`,
		`{"name":"r","condition":{"rego":"input.intent.action_type==\"a\"\n  input.intent.agent_id==\"b\""}}`,
		`{"name":"<<","description":"2026-01-01","condition":{"a":[null,true,[1,{"b":[]}]]}}`,
	} {
		f.Add(twoRules, doc, 0)
		f.Add(twoRules, doc, 2)
		f.Add("", doc, 0)
		f.Add("- name: a\n  condition: {}\n- name: b # c\n  condition: {x: y}\n", doc, 1)
	}
	f.Fuzz(func(t *testing.T, text, doc string, index int) {
		if index < 0 || index > 3 {
			return
		}
		before, err := Parse("r.yaml", []byte(text))
		if err != nil && strings.TrimSpace(text) != "" {
			return
		}
		want, err := Parse("d.json", []byte(doc))
		if err != nil || len(want) != 1 || want[0].root.kind != '{' {
			return
		}
		got, err := Rewrite("r.yaml", []byte(text), Edit{index, []byte(doc)})
		if err != nil {
			if strings.TrimSpace(text) == "" || text == twoRules {
				t.Errorf("Rewrite(%q, %s) = %v", text, doc, err)
			}
			return
		}
		after, err := Parse("r.yaml", got)
		if err != nil {
			t.Fatalf("Rewrite(%q, %s) = %q: %v", text, doc, got, err)
		}
		at := min(index, len(before))
		if len(after) != max(len(before), at+1) || !after[at].Equal(want[0]) {
			t.Errorf("Rewrite(%q, %d %s) = %q", text, index, doc, got)
		}
		for i := range before {
			if i != at && !before[i].Equal(after[i]) {
				t.Errorf("Rewrite(%q, %d %s) = %q: another document changed", text, index, doc, got)
			}
		}
	})
}
