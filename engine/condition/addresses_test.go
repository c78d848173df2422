package condition

import (
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/resource"
)

// outcomeFor returns the outcome of a condition of a rule of one side: see [outcomeOf].
func outcomeFor(t *testing.T, side resource.Side, doc, value string) string {
	t.Helper()
	c, err := Compile(doc, Options{Side: side})
	if err != nil {
		t.Fatalf("Compile(%s): %v", doc, err)
	}
	frame := func() *Frame {
		f := testFrame(t, intentWith(func(in *intent) { in.Metadata = map[string]string{"to": value} }))
		f.SetLists(Lists{"ours": NewList([]string{"ana@Ours.Example", "bob"})})
		return f
	}
	got := outcomeIn(c.Program, frame())
	if _, ok := c.CEL(); ok && c.tree != nil {
		if inCEL := outcomeIn(compileTree(t, rendered(c)), frame()); inCEL != got {
			t.Errorf("%s of %q = %s, and in CEL, %s, %s", doc, value, got, rendered(c), inCEL)
		}
	}
	return got
}

const (
	everyOurs = `{"metadata.to":{"$every":{"$glob":"*@ours.example"}}}`
	someRival = `{"metadata.to":{"$some":{"$glob":"*@rival.example"}}}`
)

// TestDecision_Rules_AddressesThatAllow checks "Lists and addresses in metadata": "Where a comparison's truth makes the
// outcome milder, all that an element is read as must satisfy it".
func TestDecision_Rules_AddressesThatAllow(t *testing.T) {
	for _, tt := range []struct{ doc, value, want string }{
		{everyOurs, "ana@ours.example", "true"},
		{everyOurs, "Ana <ana@ours.example>", "true"},
		{everyOurs, `"Doe, Ana" <ana@ours.example>; bob@ours.example`, "true"},
		{everyOurs, `"Ana \"The\" Doe" <ana@ours.example> (at work)`, "true"},
		{everyOurs, "ana@OURS.example.", "true"},
		{everyOurs, `["ana@ours.example", "Bob <bob@ours.example>"]`, "true"},
		{everyOurs, "ana@ours.example\nbob@ours.example", "true"},
		{everyOurs, "mailto:ana@ours.example", "true"},
		{everyOurs, "MAILTO:ana%40ours.example?cc=bob@ours.example&subject=eve@evil.example", "true"},
		{everyOurs, "mailto:ana@ours.example, mailto:bob@ours.example", "true"},
		{everyOurs, "", "false"},
		{everyOurs, " , ;", "false"},
		{everyOurs, "ana", "false"},
		{everyOurs, "evil@evil.example;a@ours.example", "false"},
		{everyOurs, "<evil@evil.example>@ours.example", "false"},
		{everyOurs, `"eve@evil.example x"@ours.example`, "false"},
		{everyOurs, `"eve@evil.example, x" <ana@ours.example>`, "false"},
		{everyOurs, "eve@evil.example ana@ours.example", "false"},
		{everyOurs, "ana@ours.example (eve@evil.example)", "false"},
		{everyOurs, "eve@evil.example@ours.example", "false"},
		{everyOurs, "@ours.example", "false"},
		{everyOurs, `"eve"@ours.example`, "false"},
		{everyOurs, `"eve"x@ours.example`, "false"},
		{everyOurs, "ana@ours.example eve", "false"},
		{everyOurs, "<ana@ours.example> eve", "false"},
		{everyOurs, "<@ours.example:eve@evil.example>", "false"},
		{everyOurs, "friends: ana@ours.example", "false"},
		{everyOurs, "ana@ours.example\r\n.evil.example", "false"},
		{everyOurs, "=?utf-8?q?eve=40evil.example=3E?=@ours.example", "false"},
		{everyOurs, "eve%40evil.example", "false"},
		{everyOurs, "mailto:ana@ours.example?cc=eve%40evil.example", "false"},
		{everyOurs, "mailto:ana@ours.example?x=,&cc=eve%40evil.example&y=z@ours.example", "false"},
		{everyOurs, "mailto:", "false"},
		{`{"metadata.to":{"$every":{"$glob":"*"}}}`, "ana@ours.example", "false"},
		{`{"metadata.to":{"$every":{"$glob":"**"}}}`, "ana@ours.example", "true"},
		{`{"metadata.to":{"$every":{"$glob":"*@Münster.example"}}}`, "ana@xn--mnster-3ya.example", "true"},
		{`{"metadata.to":{"$every":{"$glob":"*@{ours,OUR}.example"}}}`, "ana@our.example,bob@ours.example", "true"},
		{`{"metadata.to":{"$every":["ana@OURS.example.","bob"]}}`, "Ana <ana@ours.example>, bob", "true"},
		{`{"metadata.to":{"$every":{"$in":{"list":"ours"}}}}`, "Ana <ana@ours.example>, bob", "true"},
		{`{"metadata.to":{"$every":{"$in":{"list":"ours"}}}}`, "eve@ours.example", "false"},
		{`{"metadata.to":{"$every":{"$regex":"@ours\\.example$"}}}`, "<eve@evil.example>@ours.example", "false"},
		{`{"metadata.to":{"$every":{"$ne":"eve@evil.example"}}}`, "Eve <eve@EVIL.example>", "false"},
		{`{"metadata.to":{"$every":{"$ne":"eve@evil.example"}}}`, "ana@ours.example", "true"},
		{`{"metadata.to":{"$some":{"$glob":"*@ours.example"}}}`, "eve@evil.example, Ana <ana@ours.example>", "true"},
		{`{"metadata.to":{"$some":{"$glob":"*@ours.example"}}}`, "eve@evil.example ana@ours.example", "false"},
		{`{"metadata.to":{"$size":1}}`, "Ana <ana@ours.example>", "true"},
		{`{"metadata.to":{"$size":1}}`, "ana@ours.example bob@ours.example", "false"},
		{`{"metadata.to":{"$size":{"$lte":1}}}`, `"a,b"`, "false"},
		// A whole value.
		{`{"metadata.to":"*@ours.example"}`, "Ana <ana@OURS.example>", "true"},
		{`{"metadata.to":"*@ours.example"}`, "ana@ours.example,bob@ours.example", "false"},
		{`{"metadata.to":"*@ours.example"}`, `["ana@ours.example"]`, "false"},
		{`{"metadata.to":"ana@ours.example"}`, "ana@OURS.example", "true"},
		{`{"metadata.to":{"$in":["ana@ours.example","bob"]}}`, "bob", "true"},
		{`{"metadata.to":{"$in":{"list":"ours"}}}`, "Ana <ana@ours.example>", "true"},
		{`{"metadata.to":{"$in":{"list":"ours"}}}`, "bob", "true"},
		{`{"metadata.to":{"$in":{"list":"ours"}}}`, "ana@ours.example bob", "false"},
		{`{"metadata.to":"*ours.example"}`, "eve@evil.example;ana@ours.example", "false"},
		{`{"metadata.to":"**"}`, "eve@evil.example", "true"},
		{`{"metadata.to":{"$ne":"eve@evil.example"}}`, "Eve <eve@evil.example>", "false"},
		{`{"metadata.to":{"$nin":["eve@evil.example"]}}`, "ana@ours.example, eve@evil.example", "false"},
	} {
		if got := outcomeFor(t, resource.ForAllow, tt.doc, tt.value); got != tt.want {
			t.Errorf("%s of %q = %s in a rule that allows, want %s", tt.doc, tt.value, got, tt.want)
		}
	}
}

// TestDecision_Rules_AddressesThatDeny checks "Lists and addresses in metadata": "Where it makes it stricter, one reading
// suffices".
func TestDecision_Rules_AddressesThatDeny(t *testing.T) {
	for _, tt := range []struct{ doc, value, want string }{
		{someRival, "eve@rival.example;ana@ours.example", "true"},
		{someRival, "Eve <eve@rival.example>", "true"},
		{someRival, "eve@RIVAL.example", "true"},
		{someRival, "eve@rival.example.", "true"},
		{someRival, `"eve@rival.example x"@ours.example`, "true"},
		{someRival, `"x, eve@rival.example" <ana@ours.example>`, "true"},
		{someRival, "'eve@rival.example'", "true"},
		{someRival, "mailto:ana@ours.example?bcc=eve%40rival.example", "true"},
		{someRival, "mailto:ana@ours.example,bob@ours.example?cc=eve%40rival.example", "true"},
		{someRival, "eve@rival.example@ours.example", "true"},
		{someRival, "eve@ri\rval.example", "true"},
		{someRival, "bob@riva\rl.example", "true"},
		{someRival, "Ana <eve@rival.(x\rexample>", "true"}, // Python ends a comment at a carriage return
		{someRival, "ana@ours.example, Ana <eve@rival.(x\rexample>", "true"},
		{someRival, "eve@rival.(x,y)example", "true"},
		{someRival, "=?,tf-8?b?ZXZlQHJpdmFsLmV4YW1wbGU=?= eve@ours.example", "true"},
		{someRival, `=?utf-8?b?ZXZlQHJ;pdmFsLmV4YW1wbGU=?="a b"@riva"l"example`, "true"},
		{someRival, "Ana <\"ev(@\tevil.example\"@rival.(x)example>\teve@OURS.example (wo)rk)", "true"},
		{someRival, `"Doe, Ana" <o'x@ours.example>"ev@evi\l.example"@ours.example ("eve\@(x)rival.example)`, "true"},
		{someRival, "a@b:x+y@evil.example.ours.examplebob@rival.(x)example＠ x+y@ours.example", "true"},
		{someRival, "(x]+y@(x)rival.example)\"a b\"@rival。exampl\u3000e\tbob@ours.example\n(ana@ours.example)eve@ours.example", "true"},
		{someRival, "mailto:eve@rival.(x)example;", "true"}, // a group
		{someRival, ":eve@ours.example,o'x@RIVAL.Example..\t=?utf-8?q?\nve=@ours.example", "true"},
		{someRival, "mailto:eve@rival.example..", "true"},
		{someRival, "ana@ours.example (rival.example)", "false"},
		{someRival, "ana@ours.example,\r\n bob@ours.example (x)", "false"},
		{someRival, "ana@ours.example", "false"},
		{someRival, "rival.example", "false"},
		{`{"metadata.to":{"$some":["b"]}}`, `a;b`, "true"},
		{`{"metadata.to":{"$some":["b"]}}`, `"b"`, "true"},
		{`{"metadata.to":{"$some":["b"]}}`, `"a, b"`, "true"},
		{`{"metadata.to":{"$some":{"$in":{"list":"ours"}}}}`, "Ana <ana@OURS.example>", "true"},
		{`{"metadata.to":{"$every":{"$glob":"*@rival.example"}}}`, "Eve <eve@rival.example>, x@rival.example", "true"},
		{`{"metadata.to":{"$every":{"$glob":"*@rival.example"}}}`, "eve@rival.example,ana@ours.example", "false"},
		{`{"metadata.to":{"$every":{"$glob":"*@rival.example"}}}`, "", "false"},
		{`{"metadata.to":{"$not":{"$every":{"$glob":"*@ours.example"}}}}`, "<eve@evil.example>@ours.example", "true"},
		{`{"metadata.to":{"$not":{"$every":{"$glob":"*@ours.example"}}}}`, "Ana <ana@ours.example>", "false"},
		{`{"metadata.to":{"$not":{"$every":{"$glob":"*@ours.example"}}}}`, "", "true"},
		{`{"metadata.to":{"$some":{"$ne":"ana@ours.example"}}}`, "Ana <ana@OURS.example>", "false"},
		{`{"metadata.to":{"$some":{"$ne":"ana@ours.example"}}}`, "ana@ours.example eve", "true"},
		{`{"metadata.to":{"$size":2}}`, "ana@ours.example bob@ours.example", "true"},
		{`{"metadata.to":{"$size":1}}`, "ana@ours.example bob@ours.example", "true"},
		{`{"metadata.to":{"$size":2}}`, `"a,b"`, "true"},
		{`{"metadata.to":"*@rival.example"}`, "eve@rival.example;ana@ours.example", "true"},
		{`{"metadata.to":"eve@rival.example"}`, "Eve <eve@RIVAL.example>", "true"},
		{`{"metadata.to":{"$in":["eve@rival.example"]}}`, "a, eve@rival.example", "true"},
		{`{"metadata.to":{"$in":["prod"]}}`, "a, prod", "false"},
		{`{"metadata.to":{"$in":{"list":"ours"}}}`, "x; ana@OURS.example", "true"},
		{`{"metadata.to":{"$in":{"list":"ours"}}}`, "x; bob", "false"},
		{`{"metadata.to":{"$ne":"ana@ours.example"}}`, "ana@ours.example", "false"},
		{`{"metadata.to":{"$ne":"ana@ours.example"}}`, "ana@ours.example,eve@evil.example", "true"},
	} {
		if got := outcomeFor(t, resource.ForBlock, tt.doc, tt.value); got != tt.want {
			t.Errorf("%s of %q = %s in a rule that denies, want %s", tt.doc, tt.value, got, tt.want)
		}
	}
}

// TestDecision_Rules_ItemsOfCEL checks "`items()` in CEL and `writ.items` in Rego give the addresses and what remains, as
// the milder reading sees them".
func TestDecision_Rules_ItemsOfCEL(t *testing.T) {
	for value, want := range map[string][]string{
		"Ana <ana@OURS.example.>; b":   {"ana@ours.example", "b"},
		`"eve@evil.example x"@ours.ex`: {"eve@evil.example", "@ours.ex", `"eve@evil.example x"@ours.ex`},
		"x@ß.example":                  {"x@xn--zca.example", "x@ss.example"},
		`["a, b"]`:                     {"a, b"},
		"":                             {},
	} {
		if got := ReadValue(value).Items(); !slices.Equal(got, want) {
			t.Errorf("items of %q = %q, want %q", value, got, want)
		}
	}
	const doc = `{"cel":"items(intent.metadata.to).all(a, glob('*@ours.example', a))"}`
	for value, want := range map[string]string{"Ana <ana@OURS.example>": "true", "<evil@evil.example>@ours.example": "false"} {
		if got := outcomeFor(t, resource.ForAllow, doc, value); got != want {
			t.Errorf("%s of %q = %s, want %s", doc, value, got, want)
		}
	}
}

// TestReadValue_TakesLinearTime checks that the work that is charged for the worst values is a small multiple of their
// length, and that reading them ends.
func TestReadValue_TakesLinearTime(t *testing.T) {
	for _, part := range []string{"<", "\"", "(", "@", "a@b ", "a,", "<(\"", "ß@ß;", "[", "\\", "x@?", "(<", "@(", "@ a", "@( (a) \\)\r", "a "} {
		text := "x@y" + strings.Repeat(part, (MaxText-3)/len(part))
		if v := ReadValue(text); v.steps > (4+2*itemSteps)*len(text) {
			t.Errorf("reading %q... is charged %d steps", part, v.steps)
		}
	}
}

// TestAddresses_MeanTheSameInCEL checks that comparisons with addresses have the same outcomes in CEL as in writ's own
// program, for generated conditions and values.
func TestAddresses_MeanTheSameInCEL(t *testing.T) {
	g := conditiontest.New(29)
	outcomes := map[string]int{}
	for range 3_000 {
		side := conditiontest.Pick(g, resource.ForBlock, resource.ForAllow)
		outcomes[outcomeFor(t, side, g.Recipients(), g.Addresses())]++
		if t.Failed() {
			return
		}
	}
	if outcomes["true"] < 300 || outcomes["false"] < 300 {
		t.Errorf("the outcomes are lopsided: %v", outcomes)
	}
}

// TestDecision_Resources_AddressesInRules checks three points of resources.md §5: `$ne` is the negation of `$eq`, `$every`
// of nothing does not hold, and the text of an address has no `mailto:`.
func TestDecision_Resources_AddressesInRules(t *testing.T) {
	for _, tt := range []struct {
		side          resource.Side
		doc, resource string
		want          bool
	}{
		{resource.ForBlock, `{"resource":{"$ne":"ana@ours.example"}}`, "mailto:ana@ours.example", false},
		{resource.ForBlock, `{"resource":{"$ne":"ana@ours.example"}}`, "ana@ours.example, eve@evil.example", true},
		{resource.ForAllow, `{"resource":{"$ne":"eve@evil.example"}}`, "ana@ours.example, eve@evil.example", false},
		{resource.ForAllow, `{"resource":{"$ne":"eve@evil.example"}}`, "mailto:ana@ours.example", true},
		{resource.ForAllow, `{"resource":{"$regex":"^ana@ours[.]example$"}}`, "mailto:ana@OURS.example", true},
		{resource.ForAllow, `{"resource":"mailto:*"}`, "mailto:ana@ours.example", false},
		{resource.ForAllow, `{"metadata.to":{"$every":{"$glob":"**"}}}`, "x", false},
		{resource.ForBlock, `{"metadata.to":{"$every":{"$glob":"**"}}}`, "x", false},
	} {
		c, err := Compile(tt.doc, Options{Side: tt.side})
		if err != nil {
			t.Fatal(err)
		}
		f := testFrame(t, intentWith(func(in *intent) { in.Resource, in.Metadata = tt.resource, map[string]string{"to": " ,; "} }))
		if got, err := c.Program.Eval(f); got != tt.want || err != nil {
			t.Errorf("%s of %s = %v, %v, want %v", tt.doc, tt.resource, got, err, tt.want)
		}
	}
}
