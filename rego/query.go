package rego

import (
	"fmt"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine"
	"writ/engine/condition"
)

// Query is a lowered policy version with its rules, ready to be evaluated. It
// is safe for concurrent use.
type Query struct {
	policy *engine.ActionPolicy
	// document is the policy as it is in the input, outcomes what each code
	// amounts to.
	document *ast.Term
	outcomes map[engine.Code]engine.Decision
	codes    *prepared
	timeout  time.Duration
	now      func() time.Time
	size     int
}

// Prepare lowers and compiles a policy version, its rules and the lists that they look in. It takes
// milliseconds and a Query some hundreds of kilobytes, so that callers prepare
// one when it is first asked for and keep it as long as the version is current.
func Prepare(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) (*Query, error) {
	files, err := Lower(p, rules, lists)
	if err != nil {
		return nil, err
	}
	c, size, err := compileFiles(files, querySchema())
	if err != nil {
		return nil, fmt.Errorf("compiling the lowered policy: %w", err)
	}
	codes, err := prepare(c, document(p, "codes"), patternsKept(size))
	if err != nil {
		return nil, err
	}
	return &Query{
		policy: p, document: policyTerm(p), outcomes: outcomes(p), codes: codes,
		timeout: QueryTimeout, now: time.Now, size: compiledOverhead + compiledPerByte*size,
	}, nil
}

// outcomes is what the module's decision makes of each code. It is looked up
// here because asking the module for it as well takes half as long again.
func outcomes(p *engine.ActionPolicy) map[engine.Code]engine.Decision {
	m := map[engine.Code]engine.Decision{
		engine.CodeResourceUnreadable: engine.Deny, engine.CodeCheckError: engine.Deny,
		engine.CodePolicyAllowed: engine.Allow, engine.CodeRuleAllow: engine.Allow,
		engine.CodeRuleApprovalRequired: engine.ApprovalRequired, engine.CodeRuleDeny: engine.Deny,
	}
	for _, c := range engine.Checks(p) {
		m[c.Code] = c.Outcome
	}
	return m
}

// document refers to a document of p's module.
func document(p *engine.ActionPolicy, name string) ast.Ref {
	ref := ast.DefaultRootRef.Copy()
	for part := range strings.SplitSeq(PackageName(p.PolicyID)+"."+name, ".") {
		ref = ref.Append(ast.StringTerm(part))
	}
	return ref
}

func compileFiles(files []File, schema any) (*ast.Compiler, int, error) {
	modules := make(map[string]*ast.Module, len(files))
	size := 0
	for _, f := range files {
		m, err := ast.ParseModuleWithOpts(f.Name, f.Source, parserOptions())
		if err != nil {
			return nil, 0, explain(err)
		}
		modules[f.Name] = m
		size += len(f.Source)
	}
	c, err := compile(modules, schema)
	return c, size, err
}

// Size returns about how many bytes q keeps resident.
func (q *Query) Size() int { return q.size }

// Evaluate decides an intent. codes are the codes of all findings, sorted. An
// error means that there is no decision, and nothing may be allowed for it: the
// resource cannot be read, a rule's own Rego failed, or it took longer than
// [QueryTimeout].
func (q *Query) Evaluate(in *engine.Input) (engine.Decision, []engine.Code, error) {
	input, err := queryInput(q.document, in)
	if err != nil {
		return engine.Deny, nil, err
	}
	v, err := q.codes.ask(input, newBudget(nil, q.now, q.timeout))
	if err != nil {
		return engine.Deny, nil, fmt.Errorf("evaluating policy %s: %w", q.policy.PolicyID, err)
	}
	set, ok := v.(ast.Set)
	if !ok || set.Len() == 0 {
		return engine.Deny, nil, fmt.Errorf("evaluating policy %s: it has no codes: %v", q.policy.PolicyID, v)
	}
	decision, codes, err := q.decide(set.Slice())
	if err != nil || in.Session.CompiledSession == nil {
		return decision, codes, err
	}
	codes, err = q.inSession(in, input, codes)
	if err != nil {
		return engine.Deny, nil, err
	}
	for _, code := range codes {
		if outcome, known := code.Outcome(); known {
			decision = max(decision, outcome)
		}
	}
	return decision, codes, nil
}

// decide returns the most restrictive outcome of codes.
func (q *Query) decide(terms []*ast.Term) (engine.Decision, []engine.Code, error) {
	decision := engine.Allow
	codes := make([]engine.Code, len(terms))
	for i, t := range terms {
		s, ok := t.Value.(ast.String)
		outcome, known := q.outcomes[engine.Code(s)]
		if !ok || !known {
			return engine.Deny, nil, fmt.Errorf("evaluating policy %s: %v is no code", q.policy.PolicyID, t)
		}
		codes[i] = engine.Code(s)
		decision = max(decision, outcome)
	}
	return decision, codes, nil
}
