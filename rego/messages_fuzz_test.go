package rego

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// speech draws modules whose messages may hold metadata, in many ways.
type speech struct {
	r *rand.Rand
	// rules has the helper rules of the module.
	rules []string
	names int
}

func (s *speech) one(of ...string) string { return of[s.r.IntN(len(of))] }

func (s *speech) name(prefix string) string {
	s.names++
	return fmt.Sprint(prefix, s.names)
}

// rule adds a helper rule. %[1]s is its name, which rule returns.
func (s *speech) rule(format string, args ...any) string {
	name := s.name("h")
	s.rules = append(s.rules, fmt.Sprintf(format, append([]any{name}, args...)...))
	return name
}

// spelt is a text that is made letter by letter by comparisons with %[1]s.
const spelt = `concat("", [c | some i in numbers.range(0, 11); some c in split("abcdefghijklmnopqrstuvwxyz0123456789", ""); substring(%[1]s, i, 1) == c])`

func (s *speech) leaf() string {
	return s.one(`"a word"`, `"a word"`, `input.intent.resource`, `input.agent.id`, `input.intent.action_type`,
		`input.intent.metadata.secret`, `input.intent.metadata["secret"]`, `input["intent"].metadata.secret`,
		`object.get(input, ["intent", "metadata", "secret"], "none")`, `json.marshal(input.intent.metadata)`,
		`object.union(input.intent, {"x": "y"}).metadata.secret`, `data.lib.m.secret`, `data.lib.m.whole.metadata.secret`,
		`data.lib.m.same(input.intent.metadata.secret)`, `data.lib.m.of(input.intent)`, `sprintf("%v", [input.intent])`,
		`concat(" ", object.keys(input.intent.metadata))`)
}

// text draws an expression whose value is a text.
func (s *speech) text(depth int) string {
	if depth == 0 {
		return s.leaf()
	}
	x := s.text(depth - 1)
	switch s.r.IntN(24) {
	case 0:
		return fmt.Sprintf(s.one("lower(%s)", "upper(%s)", "strings.reverse(%s)", "base64.encode(%s)", "hex.encode(%s)",
			"trim_space(%s)", "substring(%s, 0, 8)", `json.marshal([%s])`, `sprintf("%%s!", [%s])`), x)
	case 1:
		return fmt.Sprintf(`concat("-", [%s, %s])`, x, s.text(depth-1))
	case 2:
		return fmt.Sprintf(`[%s, %s][%d]`, x, s.text(depth-1), s.r.IntN(2))
	case 3:
		return fmt.Sprintf(`{"k": %s}.k`, x)
	case 4:
		return fmt.Sprintf(`concat("", [c | some c in split(%s, "")])`, x)
	case 5:
		return fmt.Sprintf(spelt, x)
	case 6:
		return s.rule("%[1]s := %[2]s", x)
	case 7:
		return s.rule("%[1]s := \"b\" if input.intent.metadata.absent == \"z\"\nelse := %[2]s", x)
	case 8:
		return s.rule("%[1]s(x) := x") + "(" + x + ")"
	case 9:
		return s.rule("%[1]s(_) := %[2]s", x) + `("c")`
	case 10:
		return s.rule("%[1]s(x) := y if {\n\tp := [x, %[2]s]\n\tsome y in p\n\ty != \"d\"\n\ty == p[1]\n}", x) + `("d")`
	case 11:
		return fmt.Sprintf(`concat("", %s)`, s.rule("%[1]s contains %[2]s", x))
	case 12:
		return s.rule("%[1]s[k] := v if {\n\tsome k in [\"e\"]\n\tv := %[2]s\n}", x) + ".e"
	case 13:
		return fmt.Sprintf(`concat("", object.keys(%s))`, s.rule("%[1]s[k] := 1 if k := %[2]s", x))
	case 14:
		return s.rule("%[1]s := input.intent.resource") // a name for a member
	case 15:
		return fmt.Sprintf(`concat("", {v | v := %s})`, x)
	case 16:
		return fmt.Sprintf(`concat("", {v: 1 | v := %s}["f"])`, x) // has no value
	case 17:
		return fmt.Sprintf("$\"{%s}\"", s.rule("%[1]s := %[2]s", x))
	}
	return x
}

// reason draws a rule of messages.
func (s *speech) reason() string {
	x, y := s.text(s.r.IntN(4)), s.text(s.r.IntN(3))
	letters := `split("abcdefghijklmnopqrstuvwxyz0123456789", "")`
	switch s.r.IntN(14) {
	case 0:
		return fmt.Sprintf("reason contains %s if %s != \"g\"", x, y)
	case 1:
		return fmt.Sprintf("reason contains msg if {\n\tx := %s\n\ty := x\n\tmsg := y\n}", x)
	case 2:
		return fmt.Sprintf("reason contains msg if [msg, _] = [%s, %s]", x, y)
	case 3:
		return fmt.Sprintf("reason contains msg if {\n\tsome msg in [%s, %s]\n}", x, y)
	case 4:
		return fmt.Sprintf("reason contains msg if {\n\tmsg := input.intent.resource with input.intent.resource as %s\n}", x)
	case 5:
		name := s.rule("%[1]s := input.intent.resource")
		return fmt.Sprintf("reason contains msg if {\n\tmsg := %s with input.intent.resource as %s\n}", name, x)
	case 6:
		return fmt.Sprintf("reason contains \"h\" if startswith(%s, %s)", x, y)
	case 7:
		return fmt.Sprintf("reason contains msg if {\n\tmsg := concat(\"\", [c | some i in numbers.range(0, 11); some c in %s; d := c; "+
			"e := [d]; e[0] == substring(%s, i, 1)])\n}", letters, x)
	case 8:
		return fmt.Sprintf("reason contains msg if {\n\tsome a in %[1]s\n\tsome b in %[1]s\n\tmsg := concat(\"\", [a, b, \"…\"])\n"+
			"\tx := %[2]s\n\tstartswith(x, concat(\"\", [a, b]))\n}", letters, x)
	case 9:
		return fmt.Sprintf("reason contains msg if {\n\ti := input.intent\n\ti.metadata.secret != %s\n\tmsg := i.resource\n}", x)
	case 10:
		name := s.rule("%[1]s contains v if {\n\tsome v in [%[2]s]\n}", x)
		return fmt.Sprintf("reason contains msg if some msg in %s", name)
	case 11:
		return fmt.Sprintf("reason contains msg if {\n\tevery v in [%s] { v != %s }\n\tmsg := input.intent.action_type\n}", x, y)
	case 12:
		return fmt.Sprintf("reason contains msg if {\n\tsome k\n\tmsg := {\"i\": %s, \"j\": %s}[k]\n}", x, y)
	}
	return "reason contains " + x
}

// module draws a module that matches.
func (s *speech) module() string {
	var rules []string
	for range 1 + s.r.IntN(3) {
		rules = append(rules, s.reason())
	}
	source := "package p\n\nmatch if true\n\n" + strings.Join(append(rules, s.rules...), "\n\n")
	if strings.Contains(source, "data.lib.m") {
		source = strings.Replace(source, "package p\n", "package p\n\nimport data.lib.m\n", 1)
	}
	return source
}

// traces are forms in which a text may show a secret.
func traces(secret string) []string {
	reversed := []byte(secret)
	slices.Reverse(reversed)
	return []string{secret, strings.ToUpper(secret), string(reversed), secret[:8], string(reversed)[:8],
		base64.StdEncoding.EncodeToString([]byte(secret))[:12], hex.EncodeToString([]byte(secret))[:12]}
}

func shows(texts []string, secret string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(traces(secret), func(t string) bool {
			return strings.Contains(text, t) || strings.Contains(text, strings.ToUpper(t))
		})
	})
}

// heard counts what modules said.
type heard struct {
	// Spoken counts modules with messages, and Left those with a message that is left out. Leaks counts
	// those whose messages would show the secret if none was left out.
	Modules, Spoken, Left, Leaks, Exported int
	Refused                                []string
}

// hear evaluates a drawn module with a secret in the metadata, in the engine and in an export.
func (h *heard) hear(t *testing.T, l engine.Libraries, lib engine.Library, seed uint64) {
	t.Helper()
	s := &speech{r: rand.New(rand.NewPCG(seed, 30))}
	source := s.module()
	compiled, err := l.Compile(source)
	if err != nil {
		h.Refused = append(h.Refused, err.Error())
		return
	}
	h.Modules++
	secret := fmt.Sprintf("%012x", s.r.Uint64()>>16)
	p := openPolicy()
	in := coreInput(p)
	in.Intent.Metadata = map[string]string{"secret": secret, "env": "prod"}
	rules := []engine.Rule{{
		ID: "r", Name: "r", Condition: marshal(map[string]string{"rego": source}), Action: `{"decision":"deny"}`, IsActive: true,
	}}
	set := engine.CompileRules(rules, engine.Options{Libraries: l})
	reasons := engine.Evaluate(must.Get(engine.CompilePolicy(p))(t), set, in).Reasons()
	if shows(reasons, secret) {
		t.Errorf("seed %d: the reasons %q show %s\n%s", seed, reasons, secret, source)
	}
	left := len(compiled.Review().Echoes) > 0
	if left && !strings.Contains(source, "metadata") && !strings.Contains(source, "data.lib") &&
		!strings.Contains(source, "[input.intent]") {
		t.Errorf("seed %d: %v is left out, and nothing reads the metadata\n%s", seed, compiled.Review().Echoes, source)
	}
	if len(reasons) > 1 {
		h.Spoken++
	}
	if left {
		h.Left++
		all := *compiled.(*sandboxed)
		all.messages = slices.Clone(all.messages)
		for i := range all.messages {
			all.messages[i].holds = 0
		}
		asked := &engine.RegoInput{Intent: in.Intent, AgentID: in.Intent.AgentID, Resource: in.Intent.Resource, Policy: p}
		if shows(all.Messages(asked, nil), secret) {
			h.Leaks++
		}
	}
	if len(reasons) < 2 || seed%4 > 0 {
		return
	}
	h.Exported++
	files, err := Lower(p, rules, nil, lib)
	if err != nil {
		t.Fatalf("seed %d: Lower = %v\n%s", seed, err, source)
	}
	c, _, err := compileFiles(files, querySchema())
	if err != nil {
		t.Fatalf("seed %d: the export = %v\n%s", seed, err, source)
	}
	want := make([]any, len(reasons))
	for i := range reasons {
		want[i] = reasons[i]
	}
	if got := ask(t, c, document(p, "reasons").String(), must.Get(Input(p, in))(t)); !cmp.Equal(got, any(want)) {
		t.Errorf("seed %d: the export's reasons = %q, want %q\n%s", seed, got, want, source)
	}
}

// speechLibrary is a library whose values hold metadata.
func speechLibrary() engine.Library {
	return lib("m", "secret := input.intent.metadata.secret\n\nwhole := input.intent\n\nsame(x) := x\n\nof(intent) := intent.metadata.secret")
}

// TestDecision_Rules_NoReasonShowsASecretOfTheMetadata draws modules. No reason of any shows a secret in
// the metadata, in plain or in other forms, in the engine or in an export. Many modules would show it if
// no message was left out, and many have messages.
func TestDecision_Rules_NoReasonShowsASecretOfTheMetadata(t *testing.T) {
	library := speechLibrary()
	l := must.Get(CompileLibraries([]engine.Library{library}))(t)
	var h heard
	n := uint64(200)
	if os.Getenv("WRIT_SOAK") != "" {
		n = 800
	}
	for seed := range n {
		if h.hear(t, l, library, seed); t.Failed() {
			return
		}
	}
	t.Logf("%d modules: %d speak, %d leave out, %d would leak, %d exported, %d refused", h.Modules, h.Spoken, h.Left, h.Leaks, h.Exported, len(h.Refused))
	if h.Leaks*5 < h.Modules || h.Spoken*5 < h.Modules || h.Exported*40 < h.Modules || len(h.Refused) > h.Modules {
		t.Errorf("the modules are lopsided: %+v", h)
	}
}

func FuzzMessages(f *testing.F) {
	library := speechLibrary()
	l, err := CompileLibraries([]engine.Library{library})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { new(heard).hear(t, l, library, seed) })
}
