package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"writ/engine"
	"writ/engine/condition"
)

// sessionFile is the name of the file that holds a session's module, and sessionPackage its
// package.
const (
	sessionFile    = "session.rego"
	sessionPackage = "writ.session"
)

// LowerSession writes a session as Rego v1, clean under `opa fmt`: data.writ.session.codes is
// the set of the codes that it finds, over the input of [Lower] with
//
//	session     {"closed": bool, "expired": bool}
//
// Where a member is absent or of another type it denies.
func LowerSession(s *engine.Session) (File, error) {
	p := &engine.ActionPolicy{
		AllowedActionTypes: s.AllowedActionTypes, AllowedResourcePatterns: s.AllowedResourcePatterns,
		MaxCostMinor: s.MaxCostMinor,
	}
	parts := []string{
		"package " + sessionPackage,
		coded(engine.CodeSessionClosed, "not input.session.closed == false"),
		coded(engine.CodeSessionExpired, "not input.session.expired == false"),
		coded(engine.CodeSessionNotAllowed, "count(findings) > 0"),
		"# What the session allows, as a policy would.\n" +
			finding(engine.CodeAgentMismatch, "not input.intent.agent_id == "+condition.Quote(s.AgentID)),
		finding(engine.CodePolicyMissing, "not input.intent.policy_id == "+condition.Quote(s.PolicyID)),
	}
	var codes []engine.Code
	if s.AllowedActionTypes != nil {
		codes = append(codes, engine.CodeActionNotAllowed)
	}
	if len(s.AllowedResourcePatterns) > 0 {
		codes = append(codes, engine.CodeResourceNotAllowed)
		parts = append(parts, "allowed_readings := input.readings.allowed")
	}
	if s.MaxCostMinor != nil {
		codes = append(codes, engine.CodeCostExceeded)
	}
	for _, code := range codes {
		rules, err := check(p, code)
		if err != nil {
			return File{}, err
		}
		parts = append(parts, rules)
	}
	source, err := format.Source(sessionFile, []byte(strings.Join(parts, "\n\n")+"\n"))
	if err != nil {
		return File{}, fmt.Errorf("formatting the session's module: %w", err)
	}
	return File{Name: sessionFile, Source: string(source)}, nil
}

// coded defines a rule that adds code to the codes of the session where expr holds.
func coded(code engine.Code, expr string) string {
	return "codes contains " + condition.Quote(string(code)) + " if " + expr
}

func sessionTerm(s *engine.InSession) *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyClosed, ast.InternedTerm(s.Document().Status != engine.SessionActive)),
		ast.Item(keyExpired, ast.InternedTerm(s.Expired)),
	)
}

// inSession returns codes with what the session of in finds, sorted, each once. Nothing of it
// is kept: who asks verifies, and no two sessions are alike.
func (q *Query) inSession(in *engine.Input, input ast.Value, codes []engine.Code) ([]engine.Code, error) {
	file, err := LowerSession(in.Session.Document())
	if err != nil {
		return nil, err
	}
	c, size, err := compileFiles([]File{file}, querySchema())
	if err != nil {
		return nil, fmt.Errorf("compiling the session: %w", err)
	}
	p, err := prepare(c, ast.MustParseRef("data."+sessionPackage+".codes"), patternsKept(size))
	if err != nil {
		return nil, err
	}
	v, err := p.ask(input, newBudget(nil, q.now, q.timeout))
	if err != nil {
		return nil, fmt.Errorf("evaluating the session: %w", err)
	}
	set, ok := v.(ast.Set)
	if !ok {
		return nil, fmt.Errorf("evaluating the session: it has no codes: %v", v)
	}
	for _, t := range set.Slice() {
		s, _ := t.Value.(ast.String)
		codes = append(codes, engine.Code(s))
	}
	if set.Len() > 0 {
		codes = slices.DeleteFunc(codes, func(c engine.Code) bool { return c == engine.CodePolicyAllowed })
	}
	slices.Sort(codes)
	return slices.Compact(codes), nil
}
