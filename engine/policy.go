package engine

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// Semantics is the version of the meaning of policies and rules. It grows with every release that
// decides differently for an unchanged document. An external core whose export has another version
// decides nothing.
const Semantics = 4

// Policy is one compiled version of an [ActionPolicy]. It is immutable and safe
// for concurrent use.
type Policy struct {
	doc ActionPolicy
	*scope
	// allowed is the finding if nothing objected.
	allowed [1]Finding
	// unreadable is the finding of a stored version that does not compile and so has no checks. It
	// is nil for any other policy.
	unreadable []Finding
}

// CompilePolicy compiles a policy. It refuses every policy that [ActionPolicy.Validate] refuses,
// with an [*InvalidError]. So no unchecked policy is ever evaluated. The Policy keeps a copy of p.
func CompilePolicy(p *ActionPolicy) (*Policy, error) {
	if p == nil {
		return nil, errors.New("there is no policy")
	}
	var e problems
	if p.validateFields(&e); e.err() != nil {
		return nil, p.Validate()
	}
	shared, err := sharedScope(p)
	if err != nil {
		return nil, cmp.Or(p.Validate(), err)
	}
	c := &Policy{doc: *p, scope: shared, allowed: [1]Finding{{
		Code: CodePolicyAllowed, Outcome: Allow,
		Reason: fmt.Sprintf("%s: version %d of the policy allows it", CodePolicyAllowed, p.Version),
	}}}
	for i, list := range c.doc.lists() {
		*list = shared.lists[i]
	}
	return c, nil
}

// rows yields the rows of the policy's checks.
func (p *Policy) rows(yield func(r *checkRow) bool) {
	for i := range checkTable {
		if r := &checkTable[i]; p.unreadable == nil && (r.set == nil || r.set(&p.doc)) && !yield(r) {
			return
		}
	}
}

// lists returns p's lists of action types and of resource patterns.
func (p *ActionPolicy) lists() [4]*[]string {
	return [...]*[]string{&p.AllowedActionTypes, &p.DeniedActionTypes, &p.AllowedResourcePatterns,
		&p.BlockedResourcePatterns}
}

// CompileStored compiles a version that was accepted before. If the version no longer compiles,
// the result denies everything, and no part of the version is used.
func CompileStored(p *ActionPolicy) (*Policy, error) {
	c, err := CompilePolicy(p)
	var refused *InvalidError
	if !errors.As(err, &refused) {
		return c, err
	}
	return &Policy{doc: *p, unreadable: []Finding{{
		Code: CodePolicyUnreadable, Outcome: Deny,
		Reason: fmt.Sprintf("%s: version %d of the policy no longer compiles: register one that does",
			CodePolicyUnreadable, p.Version),
		Cause: condition.CauseBroken.String(),
	}}}, nil
}

// Unreadable reports whether the policy is a stored version that no longer compiles. Such a policy
// denies everything.
func (p *Policy) Unreadable() bool { return p.unreadable != nil }

// Warnings returns a warning for each pattern of p that can match hardly any resource. Such
// patterns are valid.
func (p *ActionPolicy) Warnings() []FieldError {
	var w problems
	for _, list := range []struct {
		field    string
		patterns []string
		side     resource.Side
	}{
		{fieldAllowedPatterns, p.AllowedResourcePatterns, resource.ForAllow},
		{fieldBlockedPatterns, p.BlockedResourcePatterns, resource.ForBlock},
	} {
		for i, pattern := range list.patterns {
			if problem, instead := glob.Warning(pattern, list.side); problem != "" {
				w.add(fmt.Sprintf("%s[%d]", list.field, i), "%s: %s", problem, instead)
			}
		}
	}
	return w.fields
}

// Document returns the policy that was compiled. It must not be modified.
func (p *Policy) Document() *ActionPolicy { return &p.doc }

// Size returns the approximate size of the policy in memory, in bytes.
func (p *Policy) Size() int {
	size := int(unsafe.Sizeof(*p)) + len(p.allowed[0].Reason)
	if p.scope != nil {
		size += p.size()
	}
	for _, list := range p.doc.lists() {
		for _, s := range *list {
			size += len(s) + int(unsafe.Sizeof(s))
		}
	}
	return size
}
