package rego

import (
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// The counters of an input and, offline, the time of the decision are derived from the intent, but do not
// show it. So the input has the members of the intent from which they are derived:
//
//	"derived_from": {
//		"counters": {"action_type": …, "agent_id": …, "cost": …},
//		"decided_at": {"issued_at": …}}
//
// An absent member is null. A module that reads the derived member denies if the intent has another
// member now.

var (
	keyDerivedFrom             = ast.StringTerm("derived_from")
	keyActionType, keyIssuedAt = ast.StringTerm("action_type"), ast.StringTerm("issued_at")
	// countedMembers has the members of the intent that counters look at.
	countedMembers = []*ast.Term{keyActionType, keyAgentID, keyCost}
)

// derivedFrom says that a member of the input is derived from members of the intent.
func derivedFrom(input ast.Object, name *ast.Term, members ...*ast.Term) {
	intent, _ := input.Get(keyIntent).Value.(ast.Object)
	from := make([][2]*ast.Term, len(members))
	for i, m := range members {
		from[i] = ast.Item(m, ast.NullTerm())
		if v := intent.Get(m); v != nil {
			from[i] = ast.Item(m, v)
		}
	}
	all := ast.NewObject()
	if have := input.Get(keyDerivedFrom); have != nil {
		all, _ = have.Value.(ast.Object)
	}
	all.Insert(name, ast.ObjectTerm(from...))
	input.Insert(keyDerivedFrom, ast.NewTerm(all))
}

// derivedOffline returns the input of an intent. Without a time of the decision it is decided at its
// issued_at, as everywhere offline.
func derivedOffline(policy *ast.Term, in *engine.Input) (ast.Value, error) {
	v, err := queryInput(policy, decidedOffline(in))
	if input, ok := v.(ast.Object); ok && in.DecidedAt.IsZero() {
		derivedFrom(input, keyDecidedAt, keyIssuedAt)
	}
	return v, err
}

// decidedOffline returns in with the time of its decision.
func decidedOffline(in *engine.Input) *engine.Input {
	if in == nil || in.Intent == nil || !in.DecidedAt.IsZero() {
		return in
	}
	at := *in
	at.DecidedAt = at.Intent.Issued()
	return &at
}

// derivedOfInput defines the check that a member is not derived from another intent.
const derivedOfInput = `

derived_current(name) if {
	every member, value in input.derived_from[name] { object.get(input.intent, member, null) == value }
}`

// clockOfInput defines the check of the time of the decision, which in the service is derived from
// nothing.
const clockOfInput = `

decided_at_read if not input.derived_from.decided_at

decided_at_read if derived_current("decided_at")`

// keysOf writes a set of keys.
func keysOf(terms []*ast.Term) string {
	keys := make([]string, len(terms))
	for i, t := range terms {
		s, _ := t.Value.(ast.String)
		keys[i] = condition.Quote(string(s))
	}
	return "{" + strings.Join(keys, ", ") + "}"
}
