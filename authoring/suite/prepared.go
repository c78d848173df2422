package suite

import (
	"errors"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/lint"
	"writ.example/writ/rego"
)

// preparation is the prepared Rego of a policy with its rules, or the problems that prevent it.
type preparation struct {
	query *rego.Query
	// problems says why there is no query. unsilenced has the part of problems that no comment
	// suppresses.
	problems, unsilenced document.Error
}

func (s *subject) prepared() *preparation {
	if s.preparation != nil {
		return s.preparation
	}
	s.preparation = new(preparation)
	query, err := rego.Prepare(s.doc, s.rules, s.conditions.Lists, s.libraries()...)
	if err != nil {
		s.preparation.problems, s.preparation.unsilenced = s.refused(err)
	}
	s.preparation.query = query
	return s.preparation
}

// refused turns an error of package rego into problems of the policy and the rules. unsilenced has
// only the problems that no comment suppresses.
func (s *subject) refused(err error) (all, unsilenced document.Error) {
	var unrendered *rego.UnrenderedError
	if !errors.As(err, &unrendered) {
		all.Problems = []document.Problem{s.policySource.doc.Problem("", "has no rendering in Rego: "+err.Error())}
		return all, all
	}
	for _, r := range unrendered.Rules {
		doc := s.ruleSources[r.Index].doc
		placed := doc.Locate(r.Err) // r.Err refers to fields, not to places in the file
		_ = all.Add(placed)
		if !doc.Ignores("condition", lint.NoRego) {
			_ = unsilenced.Add(placed)
		}
	}
	return all, unsilenced
}
