package rego

import (
	"errors"
	"strconv"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine"
)

// Input returns the input document of a lowered policy; [Lower] says what is in
// it. Its String is JSON. It is an error where the resource cannot be read.
func Input(p *engine.ActionPolicy, in *engine.Input) (ast.Value, error) {
	if in == nil || in.Intent == nil {
		return nil, errors.New("there is no intent")
	}
	readings, err := engine.ReadResource(in.Intent.Resource)
	if err != nil {
		return nil, err
	}
	var usage, o object
	usage.add("exceeded", ast.Boolean(in.Usage.Exceeded))
	o.add("intent", intentValue(in.Intent, in.Intent.Resource))
	o.add("agent", agentValue(in.Intent.AgentID, in.Agent))
	o.add("policy", policyValue(p))
	o.add("usage", usage.value())
	o.add("require_registered_agents", ast.Boolean(in.RequireRegistered))
	o.add("readings", readingsValue(&readings))
	return o.value(), nil
}

func readingsValue(r *engine.Readings) ast.Value {
	blocked := make([]*ast.Term, r.Len())
	for i := range blocked {
		blocked[i] = ast.StringTerm(r.At(i))
	}
	allowed := make([]*ast.Term, r.NormalLen())
	for i := range allowed {
		allowed[i] = ast.StringTerm(r.NormalAt(i))
	}
	var o object
	o.add("blocked", ast.NewArray(blocked...))
	o.add("allowed", ast.NewArray(allowed...))
	return o.value()
}

// conditionInput returns the input document of a condition.
func conditionInput(in *engine.RegoInput) ast.Value {
	var o object
	o.add("intent", intentValue(in.Intent, in.Resource))
	o.add("agent", agentValue(in.AgentID, in.Agent))
	o.add("policy", policyValue(in.Policy))
	return o.value()
}

// intentValue is the intent with resource in the place of its own.
func intentValue(in *engine.Intent, resource string) ast.Value {
	var o object
	o.addString("intent_id", in.IntentID)
	o.addString("policy_id", in.PolicyID)
	o.addString("agent_id", in.AgentID)
	o.addString("action_type", in.ActionType)
	o.addString("resource", resource)
	o.addString("issued_at", in.IssuedAt)
	if in.Cost != nil {
		var cost object
		cost.addInt("amount_minor", in.Cost.AmountMinor)
		cost.addString("currency", in.Cost.Currency)
		o.add("cost", cost.value())
	}
	if in.Metadata != nil {
		var metadata object
		for k, v := range in.Metadata {
			metadata.addString(k, v)
		}
		o.add("metadata", metadata.value())
	}
	return o.value()
}

func agentValue(id string, status engine.AgentStatus) ast.Value {
	var o object
	o.addString("id", id)
	o.addString("status", status.String())
	return o.value()
}

func policyValue(p *engine.ActionPolicy) ast.Value {
	var o object
	o.addString("policy_id", p.PolicyID)
	o.addInt("version", p.Version)
	o.addString("organization_id", p.OrganizationID)
	o.addString("agent_id", p.AgentID)
	o.addString("status", string(p.Status))
	return o.value()
}

// object is an object in the making.
type object [][2]*ast.Term

func (o *object) add(key string, v ast.Value) {
	*o = append(*o, [2]*ast.Term{ast.InternedTerm(key), ast.NewTerm(v)})
}

func (o *object) addString(key, value string) { o.add(key, ast.String(value)) }

func (o *object) addInt(key string, value int64) {
	o.add(key, ast.Number(strconv.FormatInt(value, 10)))
}

func (o *object) value() ast.Value { return ast.NewObject(*o...) }
