package condition

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition/conditiontest"
)

func told(ok bool, err error) Truth {
	if err != nil {
		return Unknown
	}
	return TruthOf(ok)
}

// saidOf returns the result and the error of each leaf of a condition.
func saidOf(c *Condition, f *Frame) (oks []bool, errs []error) {
	c.Program.AskLeaves(f, func(ok bool, err error) { oks, errs = append(oks, ok), append(errs, err) })
	return oks, errs
}

// celDocument returns the document of a condition in CEL.
func celDocument(source string) string {
	text, err := json.Marshal(map[string]string{"cel": source})
	if err != nil {
		panic(err) // cannot happen: every string has a JSON form
	}
	return string(text)
}

// TestClause_LeavesMakeTheCondition checks three things. The leaves' values give the condition's
// value. The text of each leaf gives the same result as the leaf. The leaf that Because names
// decides.
func TestClause_LeavesMakeTheCondition(t *testing.T) {
	g := conditiontest.New(12)
	joined := 0
	for range 4_000 {
		doc := g.Condition()
		c := mustCondition(t, doc)
		clause := c.Clause()
		texts := clause.Leaves()
		if len(texts) > 1 {
			joined++
		}
		asked := make([]*Program, len(texts))
		for i, text := range texts {
			if asked[i] = compileTree(t, text); c.tree == nil {
				asked[i] = mustCondition(t, celDocument(text)).Program
			}
		}
		for range 4 {
			f := testFrame(t, g.Intent())
			ok, err := c.Program.Eval(f)
			oks, errs := saidOf(c, f)
			if len(oks) != len(texts) {
				t.Fatalf("%s has %d leaves, and %d texts of them: %q", doc, len(oks), len(texts), texts)
			}
			for i := range texts {
				if want, wantErr := asked[i].Eval(f); want != oks[i] || (wantErr == nil) != (errs[i] == nil) {
					t.Fatalf("leaf %d of %s is %v, %v, its text %s %v, %v", i, doc, oks[i], errs[i], texts[i], want, wantErr)
				}
			}
			said := func(i int) Truth { return told(oks[i], errs[i]) }
			if got := clause.Value(said); got != told(ok, err) {
				t.Fatalf("the leaves %q %v %v of %s make it %v; it is %v, %v", texts, oks, errs, doc, got, ok, err)
			}
			because := clause.Because(said)
			if err != nil && (because < 0 || errs[because] == nil) {
				t.Fatalf("%s is an error because of leaf %d of %q, which is none: %v", doc, because, texts, errs)
			}
			if err == nil && because >= 0 && errs[because] != nil {
				t.Fatalf("%s is %v because of leaf %d, which is an error", doc, ok, because)
			}
		}
	}
	if joined < 1_000 {
		t.Errorf("%d conditions had several leaves, want at least 1000 to mean something", joined)
	}
}

func TestClause_NumbersLeavesAsTheyAreWritten(t *testing.T) {
	for doc, want := range map[string][]string{
		`{}`:             nil,
		`{"cel":"true"}`: nil,
		`{"cel":"has(intent.cost) && (intent.cost.amount_minor > 5 || !('env' in intent.metadata))"}`: {
			`has(intent.cost)`, `intent.cost.amount_minor > 5`, `"env" in intent.metadata`},
		`{"cel":"intent.metadata.exists(k, k == 'a' && true) && has(intent.metadata.env)"}`: {
			`intent.metadata.exists(k, k == "a" && true)`, `has(intent.metadata.env)`},
		`{"cel":"(has(intent.cost) ? 1 : 2) == 1"}`: {`(has(intent.cost) ? 1 : 2) == 1`},
		`{"action_type":"pay","metadata.env":{"$ne":"prod"},"metadata.to":{"$every":["a","b"]}}`: {
			`intent.action_type == "pay"`, `"env" in intent.metadata && intent.metadata["env"] == "prod"`,
			`"to" in intent.metadata && size_any(">", 0, intent.metadata["to"])`,
			`"to" in intent.metadata && elements(intent.metadata["to"]).all(item, item_any("in", ["a", "b"], item))`},
		`{"rego":"input.intent.action_type == \"pay\""}`: {`input.intent.action_type == "pay"`},
	} {
		if diff := cmp.Diff(want, mustCondition(t, doc).Clause().Leaves()); diff != "" {
			t.Errorf("leaves of %s (-want +got):\n%s", doc, diff)
		}
	}
	if got := Never().Clause().Leaves(); got != nil {
		t.Errorf("a broken condition has the leaves %q", got)
	}
	if long := mustCondition(t, `{"cel":"'`+strings.Repeat("a", 900)+`' == intent.agent_id && true || false"}`).Clause().Leaves(); len(long) != 1 || strings.Contains(long[0], "\n") {
		t.Errorf("a long leaf is wrapped: %q", long)
	}
}
