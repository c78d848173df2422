package rego

import (
	"fmt"
	"strings"
	"testing"
)

// chain writes n lines. Each line builds a value out of the value of the line before.
func chain(n int, line string) string {
	s := "x0 := [input.intent.resource]\n"
	for i := 1; i <= n; i++ {
		s += strings.NewReplacer("NEW", fmt.Sprintf("x%d", i), "OLD", fmt.Sprintf("x%d", i-1)).Replace(line) + "\n"
	}
	return s
}

func TestCompileCondition_RefusesWhatNoDeadlineEnds(t *testing.T) {
	tests := []struct{ name, source, want string }{
		{"arrays of arrays", chain(6, "NEW := [OLD, OLD, OLD, OLD, OLD]") + "count(x6) > 1", "1:1: match can become thousands of times larger"},
		{"objects", chain(13, `NEW := {"a": OLD, "b": OLD}`) + "x13.a", "larger than its input"},
		{"sets", chain(13, "NEW := {OLD, [OLD]}") + "count(x13) == 2", "larger than its input"},
		{"squares", strings.Replace(chain(13, "NEW := OLD * OLD"), "[input.intent.resource]", "input.policy.version", 1) + "x13 > 1", "larger than its input"},
		{"a function", "package a\n\nf(x) := [x, x]\n\nmatch if count(f(f(f(f(f(f(f(f(f(f(f(f(f(input)))))))))))))) == 2", "5:1: match can become"},
		{"functions of functions", "package a\n\nf(x) := [x, x, x, x, x, x, x, x, x, x]\n\ng(x) := f(f(x))\n\nh(x) := g(g(x))\n\nmatch if count(h(1)) == 10", "larger than its input"},
		{"rules", "package a\n\na := [input, [1 | input], [x | x := 2], [y | y := 3], {z | z := 4}]\n\nb := [a, a, a, a, a, a, a, a]\n\nc := [b, b, b, b, b, b, b, b]\n\nd := [c, c, c, c, c, c, c, c]\n\nmatch if count([d, d, d, d, d, d, d, d]) == 8", "larger than its input"},
		{"a glob that backtracks", `glob.match("*a?*a?*[c]", ["/"], input.intent.resource)`, "1:12: glob.match: the pattern has 3 asterisks that need a search"},
		{"a glob whose author is the caller", `glob.match(input.intent.metadata.p, ["/"], input.intent.resource)`, "1:12: glob.match: the pattern must be a constant"},
		{"a glob with an escape", "glob.match(\"a\\\\*b\", [\"/\"], input.intent.resource)", "1:12: glob.match: the pattern has an escape"},
		{"a regular expression whose author is the caller", `regex.match(input.intent.metadata.p, input.intent.resource)`, "1:13: regex.match: the pattern must be a constant"},
		{"a large regular expression", "regex.match(\"" + strings.Repeat("(a{0,31}){0,31}", 9) + "\", input.intent.resource)", "1:13: regex.match: the regular expressions compile to more than 700 instructions"},
		{"many regular expressions", strings.Repeat("not regex.match(\"a{400}\", input.intent.resource)\n", 3), "3:17: regex.match: the regular expressions compile to more than"},
		{"a replacement by a regular expression of the caller's", `regex.replace(input.intent.resource, input.intent.metadata.p, "x") == "x"`, "regex.replace: the pattern must be a constant"},
		{"a function in the place of another", `startswith("(a*)*", input.intent.resource) with startswith as regex.match`, "regex.match cannot stand in for another function"},
		{"a text written into itself", `replace(input.intent.resource, "a", input.intent.resource) != ""`, "larger than its input"},
		{"a long text written into another", "regex.replace(input.intent.resource, \"a\", \"" + strings.Repeat("a", 5000) + "\") != \"\"", "larger than its input"},
		{"a list joined by the caller's text", `concat(input.intent.resource, split(input.intent.resource, "")) != ""`, "larger than its input"},
		{"many texts written into another", `strings.replace_n({"a": input.intent.resource}, input.intent.resource) != ""`, "larger than its input"},
		{"a number with a million digits", `units.parse_bytes(input.intent.metadata.size) > 5`, "units.parse_bytes cannot be called"},
		{"a loop over a constant range", `count([1 | some i in numbers.range(1, 5000)]) > 1`, "1:1: match can become thousands of times larger"},
		{"loops over constant ranges", `count([1 | some i in numbers.range(1, 100); some j in numbers.range(1, 100)]) > 1`, "larger than its input"},
		{"a constant range in steps", `count(numbers.range_step(10000000, 1, 2)) > 1`, "larger than its input"},
		{"the characters of a repeated text", `count(split(concat("", [input.intent.resource | some i in numbers.range(1, 3000)]), "")) > 1`, "larger than its input"},
		{"a range of great numbers", `count(numbers.range(1, 99999999999999999999999999)) > 1`, "larger than its input"},
		{"a glob under not", `not glob.match("*a*b*c", null, input.intent.resource)`, "asterisks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := CompileCondition(tt.source); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("CompileCondition = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCompileCondition_AcceptsOrdinarySizes(t *testing.T) {
	for name, source := range map[string]string{
		"an object of the intent": `x := {"a": input.intent.action_type, "b": input.intent.resource, "c": input.agent.id}; x.a != x.b`,
		"a sum of limits":         "base := 5000\nextra := count(object.keys(input.intent.metadata)) * 100\ninput.intent.cost.amount_minor > base + extra",
		"a concatenation":         `concat("/", [input.intent.metadata.env, input.intent.resource]) == "prod/x"`,
		"texts":                   `replace(strings.replace_n({"-": "_", ".": "_"}, regex.replace(input.intent.resource, "[0-9]+", "#")), "#", "") == "a_b"`,
		"regular expressions":     `regex.match("^prod/[a-z]+$", input.intent.resource); count(regex.find_n("[0-9]+", input.intent.metadata.x, -1)) > 1`,
		"hours and minutes":       `some h in numbers.range(0, 23); some m in numbers.range_step(0, 55, 5); input.intent.metadata.at == concat(":", [format_int(h, 10), format_int(m, 10)])`,
		"characters":              `count(split(input.intent.resource, "")) > 100`,
		"globs":                   `glob.match("https://*.example.com/v1/*/x/**", ["/"], input.intent.resource)`,
		"many comparisons":        strings.Repeat("input.intent.action_type != \"x\"\n", 200),
		"many messages":           "package a\n\n" + strings.Repeat("messages contains msg if {\n\tx := input.intent.resource\n\ty := input.agent.id\n\tmsg := sprintf(\"%s by %v\", [x, y])\n\tmsg != $\"{x} by {y}\"\n}\n\n", 30) + "match if count(messages) > 0",
		"many rules":              "package a\n\nlimits := {\"prod\": 5, \"dr\": 6}\n\nlimit := limits[input.intent.metadata.env]\n\nover if input.intent.cost.amount_minor > limit\n\ndefault match := false\n\nmatch if over\n\nmatch if input.agent.status == \"disabled\"",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := CompileCondition(source); err != nil {
				t.Errorf("CompileCondition(%q) = %v", source, err)
			}
		})
	}
}
