package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// lib returns a library with one module. source follows its package clause.
func lib(name, source string) engine.Library {
	return engine.Library{Name: name, Modules: map[string]string{name + ".rego": "package lib." + name + "\n\n" + source}}
}

// net is a library that uses another one, the input, a set, a default and a regular expression.
var net = lib("net", `import data.lib.text

# Hosts of ours.
hosts contains "db.ours.example"

hosts contains host if host := text.low(input.intent.metadata.host)

default inside := false

inside if startswith(input.intent.resource, "10.")

private(addr) if regex.match("^10[.]", addr)

private(addr) if text.low(addr) in hosts

parts(s) := [p | some p in split(s, ".")]

limit := 3`)

var text = lib("text", `low(s) := lower(s)`)

func libraryIntent(resource string) *engine.Intent {
	return &engine.Intent{IntentID: "i", AgentID: "a", ActionType: "net.connect", Resource: resource, Metadata: map[string]string{"host": "web.ours.example"}}
}

func asked(c engine.RegoCondition, resource string) (bool, error) {
	in := libraryIntent(resource)
	return c.Match(&engine.RegoInput{Intent: in, AgentID: in.AgentID, Policy: samplePolicy(), Resource: resource})
}

// TestLibraries_Decide checks that conditions in both forms use libraries, with every kind of rule.
func TestLibraries_Decide(t *testing.T) {
	l := must.Get(CompileLibraries([]engine.Library{net, text}))(t)
	for source, want := range map[string]map[string]bool{
		`data.lib.net.private(input.intent.resource)`:                                                                       {"10.0.0.1": true, "DB.ours.example": true, "a": false},
		"package a\n\nimport data.lib.net\n\nmatch if net.private(input.intent.resource)":                                   {"10.0.0.1": true, "a": false},
		"package a\n\nimport data.lib.net as n\n\nmatch if not n.private(input.intent.resource)":                            {"10.0.0.1": false, "a": true},
		"package a\n\nimport data.lib.net.private as p\n\nmatch if p(input.intent.resource)":                                {"10.0.0.1": true, "a": false},
		"package a\n\nimport data.lib.net\n\nmatch if input.intent.resource in net.hosts":                                   {"db.ours.example": true, "a": false},
		"package a\n\nimport data.lib.net\n\nmatch if {\n\tsome h in net.hosts\n\th == input.intent.resource\n}":            {"db.ours.example": true, "a": false},
		"package a\n\nimport data.lib.net\n\nmatch if net.inside":                                                           {"10.0.0.1": true, "a": false},
		"package a\n\nimport data.lib.net\n\nmatch if net.inside with input.intent.resource as \"10.x\"":                    {"a": true},
		"package a\n\nimport data.lib.net\n\nmatch if count(net.parts(input.intent.resource)) > net.limit":                  {"10.0.0.1": true, "a": false},
		"package a\n\nimport data.lib.net\n\nimport data.lib.text\n\nmatch if net.private(text.low(input.intent.resource))": {"DB.OURS.EXAMPLE": true, "a": false},
	} {
		c, err := l.Compile(source)
		if err != nil {
			t.Errorf("Compile(%s) = %v", source, err)
			continue
		}
		if want := []string{"net", "text"}; !slices.Equal(c.Libraries(), want) {
			t.Errorf("Libraries of %s = %q, want %q", source, c.Libraries(), want)
		}
		for resource, want := range want {
			if got, err := asked(c, resource); err != nil || got != want {
				t.Errorf("%s, asked for %s, = %v, %v, want %v", source, resource, got, err, want)
			}
		}
	}
}

// TestLibraries_AreCompiledOnce checks that conditions share the compiled rules of a library, and that
// none changes them: hundreds are compiled and asked at once.
func TestLibraries_AreCompiledOnce(t *testing.T) {
	l := must.Get(compileLibraries([]engine.Library{net, text}))(t)
	ref := ast.MustParseRef("data.lib.net.private")
	rules := l.compiler.GetRulesExact(ref)
	before := fmt.Sprint(l.compiler.Modules)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			c, err := l.Compile(fmt.Sprintf(`data.lib.net.private(input.intent.resource); input.intent.resource != "%d"`, i))
			if err != nil {
				t.Errorf("Compile: %v", err)
				return
			}
			if got := c.(*sandboxed).question.compiler.GetRulesExact(ref); len(got) != len(rules) || got[0] != rules[0] {
				t.Error("the condition has rules of its own for the library")
			}
			if got, err := asked(c, "10.0.0.1"); err != nil || !got {
				t.Errorf("asked = %v, %v, want true", got, err)
			}
			if size := c.Size(); size > compiledOverhead+100*compiledPerByte {
				t.Errorf("the condition has %d bytes, the library's among them", size)
			}
		})
	}
	all.Wait()
	if after := fmt.Sprint(l.compiler.Modules); after != before {
		t.Error("compiling conditions has changed the libraries")
	}
}

// TestLibraries_Refused checks what neither a library nor its user may write.
func TestLibraries_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		libraries []engine.Library
		condition string
		want      string
	}{
		"a syntax error":         {[]engine.Library{lib("a", "f(x")}, "", "a/a.rego:3:"},
		"no module":              {[]engine.Library{{Name: "a", Modules: map[string]string{"a.rego": "# nothing"}}}, "", "a/a.rego:1:1: the file has no module: begin it with package lib.a"},
		"another package":        {[]engine.Library{{Name: "a", Modules: map[string]string{"a.rego": "package a"}}}, "", "a/a.rego:1:1: the package is a: want lib.a"},
		"a package below":        {[]engine.Library{{Name: "a", Modules: map[string]string{"a.rego": "package lib.a.b"}}}, "", "want lib.a"},
		"an unknown library":     {[]engine.Library{lib("a", "f(x) := data.lib.b.f(x)")}, "", "a/a.rego:3:9: there is no library b, only a"},
		"other data":             {[]engine.Library{lib("a", "f(x) := data.b.f(x)")}, "", "a library sees only the input and libraries"},
		"a cycle":                {[]engine.Library{lib("a", "f(x) := data.lib.b.f(x)"), lib("b", "f(x) := x\n\ng(x) := data.lib.a.f(x)")}, "", "the libraries import each other: a -> b -> a"},
		"recursion":              {[]engine.Library{lib("a", "f(x) := f(x)")}, "", "recursive"},
		"lists":                  {[]engine.Library{lib("a", "f(x) if x in input.lists.payees")}, "", "take the list as an argument"},
		"a refused function":     {[]engine.Library{lib("a", `f(x) := http.send({"url": x})`)}, "", "http.send cannot be called"},
		"the clock":              {[]engine.Library{lib("a", `f := time.now_ns()`)}, "", "time.now_ns cannot be called"},
		"a pattern of a caller":  {[]engine.Library{lib("a", `f(x, p) if regex.match(p, x)`)}, "", "must be a constant"},
		"a glob that backtracks": {[]engine.Library{lib("a", `f(x) if glob.match("*a*b*c", [], x)`)}, "", "asterisks that need a search"},
		"a misspelt member":      {[]engine.Library{lib("a", `f if input.intent.actiontype == "x"`)}, "", "actiontype"},
		"growth":                 {[]engine.Library{lib("a", "a0(x) := [x, x]\n\na1(x) := [y | some z in [a0(x), a0(x), a0(x), a0(x)]; y := [z, z, z, z, z, z, z, z]]\n\na2(x) := [a1(x), a1(x), a1(x), a1(x), a1(x), a1(x), a1(x), a1(x)]")}, "", "thousands of times"},
		"a mock":                 {[]engine.Library{lib("a", "m(x) := x\n\nf(x) if upper(x) == x with upper as m")}, "", "with replaces only the input"},
		"conflicting defaults":   {[]engine.Library{{Name: "a", Modules: map[string]string{"a.rego": "package lib.a\n\ndefault f := 1", "b.rego": "package lib.a\n\ndefault f := 2"}}}, "", "multiple default rules"},

		"no such library":      {[]engine.Library{text}, "data.lib.net.f(1)", "1:1: there is no library net, only text"},
		"no such function":     {[]engine.Library{text}, `data.lib.text.up(input.intent.resource) == "A"`, "undefined function data.lib.text.up"},
		"no such rule":         {[]engine.Library{text}, `data.lib.text.names[_] == "A"`, "data.lib.text.names is not defined"},
		"too few arguments":    {[]engine.Library{text}, `data.lib.text.low() == "A"`, "arity mismatch"},
		"a wrong type":         {[]engine.Library{text}, `data.lib.text.low(1) == "A"`, "data.lib.text.low"},
		"a computed library":   {[]engine.Library{text}, `some n in ["text"]; data.lib[n].low("A") == "a"`, "must name one library"},
		"all libraries":        {[]engine.Library{text}, `some x in data.lib; x`, "must name one library"},
		"all data":             {[]engine.Library{text}, `some x in data; x`, "data is not defined here"},
		"a mock of a library":  {[]engine.Library{text}, "package a\n\nm(x) := \"prod\"\n\nmatch if data.lib.text.low(\"A\") == \"prod\" with data.lib.text.low as m", "with replaces only the input"},
		"a mock of a function": {[]engine.Library{text}, "package a\n\nm(x) := \"prod\"\n\nmatch if data.lib.text.low(\"A\") == \"prod\" with lower as m", "with replaces only the input"},
		"growth by a library":  {[]engine.Library{lib("a", "wide(x) := [y | some z in numbers.range(1, 1000); y := [z, x]]")}, "package a\n\nimport data.lib.a\n\nw := a.wide(input.intent.resource)\n\nv := a.wide(w)\n\nmatch if count(v) > 0", "thousands of times"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := CompileLibraries(c.libraries)
			if err == nil && c.condition != "" {
				_, err = l.Compile(c.condition)
			}
			var bad *condition.Error
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %s", err, c.want)
			}
		})
	}
}

// TestLibraries_CostCountsCallers checks that what a library does is charged to the evaluation that
// calls it, as if the condition did it itself.
func TestLibraries_CostCountsCallers(t *testing.T) {
	const body = `busy(s) if count([1 | some x in split(s, "/"); some y in split(s, "/"); x == y]) > 0`
	l := must.Get(CompileLibraries([]engine.Library{lib("a", body)}))(t)
	c := must.Get(l.Compile(`data.lib.a.busy(input.intent.resource)`))(t)
	if _, err := asked(c, strings.Repeat("/", 4000)); !errors.Is(err, condition.ErrTooMuchWork) {
		t.Errorf("asked = %v, want %v", err, condition.ErrTooMuchWork)
	}
	// The same source costs about the same, with or without a library.
	const work = "parts(s) := [lower(p) | some p in split(s, \"/\")]\n\nmany(s) if count([1 | some p in parts(s); regex.match(\"^[a-z]+$\", p); glob.match(\"*/x\", [\"/\"], s)]) > 100"
	inline := must.Get(CompileCondition("package a\n\n" + work + "\n\nmatch if many(input.intent.resource)"))(t)
	l = must.Get(CompileLibraries([]engine.Library{lib("a", work)}))(t)
	library := must.Get(l.Compile("package a\n\nimport data.lib.a\n\nmatch if a.many(input.intent.resource)"))(t)
	steps := func(c engine.RegoCondition) int {
		w := new(condition.Work)
		all := w.Left()
		in := libraryIntent(strings.Repeat("abc/", 50))
		must.Get(c.Match(&engine.RegoInput{Intent: in, AgentID: in.AgentID, Policy: samplePolicy(), Resource: in.Resource, Work: w}))(t)
		return all - w.Left()
	}
	if a, b := steps(inline), steps(library); a != b {
		t.Errorf("the source costs %d steps in a rule and %d in a library", a, b)
	}
}

func TestLowerCore_Libraries(t *testing.T) {
	policies := []*engine.ActionPolicy{samplePolicy()}
	_, err := LowerCore(policies, []engine.Rule{listRule(`{"rego":"data.lib.net.inside"}`, "deny")}, nil)
	if err == nil || !strings.Contains(err.Error(), "there is no library net") {
		t.Errorf("LowerCore of a rule that imports a library = %v, want an error", err)
	}
	rules := []engine.Rule{listRule(`{"rego":"data.lib.text.low(input.intent.action_type) == \"x\""}`, "deny")}
	seen := map[string]bool{}
	for _, library := range []engine.Library{text, lib("text", `low(s) := upper(s)`)} {
		files := must.Get(LowerCore(policies, rules, nil, library, lib("unused", `a := 1`)))(t)
		all := ""
		for _, f := range files {
			all += f.Source
		}
		set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition,
			Libraries: must.Get(CompileLibraries([]engine.Library{library}))(t)})
		if digest := must.Get(engine.Digest(policies[0], set))(t); !strings.Contains(all, digest) || seen[digest] {
			t.Errorf("the export with %v has not the digest %s, or that of another library", library.Modules, digest)
		} else {
			seen[digest] = true
		}
	}
}

// TestLibraries_OfAnotherAge checks that a stored condition in a package below lib keeps running, and
// that nobody can create one.
func TestLibraries_OfAnotherAge(t *testing.T) {
	l := must.Get(CompileLibraries([]engine.Library{text}))(t)
	for _, source := range []string{"package lib.text\n\nlow(s) := \"x\"\n\nmatch if low(\"A\") == \"x\"", "package lib.own\n\na := 1\n\nmatch if data.lib.own.a == 1"} {
		c := must.Get(l.Compile(source))(t)
		if got, err := asked(c, "a"); err != nil || !got {
			t.Errorf("%s = %v, %v, want true", source, got, err)
		}
		if err := c.Review().Refused; err == nil || !strings.Contains(err.Error(), "are those of libraries") {
			t.Errorf("Refused of %s = %v", source, err)
		}
		if _, err := Prepare(samplePolicy(), []engine.Rule{listRule(string(must.Get(json.Marshal(map[string]string{"rego": source}))(t)), "deny")}, nil, text); err != nil {
			t.Errorf("Prepare of %s = %v", source, err)
		}
	}
}

// TestLibraries_InExports checks that an export has the libraries that its rules use, and no others, and
// that opa fmt leaves them as they are.
func TestLibraries_InExports(t *testing.T) {
	rules := []engine.Rule{listRule(`{"rego":"data.lib.net.inside"}`, "deny")}
	files := must.Get(Lower(samplePolicy(), rules, nil, net, text, lib("unused", "a := 1")))(t)
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if again := must.Get(formatted(f.Name, f.Source))(t); again != f {
			t.Errorf("%s is not formatted:\n%s", f.Name, f.Source)
		}
		if strings.Contains(f.Source, "data.lib.") || strings.Contains(f.Source, "package lib.") {
			t.Errorf("%s has a name of the author's files:\n%s", f.Name, f.Source)
		}
	}
	if want := []string{"policy.rego", "rule_r.rego", "lib_net_net.rego", "lib_text_text.rego"}; !slices.Equal(names, want) {
		t.Errorf("the files are %q, want %q", names, want)
	}
}

// TestLibraries_AreReadThrough checks that a condition is asked for each reading of the resource and
// each name of the agent if a library reads them, however far away, and for one if none does.
func TestLibraries_AreReadThrough(t *testing.T) {
	l := must.Get(CompileLibraries([]engine.Library{
		lib("plain", "limit := 3\n\ntypes := {\"net.connect\"}\n\nsame(x) := x"),
		lib("far", "import data.lib.near\n\nbad if near.bad\n\nours if data.lib.near.ours"),
		lib("near", "bad if startswith(input.intent.resource, \"10.\")\n\nours if input.agent.id == \"a\""),
		lib("whole", "of(i) := i.intent.resource\n\nhere := of(input)"),
	}))(t)
	for source, want := range map[string]engine.RegoReads{
		`count(input.intent.metadata) > data.lib.plain.limit`:  {},
		`data.lib.plain.same(input.intent.action_type) == "x"`: {},
		`data.lib.plain.same(input.intent.resource) == "x"`:    {Resource: true},
		`data.lib.far.bad`: {Resource: true, Agent: true},
		"package a\n\nimport data.lib.far as x\n\nmatch if not x.ours":            {Resource: true, Agent: true},
		`data.lib.whole.here == "x"`:                                              {Resource: true, Agent: true},
		"package a\n\nimport data.lib.plain as p\n\nmatch if p.same(input) == {}": {Resource: true, Agent: true},
	} {
		reads := must.Get(l.Compile(source))(t).Reads()
		if reads.Resource != want.Resource || reads.Agent != want.Agent {
			t.Errorf("%s reads the resource: %v, the agent: %v, want %v, %v", source, reads.Resource, reads.Agent, want.Resource, want.Agent)
		}
	}
	reads := must.Get(l.Compile(`input.intent.action_type in data.lib.plain.types`))(t).Reads()
	if len(reads.Demands) != 1 || !slices.Equal(reads.Demands[0].Values, []string{"net.connect"}) {
		t.Errorf("the demands are %v, want the types of the library", reads.Demands)
	}
}
