package rego

import (
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine"
)

// Query is a lowered policy version with its rules, ready to be evaluated. It
// is safe for concurrent use.
type Query struct {
	policy   *engine.ActionPolicy
	question *prepared
	timeout  time.Duration
	now      func() time.Time
	size     int
}

// Prepare lowers and compiles a policy version and its rules. It takes
// milliseconds and a Query some hundreds of kilobytes, so that callers prepare
// one when it is first asked for and keep it as long as the version is current.
func Prepare(p *engine.ActionPolicy, rules []engine.Rule) (*Query, error) {
	files, err := Lower(p, rules)
	if err != nil {
		return nil, err
	}
	c, size, err := compileFiles(files)
	if err != nil {
		return nil, fmt.Errorf("compiling the lowered policy: %w", err)
	}
	pkg := "data." + PackageName(p.PolicyID)
	question, err := prepare(c, fmt.Sprintf("[%s.decision, %s.codes]", pkg, pkg))
	if err != nil {
		return nil, err
	}
	return &Query{policy: p, question: question, timeout: DefaultTimeout, now: time.Now, size: size}, nil
}

func compileFiles(files []File) (*ast.Compiler, int, error) {
	modules := make(map[string]*ast.Module, len(files))
	size := conditionOverhead
	for _, f := range files {
		m, err := ast.ParseModuleWithOpts(f.Name, f.Source, parserOptions())
		if err != nil {
			return nil, 0, explain(err)
		}
		modules[f.Name] = m
		size += sizePerByte * len(f.Source)
	}
	c, err := compile(modules, querySchema())
	return c, size, err
}

// Size returns about how many bytes q keeps resident.
func (q *Query) Size() int { return q.size }

// Evaluate decides an intent. codes are the codes of all findings, sorted. An
// error means that there is no decision, and nothing may be allowed for it: the
// resource cannot be read, a rule's own Rego failed, or it took longer than
// [DefaultTimeout].
func (q *Query) Evaluate(in *engine.Input) (engine.Decision, []engine.Code, error) {
	input, err := Input(q.policy, in)
	if err != nil {
		return engine.Deny, nil, err
	}
	v, err := q.question.ask(input, newDeadline(q.now, q.timeout))
	if err != nil {
		return engine.Deny, nil, fmt.Errorf("evaluating policy %s: %w", q.policy.PolicyID, err)
	}
	return answer(v)
}

// answer reads [decision, codes].
func answer(v ast.Value) (engine.Decision, []engine.Code, error) {
	pair, ok := v.(*ast.Array)
	if !ok || pair.Len() != 2 {
		return engine.Deny, nil, fmt.Errorf("the policy's module has no decision: %v", v)
	}
	name, ok := pair.Elem(0).Value.(ast.String)
	if !ok {
		return engine.Deny, nil, fmt.Errorf("the policy's decision is no string: %v", pair)
	}
	decision, err := engine.ParseDecision(string(name))
	if err != nil {
		return engine.Deny, nil, fmt.Errorf("reading the policy's decision: %w", err)
	}
	set, ok := pair.Elem(1).Value.(ast.Set)
	if !ok || set.Len() == 0 {
		return engine.Deny, nil, fmt.Errorf("the policy's codes are no set: %v", pair)
	}
	codes := make([]engine.Code, 0, set.Len())
	for _, t := range set.Slice() {
		code, ok := t.Value.(ast.String)
		if !ok {
			return engine.Deny, nil, fmt.Errorf("a code of the policy is no string: %v", pair)
		}
		codes = append(codes, engine.Code(code))
	}
	return decision, codes, nil
}
