package lint_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/rego"
)

// scale returns how often a property is tried: n times, or 5n times with WRIT_SOAK=1.
func scale(n int) int {
	if os.Getenv("WRIT_SOAK") != "" {
		return 5 * n
	}
	return n
}

// generator makes rules that shadow each other.
type generator struct{ conditiontest.Generator }

func (g generator) intent() *engine.Intent {
	v := g.Intent()
	in := &engine.Intent{
		IntentID: v.IntentID, PolicyID: v.PolicyID, AgentID: v.AgentID, ActionType: v.ActionType, Resource: v.Resource,
		IssuedAt: v.IssuedAt, Metadata: v.Metadata,
	}
	if v.Cost != nil {
		in.Cost = &engine.Cost{AmountMinor: v.Cost.AmountMinor, Currency: v.Cost.Currency}
	}
	return in
}

// part returns a condition with a single comparison.
func (g generator) part() string {
	return conditiontest.Pick(g.Generator,
		`{"action_type":"deploy"}`, `{"action_type":{"$in":["deploy","pay"]}}`, `{"action_type":"sql.*"}`, `{"action_type":"sql.write"}`, `{"action_type":{"$ne":"pay"}}`,
		`{"resource":"prod/**"}`, `{"resource":"prod/*"}`, `{"resource":"prod/db"}`, `{"resource":{"$glob":["prod/**","staging/**"]}}`, `{"resource":{"$ne":"prod/db"}}`,
		`{"resource":"https://api.example.com/**"}`, `{"resource":{"$not":{"$glob":"prod/**"}}}`, `{"resource":{"$in":["prod/db","staging/db"]}}`,
		`{"cost.amount_minor":{"$gt":1}}`, `{"cost.amount_minor":{"$gte":2}}`, `{"cost.amount_minor":{"$lt":3}}`, `{"cost":{"$exists":true}}`, `{"cost":{"$exists":false}}`,
		`{"cost.amount_minor":{"$lt":0}}`, `{"cost.currency":"EUR"}`, `{"cost.amount_minor":{"$ne":2}}`,
		`{"metadata.env":"prod"}`, `{"metadata.env":{"$in":["prod","dr"]}}`, `{"metadata.env":{"$exists":true}}`, `{"metadata.env":{"$ne":"prod"}}`, `{"metadata.env":"p*"}`,
		`{"metadata.n":{"$gt":1}}`, `{"metadata.n":{"$gte":7}}`, `{"metadata.n":{"$lte":0}}`, `{"metadata":{"$exists":false}}`, `{"metadata.env":{"$some":["prod"]}}`,
		`{"metadata.env":{"$size":{"$gt":0}}}`, `{"metadata.env":{"$every":["prod","dr"]}}`, `{"metadata.env":{"$regex":"^p"}}`,
		`{"agent_id":"team-a/*"}`, `{"agent.id":"team-a/x"}`, `{"agent.status":{"$ne":"disabled"}}`, `{"agent.status":"active"}`,
		`{"issued_at":{"$gt":"2026-01-31T12:00:00Z"}}`, `{"issued_at":{"$gte":"2026-01-31T11:00:00Z"}}`,
		`{"decided_at":{"$gt":"2026-01-31T12:00:00Z"}}`, `{"decided_at":{"$lte":"2026-01-31T12:00:00Z"}}`, `{}`)
}

// condition returns one of these: a few parts together, a condition in CEL, or any generated
// condition.
func (g generator) condition() string {
	switch g.IntN(8) {
	case 0:
		return g.Condition()
	case 1:
		return conditiontest.Pick(g.Generator,
			`{"cel":"intent.action_type == 'deploy'"}`, `{"cel":"intent.action_type in ['deploy', 'pay'] && intent.cost.amount_minor > 1"}`,
			`{"cel":"intent.metadata.env == 'prod'"}`, `{"cel":"'env' in intent.metadata && intent.metadata.env == 'prod'"}`,
			`{"cel":"resource_glob('prod/**', intent.resource)"}`, `{"cel":"resource_glob(['prod/*', 'x'], intent.resource) && intent.action_type == 'deploy'"}`,
			`{"cel":"intent.resource.startsWith('prod/')"}`, `{"cel":"intent.resource == 'prod/db' || intent.resource == 'staging/db'"}`, `{"cel":"intent.resource != 'prod/db'"}`,
			`{"cel":"intent.resource.startsWith('prod/d') && !(intent.action_type == 'pay')"}`, `{"cel":"int(intent.metadata.n) > 1"}`, `{"cel":"int(intent.metadata.n) >= 7"}`,
			`{"cel":"!(intent.resource in ['prod/db', 'db'])"}`, `{"cel":"has(intent.cost) && intent.cost.amount_minor >= 2"}`, `{"cel":"size(intent.resource) > 4 && intent.action_type == 'deploy'"}`)
	}
	parts := make([]string, 1+g.IntN(3))
	for i := range parts {
		parts[i] = g.part()
	}
	return fmt.Sprintf(`{"$%s":[%s]}`, conditiontest.Pick(g.Generator, "and", "and", "and", "or", "nor"), strings.Join(parts, ","))
}

func (g generator) rule(i int, before []engine.Rule) engine.Rule {
	r := engine.Rule{
		ID: fmt.Sprintf("r%02d", i), Name: fmt.Sprintf("rule %d", i), Condition: g.condition(),
		Action:   `{"decision":"` + conditiontest.Pick(g.Generator, "allow", "deny", "approval_required") + `"}`,
		Priority: int64(conditiontest.Pick(g.Generator, 100, 200, 300)), IsActive: g.IntN(20) > 0,
	}
	if g.IntN(3) > 0 {
		r.CreatedAt = time.Unix(int64(g.IntN(2)), 0)
	}
	if len(before) == 0 || g.IntN(2) == 0 || strings.Contains(r.Condition, `"cel"`) || strings.Contains(r.Condition, `"all"`) {
		return r
	}
	// Take the condition of an earlier rule and narrow it.
	other := before[g.IntN(len(before))]
	if strings.Contains(other.Condition, `"cel"`) {
		var doc map[string]string
		if json.Unmarshal([]byte(other.Condition), &doc) == nil {
			source, _ := json.Marshal("(" + doc["cel"] + ") && intent.agent_id != 'bot'")
			r.Condition = `{"cel":` + string(source) + `}`
		}
	} else if strings.HasPrefix(other.Condition, `{"$`) {
		r.Condition = `{"$and":[` + other.Condition + "," + g.part() + `]}`
	}
	return r
}

func (g generator) rules() []engine.Rule {
	var rules []engine.Rule
	for i := range 2 + g.IntN(7) {
		rules = append(rules, g.rule(i, rules))
	}
	return rules
}

// TestShadowed_NeverDecides checks that a rule that is reported as shadowed never decides. Without
// all such rules the decisions stay the same.
func TestShadowed_NeverDecides(t *testing.T) {
	const perSet = 100
	policy, err := engine.CompilePolicy(&engine.ActionPolicy{
		PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", AllowedActionTypes: []string{"*"},
		Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	options := engine.Options{CompileRego: rego.CompileCondition}
	rulesOf, reported, decided := 0, 0, 0
	for seed := range uint64(scale(1000)) {
		g := generator{conditiontest.New(seed)}
		rules := g.rules()
		never := map[string]bool{}
		for _, w := range lint.Rules(compile(t, rules)) {
			if w.Rule == "shadowed" {
				var i int
				if _, err := fmt.Sscanf(w.Field, "rules[%d].condition", &i); err != nil {
					t.Fatalf("field %s: %v", w.Field, err)
				}
				never[rules[i].ID] = true
			}
		}
		rulesOf += len(rules)
		reported += len(never)
		all := engine.CompileRules(rules, options)
		rest := engine.CompileRules(slices.DeleteFunc(slices.Clone(rules), func(r engine.Rule) bool { return never[r.ID] }), options)
		for range perSet {
			in := &engine.Input{Intent: g.intent(), DecidedAt: g.Intent().DecidedAt, Agent: conditiontest.Pick(g.Generator, engine.AgentActive, engine.AgentUnregistered)}
			if err := in.Intent.Validate(); err != nil {
				continue
			}
			got, without := engine.Evaluate(policy, all, in), engine.Evaluate(policy, rest, in)
			for _, f := range got.Findings {
				if f.RuleID != "" {
					decided++
				}
				if never[f.RuleID] {
					t.Fatalf("seed %d: rule %s is reported as shadowed and decides %+v\n%s", seed, f.RuleID, in.Intent, show(rules))
				}
			}
			if got.Decision != without.Decision || len(got.Findings) != len(without.Findings) || got.Findings[0].RuleID != without.Findings[0].RuleID {
				t.Fatalf("seed %d: %v, without the shadowed rules %v, of %+v\n%s", seed, got, without, in.Intent, show(rules))
			}
		}
	}
	t.Logf("%d rules, %d reported, %d findings of rules", rulesOf, reported, decided)
	if reported*10 < rulesOf || decided*2 < scale(1000)*perSet {
		t.Errorf("%d of %d rules are reported and %d findings are of rules: too few", reported, rulesOf, decided)
	}
}

func show(rules []engine.Rule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%s %d %s %s %v %v\n", r.ID, r.Priority, r.Action, r.Condition, r.IsActive, r.CreatedAt.Unix())
	}
	return b.String()
}
