package engine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unique"
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
	doc ActionPolicy
	// checks are those of the policy, in one piece of memory (see package flat): of each
	// the row of [checkTable] and what it asks, a [condition.Compact]. The texts of the
	// document's lists follow them. Policies whose checks and texts are the same share
	// them, by the handle.
	checks string
	shared unique.Handle[string]
	// allowed is the finding of an intent that nothing objects to.
	allowed [1]Finding
	// unreadable is the finding of a stored version that does not compile, which
	// has no checks; it is nil otherwise.
	unreadable []Finding
}

// CompilePolicy compiles a policy. It refuses with an [*InvalidError] what
// [ActionPolicy.Validate] refuses, so that nothing unchecked is ever run. The
// Policy keeps a copy of p.
func CompilePolicy(p *ActionPolicy) (*Policy, error) {
	if p == nil {
		return nil, errors.New("there is no policy")
	}
	var e problems
	if p.validateFields(&e); e.err() != nil {
		return nil, p.Validate()
	}
	checks, err := compileChecks(p)
	if err != nil {
		return nil, cmp.Or(p.Validate(), err)
	}
	c := &Policy{doc: *p, shared: unique.Make(checks + p.texts()), allowed: [1]Finding{{
		Code: CodePolicyAllowed, Outcome: Allow,
		Reason: fmt.Sprintf("%s: version %d of the policy allows it", CodePolicyAllowed, p.Version),
	}}}
	c.checks = c.shared.Value()[:len(checks)]
	c.doc.keepTexts(c.shared.Value()[len(checks):])
	return c, nil
}

// lists returns the lists of texts of p.
func (p *ActionPolicy) lists() [4]*[]string {
	return [...]*[]string{&p.AllowedActionTypes, &p.DeniedActionTypes, &p.AllowedResourcePatterns, &p.BlockedResourcePatterns}
}

// texts returns the texts of the lists, one after another.
func (p *ActionPolicy) texts() string {
	var b strings.Builder
	for _, list := range p.lists() {
		for _, s := range *list {
			b.WriteString(s)
		}
	}
	return b.String()
}

// keepTexts replaces the texts of the lists by those in texts, which is what texts
// returned. The lists that p had stay as they are.
func (p *ActionPolicy) keepTexts(texts string) {
	for _, list := range p.lists() {
		*list = slices.Clone(*list)
		for i, s := range *list {
			(*list)[i], texts = texts[:len(s)], texts[len(s):]
		}
	}
}

// compileChecks returns the checks of p as a [Policy] has them.
func compileChecks(p *ActionPolicy) (string, error) {
	var b []byte
	for i := range checkTable {
		r := &checkTable[i]
		if r.set != nil && !r.set(p) {
			continue
		}
		var err error
		if b, err = condition.AppendCompact(binary.LittleEndian.AppendUint32(b, uint32(i)), r.holds(p)); err != nil {
			return "", fmt.Errorf("compiling the check %s: %w", r.code, err)
		}
	}
	return string(b), nil
}

// compileStored compiles a version that was accepted once. One that no longer
// compiles denies, so that what an older writ accepted is never decided by half.
func compileStored(p *ActionPolicy) (*Policy, error) {
	c, err := CompilePolicy(p)
	var refused *InvalidError
	if !errors.As(err, &refused) {
		return c, err
	}
	return &Policy{doc: *p, unreadable: []Finding{{
		Code: CodePolicyUnreadable, Outcome: Deny,
		Reason: fmt.Sprintf("%s: version %d of the policy no longer compiles: register one that does", CodePolicyUnreadable, p.Version),
	}}}, nil
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

// Document returns a copy of the policy that was compiled. It must not be modified.
func (p *Policy) Document() *ActionPolicy { return &p.doc }

// Size returns about how many bytes the policy keeps resident.
func (p *Policy) Size() int {
	size := int(unsafe.Sizeof(*p)) + len(p.checks) + len(p.allowed[0].Reason)
	for _, list := range p.doc.lists() {
		for _, s := range *list {
			size += len(s) + int(unsafe.Sizeof(s))
		}
	}
	return size
}
