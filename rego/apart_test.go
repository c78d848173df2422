package rego

import (
	"strings"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// failing is a line that fails, because the text is no number. surelyFalse and surelyTrue are lines
// that do not fail and are no demands.
const (
	failing     = `to_number(input.intent.metadata.env) > 5`
	surelyFalse = `endswith(input.intent.action_type, ".none")`
	surelyTrue  = `contains(input.intent.action_type, ".")`
)

// TestDecision_Rules_ASurelyFalseLineMakesABodyFalse checks this decision: "where several parts must
// hold, one that is surely false makes the whole false, whatever another would have failed at, in
// every form (a Rego body too)".
func TestDecision_Rules_ASurelyFalseLineMakesABodyFalse(t *testing.T) {
	lines := strings.NewReplacer("FAIL", failing, "FALSE", surelyFalse, "TRUE", surelyTrue)
	for _, tt := range []struct{ name, source, want string }{
		{"the error alone", "FAIL", "error"},
		{"false after the error", "FAIL; FALSE", "false"},
		{"false before the error", "FALSE; FAIL", "false"},
		{"true beside the error", "FAIL; TRUE", "error"},
		{"two errors", "FAIL; FAIL", "error"},
		{"two errors and false", "FAIL; TRUE; FAIL; FALSE; FAIL", "false"},
		{"a missing key", "FAIL; input.intent.metadata.none == \"x\"", "false"},
		{"a missing key as a line", "FAIL; input.intent.metadata.none", "false"},
		{"a function that is a line of its own", `FAIL; glob.match("*.none", ["."], input.intent.action_type)`, "false"},
		{"a demand", `FAIL; input.intent.action_type == "none"`, "false"},
		{"a failing function of the same name", `to_number(input.intent.metadata.env) > 5; to_number(input.intent.metadata.n) > 99`, "false"},
		{"two failing functions", `to_number(input.intent.metadata.env) > 5; to_number(input.intent.metadata.n) > 5`, "error"},
		{"not", "FAIL; not TRUE", "false"},
		{"not that holds", "FAIL; not FALSE", "error"},
		{"not of the error", "not FAIL; FALSE", "false"},
		{"not of the error alone", "not FAIL; TRUE", "error"},
		{"every", `FAIL; every x in ["none"] { endswith(input.intent.action_type, x) }`, "false"},
		{"every that holds", `FAIL; every x in ["."] { contains(input.intent.action_type, x) }`, "error"},
		{"with", "FAIL; TRUE with input.intent.action_type as \"none\"", "false"},
		{"with of the error", "FALSE; FAIL with input.intent.metadata.env as \"x\"", "false"},
		{"with that mends the error", "FALSE; FAIL with input.intent.metadata.env as \"7\"", "false"},
		{"a name", `x := input.intent.action_type; FAIL; endswith(x, ".none")`, "false"},
		{"a name that holds", `x := input.intent.action_type; FAIL; contains(x, ".")`, "error"},
		{"a name for the failing value", `x := to_number(input.intent.metadata.env); x > 5; FALSE`, "false"},
		{"only the failing value is false", `x := to_number(input.intent.metadata.env); x > 5; x < 5`, "error"},
		{"an iteration", `some x in ["a", "b"]; FAIL; x == "c"`, "false"},
		{"an iteration that holds", `some x in ["a", "b"]; FAIL; x == "b"`, "error"},
		{"an iteration with two tests", `some x in ["a", "b"]; FAIL; x == "a"; x == "b"`, "error"},
		{"an iteration that fails", `some x in ["a", "b"]; to_number(x) > 5; FALSE`, "false"},
		{"an iteration that fails in part", `some x in ["a", "7"]; to_number(x) > 5; TRUE`, "error"},
		{"a comprehension", `FAIL; count([x | some x in ["a"]; endswith(input.intent.action_type, x)]) > 0`, "false"},
		{"a comprehension with the error", `count([1 | FAIL]) > 0; FALSE`, "false"},
		{"a comprehension with the error alone", `count([1 | FAIL]) == 0; TRUE`, "error"},
		{"a failing set", `{to_number(input.intent.metadata.env)}[5]; FALSE`, "false"},

		{"every body has a false line", "package p\n\nmatch if { FAIL; FALSE }\n\nmatch if { FALSE; FAIL }", "false"},
		{"one body is an error", "package p\n\nmatch if { FAIL; FALSE }\n\nmatch if { FAIL; TRUE }", "error"},
		{"one body is true", "package p\n\nmatch if { FAIL; FALSE }\n\nmatch if TRUE", "true"},
		{"one body is true, another one an error", "package p\n\nmatch if { FAIL; FALSE }\n\nmatch if FAIL\n\nmatch if TRUE", "error"},
		{"a default that is false", "package p\n\ndefault match := false\n\nmatch if { FAIL; FALSE }", "false"},
		{"a default that is true", "package p\n\ndefault match := true\n\nmatch := false if { FAIL; FALSE }", "error"},
		{"else", "package p\n\nmatch if { FAIL; FALSE } else if { FAIL; FALSE }", "false"},
		{"else that may hold", "package p\n\nmatch if { FAIL; FALSE } else if TRUE", "error"},
		{"a value", "package p\n\nmatch := x if { x := true; FAIL; FALSE }", "false"},
		{"another value", "package p\n\nmatch := false if { FAIL; FALSE }\n\nmatch := false if FAIL", "error"},

		{"deny", "package p\n\ndeny if { FAIL; FALSE }", "false"},
		{"deny that may hold", "package p\n\ndeny if { FAIL; TRUE }", "error"},
		{"a set of denies", "package p\n\ndeny contains \"no\" if { FAIL; FALSE }", "false"},
		{"a set of denies that may hold", "package p\n\ndeny contains \"no\" if { FAIL; TRUE }", "error"},
		{"every deny has a false line", "package p\n\ndeny contains \"no\" if { FAIL; FALSE }\n\ndeny contains \"no\" if { FALSE; FAIL }", "false"},
		{"one deny is an error", "package p\n\ndeny contains \"no\" if { FAIL; FALSE }\n\ndeny contains \"never\" if { FAIL; TRUE }", "error"},
		{"one deny is true", "package p\n\ndeny contains \"no\" if { FAIL; FALSE }\n\ndeny contains \"never\" if TRUE", "true"},
		{"one deny is true, the next one is not", "package p\n\ndeny contains \"no\" if { FAIL; FALSE }\n\ndeny contains \"never\" if TRUE\n\ndeny contains \"x\" if FALSE", "true"},
		{"one deny is true, another one an error", "package p\n\ndeny contains \"no\" if { FAIL; FALSE }\n\ndeny contains \"never\" if FAIL\n\ndeny contains \"x\" if TRUE", "error"},
		{"only the message fails", "package p\n\ndeny contains msg if { TRUE; msg := sprintf(\"%d\", [to_number(input.intent.metadata.env)]) }", "error"},
		{"the message fails beside a false line", "package p\n\ndeny contains msg if { msg := sprintf(\"%d\", [to_number(input.intent.metadata.env)]); FALSE }", "false"},
		{"the message has no value", "package p\n\ndeny contains msg if { FAIL; msg := input.intent.metadata.none }", "false"},
		{"the message has no value in its head", "package p\n\ndeny contains input.intent.metadata.none if FAIL", "false"},
		{"a set of denies from a set that may be an error", "package p\n\nw contains \"a\" if { FAIL; FALSE }\n\ndeny contains msg if some msg in w", "error"},
		{"a set of denies that is empty", "package p\n\ndeny contains \"no\" if FALSE", "false"},
		{"a set of denies in which two are equal", "package p\n\ndeny contains \"no\" if TRUE\n\ndeny contains \"no\" if TRUE", "true"},
		{"allow", "package p\n\nallow if { FAIL; FALSE }", "false"},
		{"allow that may hold", "package p\n\nallow if { FAIL; TRUE }", "error"},

		{"another rule", "package p\n\nis if { FAIL; FALSE }\n\nmatch if is", "false"},
		{"another rule that is an error", "package p\n\nis if { FAIL; TRUE }\n\nmatch if is", "error"},
		{"another rule beside a false line", "package p\n\nis if FAIL\n\nmatch if { is; FALSE }", "false"},
		{"another rule with two bodies", "package p\n\nis if { FAIL; FALSE }\n\nis if FAIL\n\nmatch if is", "error"},
		{"another rule with a default", "package p\n\ndefault is := true\n\nis := false if { FAIL; FALSE }\n\nmatch if is", "error"},
		{"the value of another rule", "package p\n\nis := \"a\" if { FAIL; FALSE }\n\nmatch if is == \"a\"", "false"},
		{"the value of another rule in a call", "package p\n\nis := \"a\" if { FAIL; FALSE }\n\nmatch if startswith(is, \"a\")", "false"},
		{"a set", "package p\n\nis contains \"a\" if { FAIL; FALSE }\n\nmatch if count(is) == 0", "error"},
		{"not another rule", "package p\n\nis if { FAIL; FALSE }\n\nmatch if not is", "error"},
		{"another rule of another rule", "package p\n\na if b\n\nb if { FAIL; FALSE }\n\nmatch if a", "false"},
		{"a function", "package p\n\nis(i) if { to_number(i.metadata.env) > 5; endswith(i.action_type, \".none\") }\n\nmatch if is(input.intent)", "false"},
		{"a function that is an error", "package p\n\nis(i) if { to_number(i.metadata.env) > 5; contains(i.action_type, \".\") }\n\nmatch if is(input.intent)", "error"},
		{"a function with another false line", "package p\n\nis(i) if to_number(i.metadata.env) > 5\n\nmatch if { is(input.intent); FALSE }", "false"},
		{"a function with a value", "package p\n\nf(i) := 1 if { to_number(i.metadata.env) > 5; endswith(i.action_type, \".none\") }\n\nmatch if f(input.intent) == 1", "false"},
		{"a function with a default", "package p\n\ndefault f(_) := 1\n\nf(i) := 2 if { to_number(i.metadata.env) > 5; endswith(i.action_type, \".none\") }\n\nmatch if f(input.intent) == 1", "error"},
		{"two functions", "package p\n\nf(i) if { g(i); true }\n\ng(i) if { to_number(i.metadata.env) > 5; endswith(i.action_type, \".none\") }\n\nmatch if f(input.intent)", "false"},
		{"a function whose variable has another's name", "package p\n\nf(v) if { some k; v[k] == \"a\"; to_number(\"x\") > 5; k == 7 }\n\nmatch if { some k; [\"b\", \"a\"][k] == \"a\"; f([\"a\"]) }", "false"},
		{"a function with a name of its caller", "package p\n\nf(v) if { v[k] == \"a\"; to_number(\"x\") > 5; k == 0 }\n\nmatch if { [\"b\", \"a\"][k] == \"a\"; k == 1; f([\"a\"]) }", "error"},
		{"a pattern of a function", "package p\n\nf(\"b\", _) if to_number(\"x\") > 5\n\nf(\"a\", i) if { to_number(\"x\") > 5; i == \"b\" }\n\nmatch if f(\"a\", \"a\")", "false"},
		{"a function in place of another", "package p\n\nf(_) := 7\n\nmatch if { FAIL; to_number(\"x\") > 9 with to_number as f }", "false"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := lines.Replace(tt.source)
			c := must.Get(CompileCondition(source))(t)
			for _, demands := range []bool{true, false} {
				if !demands {
					c.(*sandboxed).reads.Demands = nil
				}
				in := sampleInput()
				intent := *in.Intent
				intent.ActionType, intent.Metadata = "db.drop", map[string]string{"env": "prod", "n": "7"}
				in.Intent = &intent
				matches, err := c.Match(in)
				got := map[bool]string{true: "true", false: "false"}[matches]
				if err != nil {
					got = "error"
				}
				if got != tt.want {
					t.Errorf("Match = %s, %v, want %s\n%s", got, err, tt.want, source)
				}
			}
		})
	}
}

// TestApart_SharesTheBudget checks that a condition that fails does not get steps of its own when it
// is asked in parts.
func TestApart_SharesTheBudget(t *testing.T) {
	source := failing + strings.Repeat("; count(input.intent.metadata) < 1000", 40)
	c := must.Get(CompileCondition(source))(t)
	var work condition.Work
	in, all := sampleInput(), work.Left()
	in.Work = &work
	for range 100 {
		if matches, err := c.Match(in); matches || err == nil {
			t.Fatalf("Match = %v, %v, want an error", matches, err)
		}
		if work.Left() == 0 {
			return
		}
	}
	t.Errorf("%d of %d steps are left", work.Left(), all)
}

// TestApart_OfLibraries checks rules and functions of libraries. They were compiled before the
// condition, so that their variables have names that the condition's have, too.
func TestApart_OfLibraries(t *testing.T) {
	l := must.Get(CompileLibraries([]engine.Library{lib("a", `is(i) if { to_number(i.resource) > 5; some k; ["x", "y"][k] == "y"; endswith(i.action_type, ".none") }

may(i) if { to_number(i.resource) > 5; some k; ["x", "y"][k] == "y"; startswith(i.action_type, "net.") }

rule if { to_number(input.intent.resource) > 5; endswith(input.intent.action_type, ".none") }`)}))(t)
	for source, fails := range map[string]bool{
		`data.lib.a.is(input.intent)`:                        false,
		`data.lib.a.rule`:                                    false,
		`data.lib.a.may(input.intent)`:                       true,
		`["x", "y"][k] == "x"; data.lib.a.may(input.intent)`: true,
		`["x", "y"][k] == "x"; k == 0; data.lib.a.may({"resource": "x", "action_type": concat("", ["net.", "x"])})`: true,
		`["x", "y"][k] == "x"; k == 1; data.lib.a.may(input.intent)`:                                                false,
	} {
		c := must.Get(l.Compile(source))(t)
		if matches, err := asked(c, "x"); matches || (err != nil) != fails {
			t.Errorf("%s = %v, %v, want an error: %v", source, matches, err, fails)
		}
	}
}
