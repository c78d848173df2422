package bench

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/open-policy-agent/opa/v1/rego"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/corpus/corpustest"
	"writ.example/writ/engine"
)

// TestPeers_DecideTheSame checks that OPA and the engine decide alike, by the lean module and by the exported one.
// OPA's library runs the same modules as an OPA server. About half of the intents are allowed.
func TestPeers_DecideTheSame(t *testing.T) {
	p := corpus.ReferencePolicy()
	compiled, err := engine.CompilePolicy(p)
	must(t, err)
	module, path, err := exported(p)
	must(t, err)
	ask := func(query, module string) func(input any) string {
		prepared, err := rego.New(rego.Query(query), rego.Module("policy.rego", module)).PrepareForEval(t.Context())
		must(t, err)
		return func(input any) string {
			results, err := prepared.Eval(t.Context(), rego.EvalInput(input))
			must(t, err)
			answer, err := json.Marshal(results[0].Expressions[0].Value)
			must(t, err)
			return string(answer)
		}
	}
	lean := ask("data.bench.allow", leanOf(p))
	reasons := ask(strings.ReplaceAll(strings.TrimPrefix(path, "/v1/"), "/", "."), module)
	allowed := 0
	for _, in := range append(corpustest.Intents(400, 1), corpus.AllowedIntent()) {
		want := engine.Evaluate(compiled, nil, &engine.Input{Intent: in, Agent: engine.AgentUnregistered}).Decision == engine.Allow
		text, err := json.Marshal(in)
		must(t, err)
		var document any
		must(t, json.Unmarshal(text, &document))
		if got := lean(map[string]any{"intent": document}); (got == "true") != want {
			t.Errorf("OPA, lean: %s of %s, writ %t", got, text, want)
		}
		input, err := inputOf(p, in)
		must(t, err)
		if got := reasons(input); strings.Contains(got, "policy.allowed") != want {
			t.Errorf("OPA, exported: %s of %s, writ %t", got, text, want)
		}
		if want {
			allowed++
		}
	}
	if allowed < 100 {
		t.Errorf("%d intents are allowed: this test shows little", allowed)
	}
}

func TestExpression(t *testing.T) {
	for glob, c := range map[string]struct{ matches, not string }{
		"db/*/pii":                    {"db/orders/pii", "db/a/b/pii"},
		"https://x.example/v1/**":     {"https://x.example/v1/a/b", "https://x.example/v2/a"},
		"**/.env":                     {".env", "a.env"},
		"queue/checkout-?":            {"queue/checkout-1", "queue/checkout-12"},
		"deploy/{preview,staging}/**": {"deploy/staging/eu", "deploy/production/eu"},
		"mail/*@example.com":          {"mail/ops@example.com", "mail/ops@exampleXcom"},
	} {
		re := regexp.MustCompile(union([]string{"never", glob}))
		if !re.MatchString(c.matches) || re.MatchString(c.not) {
			t.Errorf("%s is %s: want it to match %s and not %s", glob, re, c.matches, c.not)
		}
	}
}

// TestPeers_AreSkippedWhereTheWorkIsNotTheirs checks that a peer is skipped if it cannot do the
// work. For example, only writ would decide by the rules.
func TestPeers_AreSkippedWhereTheWorkIsNotTheirs(t *testing.T) {
	for _, w := range []Work{{Organizations: 1, Policies: 1, Rules: 1}, {Organizations: 1, Policies: 1, Batch: 2}, {Organizations: 2, Policies: 1}} {
		for _, form := range append(Forms("opa"), Forms("cerbos")...) {
			if _, err := (Peers{}).Start(t.Context(), form, w, nil); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s with %+v: %v, want that it is skipped", form, w, err)
			}
		}
	}
}

// TestFind_SaysWhatCannotBeHad checks the error of find when fetch fails.
func TestFind_SaysWhatCannotBeHad(t *testing.T) {
	p := Peers{Cache: t.TempDir(), Say: t.Logf}
	_, err := p.find(t.Context(), "no-such-program", "1", func(context.Context, string) (string, error) { return "", errors.New("no registry") })
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no registry") {
		t.Errorf("find = %v, want that it cannot be had, and why", err)
	}
}

func TestWork_With(t *testing.T) {
	w := Work{Organizations: 1, Policies: 1}
	if got, err := w.With("orgs=1000"); err != nil || got.Organizations != 1000 || w.Organizations != 1 {
		t.Errorf("With = %+v, %v", got, err)
	}
	for _, change := range []string{"", "orgs", "orgs=0", "orgs=x", "size=3"} {
		if got, err := w.With(change); err == nil {
			t.Errorf("With(%q) = %+v, want an error", change, got)
		}
	}
}

// TestPolicy_CrowdsDecideAlike checks that the policies of a crowd differ, and that each allows
// the intent of the requests.
func TestPolicy_CrowdsDecideAlike(t *testing.T) {
	seen := make(map[string]bool)
	for n := range 50 {
		p := corpus.Policy(n)
		compiled, err := engine.CompilePolicy(p)
		if err != nil {
			t.Fatalf("policy %d: %v", n, err)
		}
		in := corpus.AllowedIntent()
		in.PolicyID = p.PolicyID
		if got := engine.Evaluate(compiled, nil, &engine.Input{Intent: in, Agent: engine.AgentUnregistered}); got.Decision != engine.Allow {
			t.Errorf("policy %d: %v", n, got)
		}
		key := p.PolicyID + p.DeniedActionTypes[0] + p.AllowedResourcePatterns[0]
		if seen[p.PolicyID] || seen[key] {
			t.Errorf("policy %d is like another", n)
		}
		seen[p.PolicyID], seen[key] = true, true
	}
}
