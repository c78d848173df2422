package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"writ/engine/condition"
	"writ/engine/glob"
)

// Semantics numbers what policies and rules mean. It grows with every release that
// decides otherwise by an unchanged document, so that an external core which holds
// what an earlier release exported decides nothing for this one.
const Semantics = 3

// Policy is one compiled version of an [ActionPolicy]. It is immutable and safe
// for concurrent use.
type Policy struct {
	doc    *ActionPolicy
	checks []compiledCheck
	// allowed is the finding of an intent that nothing objects to.
	allowed []Finding
	// unreadable is the finding of a stored version that does not compile, which
	// has no checks; it is nil otherwise.
	unreadable []Finding
	size       int
}

// compiledCheck is a check as it runs.
type compiledCheck struct {
	program *condition.Program
	finding Finding
	// field, patterns and named are the check's: see [Check].
	field    string
	patterns []string
	named    string
	resource bool
}

// CompilePolicy compiles a policy. It refuses with an [*InvalidError] what
// [ActionPolicy.Validate] refuses, so that nothing unchecked is ever run. The
// Policy keeps p, which must not be modified afterwards.
func CompilePolicy(p *ActionPolicy) (*Policy, error) {
	if p == nil {
		return nil, errors.New("there is no policy")
	}
	var e problems
	if p.validateFields(&e); e.err() != nil {
		return nil, p.Validate()
	}
	c := &Policy{doc: p, allowed: []Finding{{
		Code: CodePolicyAllowed, Outcome: Allow,
		Reason: fmt.Sprintf("%s: version %d of the policy allows it", CodePolicyAllowed, p.Version),
	}}}
	for _, check := range Checks(p) {
		compiled, err := compileCheck(check)
		if err != nil {
			return nil, cmp.Or(p.Validate(), err)
		}
		c.checks = append(c.checks, compiled)
	}
	c.checks = slices.Clip(c.checks)
	c.size = c.measure()
	return c, nil
}

// compileStored compiles a version that was accepted once. One that no longer
// compiles denies, so that what an older writ accepted is never decided by half.
func compileStored(p *ActionPolicy) (*Policy, error) {
	c, err := CompilePolicy(p)
	var refused *InvalidError
	if !errors.As(err, &refused) {
		return c, err
	}
	c = &Policy{doc: p, unreadable: []Finding{{
		Code: CodePolicyUnreadable, Outcome: Deny,
		Reason: fmt.Sprintf("%s: version %d of the policy no longer compiles: register one that does", CodePolicyUnreadable, p.Version),
	}}}
	c.size = c.measure()
	return c, nil
}

// Unreadable reports whether the policy is a stored version that no longer
// compiles. It denies everything.
func (p *Policy) Unreadable() bool { return p.unreadable != nil }

// Warnings names the patterns of p that can match next to nothing. Nothing of it
// makes p invalid.
func (p *ActionPolicy) Warnings() []FieldError {
	var w problems
	for _, list := range []struct {
		field    string
		patterns []string
	}{{fieldAllowedPatterns, p.AllowedResourcePatterns}, {fieldBlockedPatterns, p.BlockedResourcePatterns}} {
		for i, pattern := range list.patterns {
			if problem, instead := glob.Warning(pattern); problem != "" {
				w.add(fmt.Sprintf("%s[%d]", list.field, i), "%s: %s", problem, instead)
			}
		}
	}
	return w.fields
}

func compileCheck(c Check) (compiledCheck, error) {
	program, err := condition.Plan(c.Holds)
	if err != nil {
		return compiledCheck{}, fmt.Errorf("compiling the check %s: %w", c.Code, err)
	}
	return compiledCheck{
		program:  program,
		finding:  Finding{Code: c.Code, Outcome: c.Outcome, Reason: c.Reason},
		field:    c.field,
		patterns: c.patterns,
		named:    c.named,
		resource: c.resource,
	}, nil
}

// Document returns the policy that was compiled. It must not be modified.
func (p *Policy) Document() *ActionPolicy { return p.doc }

// Size returns about how many bytes the policy keeps resident.
func (p *Policy) Size() int { return p.size }

// programBytes is what a check's program takes beside its patterns, measured.
const programBytes = 250

func (p *Policy) measure() int {
	size := int(unsafe.Sizeof(*p) + unsafe.Sizeof(*p.doc))
	for _, list := range [][]string{
		p.doc.AllowedActionTypes, p.doc.DeniedActionTypes,
		p.doc.AllowedResourcePatterns, p.doc.BlockedResourcePatterns,
	} {
		for _, s := range list {
			size += len(s) + int(unsafe.Sizeof(s))
		}
	}
	for i := range p.checks {
		c := &p.checks[i]
		size += int(unsafe.Sizeof(*c)) + len(c.finding.Reason) + programBytes + c.program.Bytes()
	}
	return size
}
