package rego

import (
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// sessionFile is the name of the file that holds a session's module, and sessionPackage its
// package.
const (
	sessionFile    = "session.rego"
	sessionPackage = "writ.session"
)

// LowerSession writes a session as Rego v1. `opa fmt` leaves the file unchanged.
// data.writ.session.codes is the set of the session's codes. The input has the members that [Lower]
// describes and
//
//	session     {"closed": bool, "expired": bool, "own": bool}, own says that the agent began it
//
// If a member is absent or has another type, the session denies.
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
			finding(engine.CodeAgentMismatch, "not input.session.own == true"),
		finding(engine.CodePolicyMissing, "not input.intent.policy_id == "+condition.Quote(s.PolicyID)),
	}
	var codes []engine.Code
	if s.AllowedActionTypes != nil {
		codes = append(codes, engine.CodeActionNotAllowed)
	}
	if len(s.AllowedResourcePatterns) > 0 {
		codes = append(codes, engine.CodeResourceNotAllowed)
		parts = append(append(parts, resourceReadings), plainReadings()...)
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
	return formatted(sessionFile, strings.Join(parts, "\n\n")+"\n")
}

// coded defines a rule that adds code to the session's codes if expr holds.
func coded(code engine.Code, expr string) string {
	return "codes contains " + condition.Quote(string(code)) + " if " + expr
}

func sessionTerm(in *engine.Input) *ast.Term {
	s := &in.Session
	return ast.ObjectTerm(
		ast.Item(keyClosed, ast.InternedTerm(s.Document().Status != engine.SessionActive)),
		ast.Item(keyExpired, ast.InternedTerm(s.Expired)),
		ast.Item(keyOwn, ast.InternedTerm(s.Own(in))),
	)
}

// inSession returns the codes that a session finds. It does not keep the compiled session, because
// only verification asks for it, and sessions differ.
func (q *Query) inSession(s *engine.Session, input ast.Value) ([]engine.Code, error) {
	file, err := LowerSession(s)
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
	return q.found(p, input)
}
