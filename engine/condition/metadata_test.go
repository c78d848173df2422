package condition

import (
	"strings"
	"testing"
)

// outcomeOf returns the outcome of a condition: "true", "false" or "error". It checks that CEL has
// the same outcome.
func outcomeOf(t *testing.T, doc string, metadata map[string]string) string {
	t.Helper()
	c := mustCondition(t, doc)
	in := intentWith(func(in *intent) { in.Metadata = metadata })
	got := outcomeIn(c.Program, testFrame(t, in))
	if inCEL := outcomeIn(compileTree(t, rendered(c)), testFrame(t, in)); inCEL != got {
		t.Errorf("%s of %v = %s, and in CEL, %s, %s", doc, metadata, got, rendered(c), inCEL)
	}
	return got
}

func outcomeIn(p *Program, f *Frame) string {
	switch ok, err := p.Eval(f); {
	case err != nil:
		return "error"
	case ok:
		return "true"
	}
	return "false"
}

// TestDecision_Rules_NumericMetadata checks that a comparison with a number reads the metadata
// value as a decimal. A value that is not a decimal makes the comparison an error, which leads to
// the stricter outcome.
func TestDecision_Rules_NumericMetadata(t *testing.T) {
	for _, tt := range []struct{ doc, value, want string }{
		{`{"metadata.n":{"$gt":5000}}`, "10000", "true"},
		{`{"metadata.n":{"$gt":5000}}`, "5000.01", "true"},
		{`{"metadata.n":{"$gt":5000}}`, "05000.000", "false"},
		{`{"metadata.n":{"$gt":5000}}`, "-6000", "false"},
		{`{"metadata.n":{"$gt":0.1}}`, "+0.10000000000000000001", "true"},
		{`{"metadata.n":{"$lt":-5}}`, "-5.5", "true"},
		{`{"metadata.n":5}`, "5.0", "true"},
		{`{"metadata.n":0}`, "-0", "true"},
		{`{"metadata.n":{"$ne":5}}`, "6", "true"},
		{`{"metadata.n":{"$in":[1,"x",2]}}`, "2.00", "true"},
		{`{"metadata.n":{"$in":[1,"x",2]}}`, "x", "true"},
		{`{"metadata.n":{"$in":[1,"x"]}}`, "y", "error"},
		{`{"metadata.n":{"$gt":5000}}`, "many", "error"},
		{`{"metadata.n":{"$gt":5000}}`, "", "error"},
		{`{"metadata.n":{"$gt":5000}}`, "1e9", "error"},
		{`{"metadata.n":{"$gt":5000}}`, " 9000", "error"},
		{`{"metadata.n":{"$gt":5000}}`, "9,000", "error"},
		{`{"metadata.n":{"$gt":5000}}`, "9000.", "error"},
		{`{"metadata.n":{"$gt":5000}}`, strings.Repeat("9", maxDigits+1), "error"},
		{`{"metadata.n":{"$not":{"$gt":5000}}}`, "many", "error"},
		{`{"$or":[{"metadata.n":{"$gt":5000}},{"action_type":"deploy.web"}]}`, "many", "true"},
		{`{"$nor":[{"metadata.n":{"$gt":5000}}]}`, "many", "error"},
		{`{"field":"metadata.n","op":"greaterThan","value":9.5}`, "10", "true"},
		{`{"not":{"field":"metadata.n","op":"gte","value":9}}`, "ten", "error"},
		{`{"cel":"decimal_compare(intent.metadata.n, '9') > 0"}`, "10", "true"},
		{`{"cel":"decimal_compare(intent.metadata.n, '9') > 0"}`, "ten", "error"},
	} {
		if got := outcomeOf(t, tt.doc, map[string]string{"n": tt.value}); got != tt.want {
			t.Errorf("%s of %q = %s, want %s", tt.doc, tt.value, got, tt.want)
		}
	}
}

// TestDecision_Rules_Lists checks that `$every`, `$some` and `$size` read a value as a list: a
// JSON array of strings, or the parts between commas. Items are trimmed, and empty items are
// dropped.
func TestDecision_Rules_Lists(t *testing.T) {
	for _, tt := range []struct{ doc, value, want string }{
		{`{"metadata.to":{"$every":["a","b"]}}`, "a, b,a", "true"},
		{`{"metadata.to":{"$every":["a","b"]}}`, `["a","b"]`, "true"},
		{`{"metadata.to":{"$every":["a","b"]}}`, "a,c", "false"},
		{`{"metadata.to":{"$every":["a","b"]}}`, "", "false"},
		{`{"metadata.to":{"$every":["a","b"]}}`, " , ", "false"},
		{`{"metadata.to":{"$every":["a","b"]}}`, "[]", "false"},
		{`{"metadata.to":{"$every":["a,b"]}}`, `["a,b"]`, "true"},
		{`{"metadata.to":{"$every":["[1]"]}}`, "[1]", "true"},
		{`{"metadata.to":{"$every":{"$glob":"*@ours.example"}}}`, "x@ours.example,y@ours.example", "true"},
		{`{"metadata.to":{"$every":{"$glob":"*@ours.example"}}}`, "x@ours.example,y@theirs.example", "false"},
		{`{"metadata.to":{"$every":{"$gte":1,"$lt":10}}}`, "1,9.9", "true"},
		{`{"metadata.to":{"$every":{"$gte":1}}}`, "2,x", "error"},
		{`{"metadata.to":{"$every":{"$gte":1}}}`, "0,x", "false"},
		{`{"metadata.to":{"$some":["c"]}}`, "a,c", "true"},
		{`{"metadata.to":{"$some":["c"]}}`, "a,b", "false"},
		{`{"metadata.to":{"$some":{"$gt":5}}}`, "x,6", "true"},
		{`{"metadata.to":{"$some":{"$gt":5}}}`, "x,4", "error"},
		{`{"metadata.to":{"$some":{"$regex":"^a"}}}`, "b,", "false"},
		{`{"metadata.to":{"$size":2}}`, "a,,b", "true"},
		{`{"metadata.to":{"$size":{"$lte":1}}}`, `["a","b"]`, "false"},
		{`{"field":"metadata.to","op":"every","value":{"$glob":"*@ours.example"}}`, "x@ours.example", "true"},
		{`{"field":"metadata.to","op":"some","value":["a"]}`, "b", "false"},
		{`{"field":"metadata.to","op":"size","value":{"$gt":1}}`, "a,b", "true"},
		{`{"cel":"items(intent.metadata.to).all(x, x in ['a','b'])"}`, " a,b ", "true"},
	} {
		if got := outcomeOf(t, tt.doc, map[string]string{"to": tt.value}); got != tt.want {
			t.Errorf("%s of %q = %s, want %s", tt.doc, tt.value, got, tt.want)
		}
	}
}
