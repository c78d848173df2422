package engine

import (
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"writ/engine/resource"
)

// varID numbers the variables of an evaluation.
type varID uint8

const (
	varIntentID varID = iota
	varIntentPolicyID
	varIntentAgentID
	varActionType
	varResource
	varCostAmount
	varCostCurrency
	varMetadata
	varIssuedAt
	varAgentID
	varAgentStatus
	varPolicyID
	varPolicyVersion
	varPolicyOrganizationID
	varPolicyAgentID
	varPolicyStatus
	varCostPresent
	varMetadataPresent
	varUsageExceeded
	varRequireRegistered
	varCount
	noVar = varCount
)

// variable declares one variable: its name in expressions, its type, and the
// greatest size that a value of it can have.
type variable struct {
	id   varID
	name string
	typ  *cel.Type
	max  uint64
	// optional variables are absent from some intents.
	optional bool
}

var ruleVariables = []variable{
	{id: varIntentID, name: "intent.intent_id", typ: cel.StringType, max: 36},
	{id: varIntentPolicyID, name: "intent.policy_id", typ: cel.StringType, max: 36},
	{id: varIntentAgentID, name: "intent.agent_id", typ: cel.StringType, max: MaxAgentID},
	{id: varActionType, name: "intent.action_type", typ: cel.StringType, max: MaxActionType},
	{id: varResource, name: "intent.resource", typ: cel.StringType, max: MaxResource},
	{id: varCostAmount, name: "intent.cost.amount_minor", typ: cel.IntType, max: 1, optional: true},
	{id: varCostCurrency, name: "intent.cost.currency", typ: cel.StringType, max: 3, optional: true},
	{id: varMetadata, name: "intent.metadata", typ: cel.MapType(cel.StringType, cel.StringType), max: MaxMetadataKeys, optional: true},
	{id: varIssuedAt, name: "intent.issued_at", typ: cel.TimestampType, max: 1},
	{id: varAgentID, name: "agent.id", typ: cel.StringType, max: MaxAgentID},
	{id: varAgentStatus, name: "agent.status", typ: cel.StringType, max: 16},
	{id: varPolicyID, name: "policy.policy_id", typ: cel.StringType, max: 36},
	{id: varPolicyVersion, name: "policy.version", typ: cel.IntType, max: 1},
	{id: varPolicyOrganizationID, name: "policy.organization_id", typ: cel.StringType, max: MaxOrganizationID},
	{id: varPolicyAgentID, name: "policy.agent_id", typ: cel.StringType, max: MaxAgentID},
	{id: varPolicyStatus, name: "policy.status", typ: cel.StringType, max: 16},
	{id: varCostPresent, name: varHasCost, typ: cel.BoolType, max: 1, optional: true},
	{id: varMetadataPresent, name: varHasMetadata, typ: cel.BoolType, max: 1, optional: true},
}

var checkVariables = []variable{
	{id: varUsageExceeded, name: "usage.exceeded", typ: cel.BoolType, max: 1},
	{id: varRequireRegistered, name: "deployment.require_registered_agents", typ: cel.BoolType, max: 1},
}

// reservedRoots are the names that no local variable of an expression may hide.
var reservedRoots = map[string]bool{
	"intent": true, "agent": true, "policy": true, "usage": true, "deployment": true,
}

func findVariable(name string) (variable, bool) {
	for _, v := range ruleVariables {
		if v.name == name {
			return v, true
		}
	}
	for _, v := range checkVariables {
		if v.name == name {
			return v, true
		}
	}
	return variable{}, false
}

func isRequired(name string) bool {
	v, ok := findVariable(name)
	return ok && !v.optional
}

func knownNames() string {
	var names []string
	for _, v := range ruleVariables {
		if !strings.HasPrefix(v.name, "@") {
			names = append(names, v.name)
		}
	}
	return strings.Join(names, ", ")
}

// sizes bounds the variables for the estimate of a condition's cost.
type sizes struct{ parts *parts }

// EstimateSize implements [checker.CostEstimator].
func (s sizes) EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	if size := s.parts.element(node.Expr()); size != nil {
		return size
	}
	path := node.Path()
	if len(path) == 0 {
		return nil
	}
	if path[0] == "intent.metadata" && len(path) > 1 {
		size := uint64(MaxMetadataValue)
		if path[1] == "@keys" {
			size = MaxMetadataKey
		}
		return &checker.SizeEstimate{Max: size}
	}
	if v, ok := findVariable(path[0]); ok {
		return &checker.SizeEstimate{Max: v.max}
	}
	return nil
}

// EstimateCallCost implements [checker.CostEstimator].
func (s sizes) EstimateCallCost(function, _ string, target *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
	switch {
	case function == fnSplit && target != nil:
		return s.parts.split(*target)
	case function == fnItems && len(args) == 1:
		return s.parts.split(args[0])
	}
	if !isPatternFunction(function) || len(args) != 2 {
		return textCall(function, target, args)
	}
	patterns, subject := uint64(1), uint64(MaxResource)
	list := args[0]
	if function == fnResourceAny || function == fnResourceEvery {
		list = args[1]
	} else if s := args[1].ComputedSize(); s != nil && args[1].Type().Kind() == types.StringKind {
		subject = s.Max
	}
	if s := list.ComputedSize(); s != nil && list.Type().Kind() == types.ListKind {
		patterns = s.Max
	}
	return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: 1, Max: 1 + patterns*(1+subject/10)}}
}

// frame is the activation of one evaluation: every program of a policy and of
// its rules reads the same frame. Frames come from a [framePool], hold the
// intent only until they are released, and are used by one goroutine at a time.
type frame struct {
	exec     *interpreter.ExecutionFrame
	in       *Input
	policy   *ActionPolicy
	readings resource.Readings
	// reading is the value of intent.resource, and every says whether a rule that
	// allows is asked, which has to match to every reader of it.
	reading resource.Reading
	every   bool
	// work is what the conditions did together: see maxWork. spent is how long
	// those in Rego took.
	work  Work
	spent time.Duration
	// boxed are the values that an expression asked for as CEL values, made
	// at most once per evaluation.
	boxed [varCount]ref.Val
}

// framePool recycles frames.
type framePool struct{ pool sync.Pool }

func (p *framePool) get(policy *ActionPolicy, in *Input) *frame {
	f, _ := p.pool.Get().(*frame)
	if f == nil {
		f = &frame{}
	}
	if f.exec == nil {
		f.exec = &interpreter.ExecutionFrame{Activation: f}
	}
	f.policy, f.in = policy, in
	f.reading = raw(in.Intent)
	return f
}

// put recycles f, which must not be used afterwards.
func (p *framePool) put(f *frame) {
	*f = frame{exec: f.exec}
	p.pool.Put(f)
}

// raw is the resource as it was written, to all readers.
func raw(in *Intent) resource.Reading {
	return resource.Reading{Text: in.Resource, Readers: resource.All}
}

// setReading makes r the value of intent.resource until it is set again.
func (f *frame) setReading(r resource.Reading) {
	if r.Text != f.reading.Text {
		f.boxed[varResource] = nil
	}
	f.reading = r
}

// Parent implements [interpreter.Activation].
func (f *frame) Parent() interpreter.Activation { return nil }

// ResolveName implements [interpreter.Activation].
func (f *frame) ResolveName(name string) (any, bool) {
	v, ok := findVariable(name)
	if !ok {
		return nil, false
	}
	if f.boxed[v.id] == nil {
		f.boxed[v.id] = f.box(v.id)
	}
	return f.boxed[v.id], true
}

// box returns the CEL value of a variable, or a CEL error where it has none.
func (f *frame) box(id varID) ref.Val {
	switch id {
	case varMetadata:
		return newOrderedMetadata(f.in.Intent.Metadata)
	case varIssuedAt:
		t, err := parseTime(f.in.Intent.IssuedAt)
		if err != nil {
			return types.NewErr("intent.issued_at is not an RFC 3339 time")
		}
		return types.Timestamp{Time: t}
	case varCostPresent, varMetadataPresent, varUsageExceeded, varRequireRegistered:
		return types.Bool(f.boolean(id))
	case varCostAmount, varPolicyVersion:
		n, ok := f.integer(id)
		if !ok {
			return errNoCost()
		}
		return types.Int(n)
	}
	s, ok := f.str(id)
	if !ok {
		return errNoCost()
	}
	return types.String(s)
}

func errNoCost() ref.Val { return types.WrapErr(&absentError{"the intent has no cost"}) }

func (f *frame) boolean(id varID) bool {
	switch id {
	case varCostPresent:
		return f.in.Intent.Cost != nil
	case varMetadataPresent:
		return f.in.Intent.Metadata != nil
	case varUsageExceeded:
		return f.in.Usage.Exceeded
	default:
		return f.in.RequireRegistered
	}
}

// integer returns the value of an integer variable, or false where it is absent.
func (f *frame) integer(id varID) (int64, bool) {
	if id == varPolicyVersion {
		return f.policy.Version, true
	}
	if c := f.in.Intent.Cost; c != nil {
		return c.AmountMinor, true
	}
	return 0, false
}

// str returns the value of a string variable, or false where it is absent.
func (f *frame) str(id varID) (string, bool) {
	in := f.in.Intent
	switch id {
	case varIntentID:
		return in.IntentID, true
	case varIntentPolicyID:
		return in.PolicyID, true
	case varIntentAgentID, varAgentID:
		return in.AgentID, true
	case varActionType:
		return in.ActionType, true
	case varResource:
		return f.reading.Text, true
	case varCostCurrency:
		if in.Cost == nil {
			return "", false
		}
		return in.Cost.Currency, true
	case varAgentStatus:
		return f.in.Agent.String(), true
	case varPolicyID:
		return f.policy.PolicyID, true
	case varPolicyOrganizationID:
		return f.policy.OrganizationID, true
	case varPolicyAgentID:
		return f.policy.AgentID, true
	case varPolicyStatus:
		return string(f.policy.Status), true
	}
	return "", false
}

// String returns the status as conditions see it.
func (s AgentStatus) String() string {
	if s == AgentUnregistered {
		return "unregistered"
	}
	return string(s)
}
