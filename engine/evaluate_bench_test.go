package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/corpus/corpustest"
	"writ.example/writ/engine"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

func mustCompile(tb testing.TB, doc *engine.ActionPolicy) *engine.Policy {
	tb.Helper()
	p, err := engine.CompilePolicy(doc)
	if err != nil {
		tb.Fatalf("CompilePolicy: %v", err)
	}
	return p
}

func allowedInput() *engine.Input {
	return &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
}

func BenchmarkEvaluate(b *testing.B) {
	p := mustCompile(b, corpus.ReferencePolicy())
	in := allowedInput()
	for _, n := range []int{0, 1, 100, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			rs := engine.CompileRules(corpus.Rules(n, 1), engine.Options{})
			b.ReportAllocs()
			var got engine.Result
			for b.Loop() {
				got = engine.Evaluate(p, rs, in)
			}
			if got.Decision != engine.Allow {
				b.Fatalf("Evaluate = %v, want allow", got)
			}
		})
	}
}

// BenchmarkEvaluateMixed decides a mix of intents. Half of the intents are refused.
func BenchmarkEvaluateMixed(b *testing.B) {
	p := mustCompile(b, corpus.ReferencePolicy())
	rs := engine.CompileRules(corpus.Rules(1000, 1), engine.Options{})
	inputs := make([]engine.Input, 256)
	for i, in := range corpustest.Intents(len(inputs), 1) {
		inputs[i] = engine.Input{Intent: in, Agent: engine.AgentActive}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if r := engine.Evaluate(p, rs, &inputs[i%len(inputs)]); len(r.Findings) == 0 {
			b.Fatal("no findings")
		}
	}
}

// BenchmarkTrace decides a mix of intents with a trace. Half of its parts also explain the trace.
func BenchmarkTrace(b *testing.B) {
	p := mustCompile(b, corpus.ReferencePolicy())
	intents := corpustest.Intents(256, 1)
	for _, rules := range []int{10, 100, 1000} {
		rs := engine.CompileRules(corpus.Rules(rules, 1), engine.Options{})
		for name, explain := range map[string]bool{"evaluate": false, "explain": true} {
			b.Run(fmt.Sprintf("%s/rules=%d", name, rules), func(b *testing.B) {
				trace := &engine.Trace{}
				for i := 0; b.Loop(); i++ {
					engine.Evaluate(p, rs, &engine.Input{Intent: intents[i%len(intents)], Agent: engine.AgentActive, Trace: trace})
					if explain && len(trace.Explain().Rules) != rules {
						b.Fatal("rules are missing")
					}
				}
			})
		}
	}
}

// BenchmarkFloor runs the checks of the reference policy in plain Go, over the same resource
// readings and compiled globs. The difference between BenchmarkEvaluate and this benchmark is the
// cost of everything else in an evaluation.
func BenchmarkFloor(b *testing.B) {
	f := newFloor(b, corpus.ReferencePolicy())
	in := allowedInput()
	b.ReportAllocs()
	ok := false
	for b.Loop() {
		ok = f.allows(in)
	}
	if !ok {
		b.Fatal("the floor refuses")
	}
}

type floor struct {
	doc              *engine.ActionPolicy
	allowed, denied  map[string]bool
	allowedWild      []string
	deniedWild       []string
	permits, objects *glob.List
}

func newFloor(tb testing.TB, doc *engine.ActionPolicy) *floor {
	f := &floor{doc: doc, allowed: map[string]bool{}, denied: map[string]bool{}}
	split := func(types []string, exact map[string]bool, wild *[]string) {
		for _, t := range types {
			if prefix, ok := strings.CutSuffix(t, "*"); ok {
				*wild = append(*wild, prefix)
			} else {
				exact[t] = true
			}
		}
	}
	split(doc.AllowedActionTypes, f.allowed, &f.allowedWild)
	split(doc.DeniedActionTypes, f.denied, &f.deniedWild)
	var err error
	if f.permits, err = glob.Compile(doc.AllowedResourcePatterns, resource.ForAllow); err != nil {
		tb.Fatal(err)
	}
	if f.objects, err = glob.Compile(doc.BlockedResourcePatterns, resource.ForBlock); err != nil {
		tb.Fatal(err)
	}
	return f
}

func (f *floor) allows(in *engine.Input) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(in.Intent.ActionType, prefix) }
	r, err := resource.Read(in.Intent.Resource)
	if err != nil || f.doc.Status != engine.StatusActive || in.Agent == engine.AgentDisabled ||
		in.RequireRegistered && in.Agent == engine.AgentUnregistered || in.Intent.AgentID != f.doc.AgentID ||
		f.denied[in.Intent.ActionType] || slices.ContainsFunc(f.deniedWild, hasPrefix) ||
		!f.allowed[in.Intent.ActionType] && !slices.ContainsFunc(f.allowedWild, hasPrefix) || in.Usage.Exceeded {
		return false
	}
	if i, _ := f.objects.FirstMatch(&r); i >= 0 || !f.permits.Holds(&r) {
		return false
	}
	cost := in.Intent.Cost
	return cost == nil || cost.AmountMinor <= *f.doc.MaxCostMinor && cost.Currency == f.doc.Currency
}

// BenchmarkCompilePolicy measures compiling a policy that shares its lists with another in use, and one that shares
// them with none.
func BenchmarkCompilePolicy(b *testing.B) {
	b.Run("shared", func(b *testing.B) {
		doc := corpus.ReferencePolicy()
		kept := mustCompile(b, doc)
		b.ReportAllocs()
		for b.Loop() {
			mustCompile(b, doc)
		}
		runtime.KeepAlive(kept)
	})
	b.Run("own", func(b *testing.B) {
		doc := corpus.ReferencePolicy()
		first := doc.AllowedResourcePatterns[0]
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			doc.AllowedResourcePatterns[0] = fmt.Sprint(first, n)
			mustCompile(b, doc)
		}
	})
}
