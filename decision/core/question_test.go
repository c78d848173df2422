package core

import (
	stdjson "encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	opa "github.com/open-policy-agent/opa/v1/rego"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

// withRules returns testSet with n rules, compiled as in a deployment with an external core.
func withRules(t testing.TB, n int) engine.Set {
	t.Helper()
	set := testSet(t)
	set.Rules = engine.CompileRules(corpus.Rules(n, 1), engine.Options{KeepDigest: true, KeepJSON: true})
	return set
}

// TestQuestion_DoesNotCopyTheRules checks that the memory of a question does not depend on the
// number of rules.
func TestQuestion_DoesNotCopyTheRules(t *testing.T) {
	few, many := withRules(t, 0), withRules(t, 1000)
	rules, err := many.Rules.JSON()
	if err != nil || len(rules) < 200_000 {
		t.Fatalf("the rules have %d bytes, %v: too few for this test", len(rules), err)
	}
	const times = 100
	allocated := func(set engine.Set) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			if _, err := newQuestion(set, testInput(), true); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	allocated(few) // fills the encoder's pools first
	if without, with := allocated(few), allocated(many); with > without+16<<10 {
		t.Errorf("a question with 1,000 rules of %d bytes allocates %d bytes, without %d", len(rules), with, without)
	}
}

// bodyOf returns the body of a question.
func bodyOf(t *testing.T, q question) []byte {
	t.Helper()
	body := must.Get(q.open())(t)
	text := must.Get(io.ReadAll(body))(t)
	if int64(len(text)) != q.len() {
		t.Fatalf("read %d bytes of %d", len(text), q.len())
	}
	return text
}

// inputOf returns the input of a question.
func inputOf(t *testing.T, q question) (input map[string]jsontext.Value) {
	t.Helper()
	var got struct {
		Input map[string]jsontext.Value `json:"input"`
	}
	must.Do(t, json.Unmarshal(bodyOf(t, q), &got, json.RejectUnknownMembers(true)))
	return got.Input
}

// TestDecision_ExternalEvaluationCore_SendsADigest: "a digest of policy, rules and lists as input (the
// rules themselves where the deployment says --core-rules)".
func TestDecision_ExternalEvaluationCore_SendsADigest(t *testing.T) {
	few, many := withRules(t, 10), withRules(t, 1000)
	short, long := must.Get(newQuestion(few, testInput(), false))(t), must.Get(newQuestion(many, testInput(), false))(t)
	if short.len() != long.len() {
		t.Errorf("a question with 10 rules has %d bytes, with 1,000 rules %d", short.len(), long.len())
	}
	for name, tt := range map[string]struct {
		set   engine.Set
		rules bool
	}{"few": {few, false}, "many": {many, false}, "many, with the rules": {many, true}} {
		input := inputOf(t, must.Get(newQuestion(tt.set, testInput(), tt.rules))(t))
		want := fmt.Sprintf("%q", must.Get(engine.Digest(tt.set.Policy.Document(), tt.set.Rules))(t))
		if _, sent := input["rules"]; string(input["digest"]) != want || sent != tt.rules {
			t.Errorf("%s: the digest is %s and rules are sent: %t, want %s and %t", name, input["digest"], sent, want, tt.rules)
		}
	}
}

// TestDecision_ExternalEvaluationCore_AnotherDigestIsNamed: an answer of a core that holds another export
// decides nothing, and the error names the digest that the core needs.
func TestDecision_ExternalEvaluationCore_AnotherDigestIsNamed(t *testing.T) {
	set := testSet(t)
	_, err := serve(t, constant(200, `{}`)).Evaluate(t.Context(), set, testInput())
	digest := must.Get(engine.Digest(set.Policy.Document(), set.Rules))(t)
	if failed := wantReason(t, engine.Result{}, err, Undefined); !strings.Contains(failed.Error(), digest) || failed.RetryAfter() != 0 {
		t.Errorf("Evaluate = %v, want an error that names %s", err, digest)
	}
}

// TestQuestion_IsTheInputOfExports checks that a question has every member of the input that exports
// read: [rego.Input] is what they are tested with.
func TestQuestion_IsTheInputOfExports(t *testing.T) {
	for _, metadata := range []map[string]string{
		nil, {}, {"to": "X <x@OURS.example>, y@theirs.example; z", "env": "prod", "empty": "", "list": `["a","b@c.example"]`},
	} {
		in := testInput()
		in.Intent.Metadata, in.Intent.Cost, in.Agent = metadata, &engine.Cost{AmountMinor: 5, Currency: "EUR"}, engine.AgentActive
		in.Names = engine.AgentNames{ID: "CI", ExternalID: "ext-9"}
		in.Counts = []condition.Count{{Counter: &condition.Counter{Key: "k"}, N: 3}, {Counter: &condition.Counter{Key: "l"}, N: condition.Uncounted}}
		set := testSet(t)
		got := inputOf(t, must.Get(newQuestion(set, in, false))(t))
		var want map[string]jsontext.Value
		must.Do(t, json.Unmarshal([]byte(must.Get(rego.Input(set.Policy.Document(), in))(t).String()), &want))
		for _, member := range []string{"policy", "rules_revision", "semantics", "digest"} {
			if got[member] == nil {
				t.Errorf("the question has no %s", member)
			}
			delete(got, member)
			delete(want, member) // the policy of the core's input is the whole document
		}
		for _, members := range []map[string]jsontext.Value{got, want} {
			for name, value := range members {
				must.Do(t, value.Canonicalize())
				members[name] = value
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the question of %v is another input than that of exports (-exports +question):\n%s", metadata, diff)
		}
	}
}

// TestQuestion_DecidesByAnExport checks that an export which OPA evaluates decides by the question as
// the engine does. Rules that compare addresses read how metadata values are read.
func TestQuestion_DecidesByAnExport(t *testing.T) {
	rules := []engine.Rule{{ID: "r", Name: "theirs", Condition: `{"metadata.to":{"$some":{"$glob":"*@theirs.example"}}}`, Action: `{"decision":"deny"}`, IsActive: true},
		{ID: "s", Name: "listed", Condition: `{"metadata.to":{"$in":{"list":"payees"}}}`, Action: `{"decision":"approval_required"}`, IsActive: true}}
	set, lists := testSet(t), condition.Lists{"payees": condition.NewList([]string{"x@ours.example"})}
	set.Rules = engine.CompileRules(rules, engine.Options{KeepDigest: true, Lists: lists})
	options := []func(*opa.Rego){opa.Query("data.writ.core.result"), opa.StrictBuiltinErrors(true)}
	for _, f := range must.Get(rego.LowerCore([]*engine.ActionPolicy{set.Policy.Document()}, rules, lists))(t) {
		options = append(options, opa.Module(f.Name, f.Source))
	}
	query := must.Get(opa.New(options...).PrepareForEval(t.Context()))(t)
	for to, want := range map[string]engine.Decision{
		"y@theirs.example": engine.Deny, "z@other.example, Y <y@THEIRS.example>": engine.Deny, "x@ours.example": engine.ApprovalRequired,
		"z@other.example": engine.Allow, "": engine.Allow,
	} {
		in := testInput()
		in.Intent.Metadata = map[string]string{"to": to}
		builtin := engine.Evaluate(set.Policy, set.Rules, in)
		q := must.Get(newQuestion(set, in, false))(t)
		var body struct {
			Input any `json:"input"`
		}
		must.Do(t, json.Unmarshal(bodyOf(t, q), &body))
		found := must.Get(query.Eval(t.Context(), opa.EvalInput(body.Input)))(t)
		if len(found) == 0 {
			t.Fatalf("to %q: the export decides nothing", to)
		}
		answer := must.Get(stdjson.Marshal(map[string]any{"result": found[0].Expressions[0].Value}))(t)
		got, err := decision(answer, q)
		if err != nil || got.Decision != want || builtin.Decision != want || !slices.Equal(got.Reasons(), builtin.Reasons()) {
			t.Errorf("to %q: the export decides %v %v, %v, the engine %v %v, want %v", to, got.Decision, got.Reasons(), err, builtin.Decision, builtin.Reasons(), want)
		}
	}
}

// TestQuestion_HoldsTheRulesInForce checks that after a change a question has the new rules. The
// cached JSON of the old rules must be dropped.
func TestQuestion_HoldsTheRulesInForce(t *testing.T) {
	set := testSet(t)
	for n := 2; n <= 3; n++ {
		set.Rules = set.Rules.Update(corpus.Rules(n, 1), engine.Options{KeepDigest: true, KeepJSON: true})
		set.Revisions.Rules = int64(n)
		var got struct {
			Input struct {
				Rules         []engine.Rule `json:"rules"`
				RulesRevision int64         `json:"rules_revision"`
			} `json:"input"`
		}
		q := must.Get(newQuestion(set, testInput(), true))(t)
		for range 2 { // net/http reads the body a second time for a retry
			body := must.Get(q.open())(t)
			text, err := io.ReadAll(body)
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil || int64(len(text)) != q.len() {
				t.Fatalf("read %d bytes of %d: %v", len(text), q.len(), err)
			}
			if len(got.Input.Rules) != n || got.Input.RulesRevision != int64(n) || q.under != (versions{1, int64(n)}) {
				t.Errorf("%d rules of revision %d, asked under %v, want %d of as many writes", len(got.Input.Rules), got.Input.RulesRevision, q.under, n)
			}
		}
	}
}

func BenchmarkQuestion(b *testing.B) {
	for _, n := range []int{0, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			set, in := withRules(b, n), testInput()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := newQuestion(set, in, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCore asks a server that decides by an export in OPA's Go library. It reports the median of
// the whole question, from newQuestion to the answer.
func BenchmarkCore(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			policy := must.Get(engine.CompilePolicy(corpus.ReferencePolicy()))(b)
			set := engine.Set{Policy: policy, Rules: engine.CompileRules(corpus.Rules(n, 1), engine.Options{KeepDigest: true})}
			options := []func(*opa.Rego){opa.Query("data.writ.core.result"), opa.StrictBuiltinErrors(true)}
			for _, f := range must.Get(rego.LowerCore([]*engine.ActionPolicy{policy.Document()}, corpus.Rules(n, 1), nil))(b) {
				options = append(options, opa.Module(f.Name, f.Source))
			}
			query := must.Get(opa.New(options...).PrepareForEval(b.Context()))(b)
			c := serve(b, func(w http.ResponseWriter, r *http.Request) {
				var body struct{ Input any }
				decoder := stdjson.NewDecoder(r.Body)
				decoder.UseNumber()
				err := decoder.Decode(&body)
				found, failed := query.Eval(r.Context(), opa.EvalInput(body.Input))
				if err != nil || failed != nil || len(found) != 1 {
					b.Errorf("Eval = %v, %v, %v", found, err, failed)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_ = stdjson.NewEncoder(w).Encode(map[string]any{"result": found[0].Expressions[0].Value})
			}, func(c *Config) { c.Timeout = time.Minute })
			in := &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive, DecidedAt: corpus.Epoch()}
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				got, err := c.Evaluate(b.Context(), set, in)
				if took = append(took, time.Since(start)); err != nil || got.Decision != engine.Allow {
					b.Fatalf("Evaluate = %v, %v, want allow", got, err)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
		})
	}
}
