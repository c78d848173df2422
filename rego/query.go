package rego

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Query is a lowered policy version with its rules, ready for evaluation. It is safe for
// concurrent use.
type Query struct {
	policy *engine.ActionPolicy
	// document is the policy as it is in the input.
	document *ast.Term
	codes    *prepared
	// lists has the documents that the rules read below root. The query reads them as conditions do, because
	// compiling them would take seconds.
	lists   condition.Lists
	root    storage.Path
	timeout time.Duration
	now     func() time.Time
	size    int
}

// Prepare lowers and compiles a policy version, its rules, their lists and their libraries. Preparing takes
// milliseconds, and a Query keeps some hundreds of kilobytes. So callers prepare a Query at its
// first use, and keep it while the version is current.
func Prepare(
	p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries ...engine.Library,
) (*Query, error) {
	files, set, err := lower(PackageName(p.PolicyID), heldMetadata, p, rules, lists, libraries)
	if err != nil {
		return nil, err
	}
	documents := documentsRead(set)
	if err := checkListed(lists, documents); err != nil {
		return nil, err
	}
	if len(documents) == 0 {
		lists = nil
	}
	c, size, err := compileFiles(files, querySchema())
	if err != nil {
		return nil, fmt.Errorf("compiling the lowered policy: %w", err)
	}
	codes, err := prepare(c, ast.MustParseRef("data."+PackageName(p.PolicyID)+".codes"), patternsKept(size))
	if err != nil {
		return nil, err
	}
	return &Query{
		policy: p, document: policyTerm(p), codes: codes, lists: lists, root: documentsPath(p.PolicyID),
		timeout: QueryTimeout, now: time.Now, size: compiledOverhead + compiledPerByte*size,
	}, nil
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

// Size estimates the bytes that q keeps resident.
func (q *Query) Size() int { return q.size }

// Evaluate decides an intent. It also returns the codes of all findings, sorted. If it returns an
// error there is no decision, and nothing may be allowed. It fails if the resource cannot be read,
// a rule's own Rego fails, or the evaluation takes longer than [QueryTimeout].
func (q *Query) Evaluate(in *engine.Input) (engine.Decision, []engine.Code, error) {
	input, err := queryInput(q.document, in)
	if err != nil {
		return engine.Deny, nil, err
	}
	codes, err := q.found(q.codes, input)
	if err == nil && len(codes) == 0 {
		err = errors.New("it has no codes")
	}
	if s := in.Session; err == nil && s.CompiledSession != nil {
		var narrowed []engine.Code
		if narrowed, err = q.inSession(s.Document(), input); len(narrowed) > 0 {
			codes = slices.DeleteFunc(codes, func(c engine.Code) bool { return c == engine.CodePolicyAllowed })
			codes = append(codes, narrowed...)
			slices.Sort(codes)
			codes = slices.Compact(codes)
		}
	}
	if err != nil {
		return engine.Deny, nil, fmt.Errorf("evaluating policy %s: %w", q.policy.PolicyID, err)
	}
	decision := engine.Allow
	for _, code := range codes {
		outcome, _ := code.Outcome()
		decision = max(decision, outcome)
	}
	return decision, codes, nil
}

// found asks for a set of codes and returns it sorted. It does not ask the module for the decision,
// which follows from the codes: that query would take half as long again.
func (q *Query) found(question *prepared, input ast.Value) ([]engine.Code, error) {
	left := inTime(q.now, q.timeout)
	left.lists, left.root = q.lists, q.root
	v, err := question.ask(input, left)
	if err != nil {
		return nil, err
	}
	set, ok := v.(ast.Set)
	if !ok {
		return nil, fmt.Errorf("it has no codes: %v", v)
	}
	var codes []engine.Code
	for _, t := range set.Slice() {
		s, _ := t.Value.(ast.String)
		code := engine.Code(s)
		if _, known := code.Outcome(); !known {
			return nil, fmt.Errorf("%v is no code", t)
		}
		codes = append(codes, code)
	}
	return codes, nil
}
