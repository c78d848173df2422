package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/condition/conditiontest"
)

// generator generates random rules and intents.
type generator struct{ conditiontest.Generator }

func newGenerator(seed uint64) generator { return generator{conditiontest.New(seed)} }

func (g generator) intent() *Intent {
	v := g.Intent()
	in := &Intent{
		IntentID: v.IntentID, PolicyID: v.PolicyID, AgentID: v.AgentID, ActionType: v.ActionType, Resource: v.Resource,
		IssuedAt: v.IssuedAt, Metadata: v.Metadata,
	}
	if v.Cost != nil {
		in.Cost = &Cost{AmountMinor: v.Cost.AmountMinor, Currency: v.Cost.Currency}
	}
	return in
}

func (g generator) rule(id int) Rule {
	condition := g.Condition()
	switch g.IntN(25) {
	case 0:
		condition = `{"rego":"x"}`
	case 1:
		condition = `{"unknown":"x"}`
	}
	return Rule{
		ID: fmt.Sprintf("r%02d", id), Name: "rule", Condition: condition,
		Action:   `{"decision":"` + conditiontest.Pick(g.Generator, "allow", "deny", "approval_required") + `"}`,
		Priority: int64(conditiontest.Pick(g.Generator, 100, 200, 300)), IsActive: g.IntN(10) > 0,
		CreatedAt: time.Unix(int64(g.IntN(3)), 0),
	}
}

// regoStub replaces a condition in Rego. Its result depends on the reading in its input.
type regoStub struct{}

func (regoStub) Match(in *RegoInput) (bool, error) {
	if in.Resource == "db" {
		return false, errors.New("stub")
	}
	return strings.HasPrefix(in.Resource, "prod/"), nil
}

func (regoStub) Fits(Decision) error      { return nil }
func (regoStub) Lists() []string          { return nil }
func (regoStub) Documents() []string      { return nil }
func (regoStub) Libraries() []string      { return nil }
func (regoStub) Review() condition.Review { return condition.Review{} }

func (regoStub) Size() int { return 1 }

func (regoStub) Messages(*RegoInput, *Intent) []string { return nil }

func (regoStub) Explain(*RegoInput) ([]ExplainedLeaf, int) { return nil, -1 }

func (regoStub) Reads() RegoReads { return RegoReads{Resource: true, Agent: true} }

func stubOptions() Options {
	return Options{CompileRego: func(string) (RegoCondition, error) { return regoStub{}, nil }}
}
