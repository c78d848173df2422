package bench

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/load"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// attacks lists the expensive things that an organization can do with an ordinary
// credential.
func attacks() []*attack {
	return []*attack{
		{name: "flood"},
		{name: "batches", batch: 100},
		{name: "stream-fill", manner: load.Fill, window: 1024},
		{name: "stream-stall", manner: load.Stall, window: 1},
		{name: "stream-dribble", manner: load.Dribble, window: 64},
		{name: "stream-deaf", manner: load.Deaf, window: 1024},
		{name: "wide", intent: wide(3800)},
		{name: "rego-loop",
			rules: repeat(20,
				`some a in input.intent.metadata; some b in input.intent.metadata; some c in input.intent.metadata; a == b; b == c; a == "none"`), intent: wide(20)},
		{name: "rego-constant", refused: true,
			rules: repeat(1,
				`count(split(concat("", [input.intent.resource | some i in numbers.range(1, 3000)]), "")) < 0`),
			intent: longResource},
		{name: "rego-explode",
			rules: repeat(1,
				`count(split(concat("", [input.intent.resource | some i in numbers.range(1, to_number(input.intent.metadata.n))]), "")) < 0`), intent: exploding},
		{name: "globs", policy: worstGlobs, intent: longResource},
		{name: "regexes", rules: worstRegexes(), intent: longResource},
		{name: "macros", rules: macros(), intent: wide(100)},
		{name: "register", path: "/v1/policies/register", body: registration, ids: 100},
		{name: "rules", path: "/v1/rules", body: dearRule},
		{name: "filter", history: true, path: "/v1/authorizations?agent_id=nobody&limit=500"},
		{name: "export", history: true, path: "/v1/authorizations/export"},
		{name: "replay", path: "/v1/policy/evaluate", intent: wide(1000), body: replay, ids: 2},
		{name: "strangers", path: "/v1/authorizations?access_token=guess"}, // no credential opens this path
	}
}

// wide gives an intent as many metadata keys as there can be. Each value has size bytes.
func wide(size int) func(*engine.Intent) {
	return func(in *engine.Intent) {
		in.Metadata = make(map[string]string, condition.MaxMetadataKeys)
		for i := range condition.MaxMetadataKeys {
			in.Metadata[fmt.Sprintf("key%02d", i)] = fmt.Sprintf("%02d", i) + strings.Repeat("v", size-2)
		}
	}
}

// longResource gives an intent the longest resource. The resource has several readings.
func longResource(in *engine.Intent) {
	in.Resource = "https://h.example/" + strings.Repeat("a%2fb", 600) + "#" + strings.Repeat("b", 1000)
}

func exploding(in *engine.Intent) {
	longResource(in)
	in.Metadata = map[string]string{"n": "3000"}
}

// repeat returns n rules in Rego that differ only in a comment.
func repeat(n int, source string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = document(map[string]string{"rego": fmt.Sprintf("%s # %d", source, i)})
	}
	return all
}

func document(v any) string {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err) // never fails: it has only strings
	}
	return string(data)
}

// worstGlobs fills every list of the policy with patterns that need a search.
func worstGlobs(p *engine.ActionPolicy) {
	for i := range 100 {
		p.BlockedResourcePatterns = append(p.BlockedResourcePatterns, fmt.Sprintf("**a*b*a*x%d*y*", i))
		p.AllowedResourcePatterns = append(p.AllowedResourcePatterns, fmt.Sprintf("**b*a*b*y%d*z*", i))
	}
}

// worstRegexes returns a hundred of the most expensive regular expressions that a condition may
// have: one repetition more would have more than [condition.MaxInstructions].
func worstRegexes() []string {
	all := make([]string, 100)
	for i := range all {
		all[i] = document(map[string]any{"resource": map[string]string{"$regex": fmt.Sprintf("(.*.*[ab]){1,86}z%d$",
			i)}})
	}
	return all
}

func macros() []string {
	all := make([]string, 200)
	for i := range all {
		all[i] = document(
			map[string]string{"cel": fmt.Sprintf("intent.metadata.exists(k, intent.metadata.exists(j, j == 'x%d'))",
				i)},
		)
	}
	return all
}

// registration returns a new version of a policy with many patterns.
func registration(a *attack) any {
	p := corpus.ReferencePolicy()
	p.OrganizationID, p.PolicyID, p.Version = a.org, load.PolicyID, load.Number
	for i := range 900 {
		p.AllowedResourcePatterns = append(p.AllowedResourcePatterns,
			fmt.Sprintf("https://h%d.example.com/v%d/{a,b,c,d}/*/x/**", i, load.Number))
		p.BlockedResourcePatterns = append(p.BlockedResourcePatterns,
			fmt.Sprintf("https://h%d.example.com/v%d/*/{e,f}/**", i, load.Number))
	}
	return map[string]any{"policy": p}
}

// dearRule returns a rule with a condition that is expensive to compile. The service compiles
// the condition and then refuses the action of the rule, so the rule is not stored.
func dearRule(*attack) any {
	var source strings.Builder
	for i := range 180 {
		fmt.Fprintf(&source, "input.intent.metadata.k%d != \"v%d\"; startswith(input.intent.resource, \"x%d\")\n", i,
			load.Number, i)
	}
	return rule("dear", document(map[string]string{"rego": source.String()}), `{"decision":"never"}`)
}

// replay returns the same intent each time. load replaces the id of a policy, so the id of the
// intent stands in its place.
func replay(a *attack) any {
	a.in.IntentID, a.in.PolicyID = load.PolicyID, corpus.PolicyID
	return map[string]any{"policy_id": corpus.PolicyID, "intent": a.in}
}
