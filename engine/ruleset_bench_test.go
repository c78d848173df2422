package engine

import (
	"fmt"
	"runtime"
	"testing"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// benchRules returns n rules as an organization writes them. No rule matches benchIntent, except
// for the last one if match is set.
func benchRules(n int, match bool) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		var doc string
		switch i % 4 {
		case 0:
			doc = fmt.Sprintf(`{"action_type":"team%d.deploy","cost.amount_minor":{"$gt":5000}}`, i)
		case 1:
			doc = fmt.Sprintf(`{"resource":"https://api%d.example.com/**","metadata.env":{"$in":["prod","dr"]}}`, i)
		case 2:
			doc = fmt.Sprintf(`{"cel":"intent.metadata.env == 'prod' && intent.agent_id == 'bot-%d'"}`, i)
		default:
			doc = fmt.Sprintf(`{"all":[{"fact":"agent_id","operator":"equal","value":"bot-%d"},{"fact":"resource","operator":"glob","value":"prod/**"}]}`, i)
		}
		rules[i] = stored(fmt.Sprint(i), "deny", doc, int64(n-i))
	}
	if match {
		rules[n-1] = stored("last", "allow", `{"action_type":"deploy.web","metadata.env":"prod"}`, 0)
	}
	return rules
}

func BenchmarkRuleSet(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		for _, match := range []bool{false, true} {
			rs := CompileRules(benchRules(n, match), Options{})
			for name, set := range map[string]*RuleSet{"indexed": rs, "unindexed": withoutIndex(rs)} {
				b.Run(fmt.Sprintf("rules=%d/match=%v/%s", n, match, name), func(b *testing.B) {
					f := testEvaluation(b, intentWith(nil))
					b.ReportAllocs()
					var findings []Finding
					var failed condition.CauseCounts
					for b.Loop() {
						findings, failed = set.decide(f)
					}
					if (len(findings) == 1) != match || failed.Total() > 0 {
						b.Fatalf("decide = %v, errors %v", findings, failed)
					}
				})
			}
		}
	}
}

func BenchmarkCompileRules(b *testing.B) {
	rules := benchRules(100, true)
	b.ReportAllocs()
	for b.Loop() {
		CompileRules(rules, Options{})
	}
}

func BenchmarkRuleSetUpdate(b *testing.B) {
	rules := benchRules(1000, true)
	rs := CompileRules(rules, Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		rules[500].Condition = fmt.Sprintf(`{"metadata.n":"%d"}`, i)
		rs = rs.Update(rules, Options{})
	}
}

// TestRuleSet_Size compares Size, by which caches are bounded, with the growth of the heap.
func TestRuleSet_Size(t *testing.T) {
	CompileRules(benchRules(4, false), Options{})
	heap := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	for _, o := range []Options{{}, {KeepJSON: true}} {
		before := heap()
		rs := CompileRules(benchRules(1000, false), o)
		took := heap() - before
		if estimate := int64(rs.Size()); estimate < took*2/3 || estimate > took*2 {
			t.Errorf("Size() with %+v = %d, want about the %d bytes that it takes", o, estimate, took)
		}
		runtime.KeepAlive(rs)
	}
}

// TestRuleSet_JSON checks that the JSON that a set keeps is the set's encoding, and that it counts
// in the set's size.
func TestRuleSet_JSON(t *testing.T) {
	inactive := stored("off", "deny", `{}`, 1)
	inactive.IsActive = false
	rules := append(benchRules(5, true), inactive)
	plain, kept := CompileRules(rules, Options{}), CompileRules(rules, Options{KeepJSON: true})
	want := must.Get(plain.JSON())(t)
	got, err := kept.JSON()
	if err != nil || string(got) != string(want) {
		t.Errorf("JSON = %s, %v, want %s", got, err, want)
	}
	if again, _ := kept.JSON(); &again[0] != &got[0] {
		t.Error("JSON was encoded anew, want what is kept")
	}
	if got := kept.Size() - plain.Size(); got != len(want) {
		t.Errorf("keeping %d bytes adds %d to the size", len(want), got)
	}
	next := kept.Update(rules[1:], Options{KeepJSON: true})
	if got, err := next.JSON(); err != nil || len(got) >= len(want) {
		t.Errorf("JSON after an update = %s, %v, want one rule less", got, err)
	}
	var none *RuleSet
	if got, err := none.JSON(); err != nil || string(got) != "[]" {
		t.Errorf("JSON of no set = %s, %v, want []", got, err)
	}
	bad := stored("bad", "deny", `{}`, 1)
	bad.Description = "\xff"
	if got, err := CompileRules([]Rule{bad}, Options{KeepJSON: true}).JSON(); err == nil {
		t.Errorf("JSON of text that is not UTF-8 = %s, want an error", got)
	}
}

// TestRuleSet_DecidesWithoutAllocating checks that the index and every fused comparison allocate
// nothing, both if a rule matches and if none does.
func TestRuleSet_DecidesWithoutAllocating(t *testing.T) {
	for _, match := range []bool{false, true} {
		rs := CompileRules(benchRules(1000, match), Options{})
		for _, resource := range []string{"prod/web/api", "prod//web/%61pi"} {
			f := testEvaluation(t, intentWith(func(in *Intent) { in.Resource = resource }))
			if got := testing.AllocsPerRun(100, func() { rs.decide(f) }); got != 0 {
				t.Errorf("decide of %s with match=%v allocates %v times, want 0", resource, match, got)
			}
		}
	}
}
