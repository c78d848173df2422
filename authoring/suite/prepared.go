package suite

import (
	"errors"

	"writ/authoring/document"
	"writ/authoring/lint"
	"writ/rego"
)

// preparation is a policy and its rules as a prepared query in Rego, or why there is none.
type preparation struct {
	query *rego.Query
	// problems are why there is no query, and unsaid those of them that no comment silences.
	problems, unsaid document.Error
}

func (s *subject) prepared() *preparation {
	if s.preparation != nil {
		return s.preparation
	}
	s.preparation = new(preparation)
	query, err := rego.Prepare(s.doc, s.rules, s.lists)
	if err != nil {
		s.preparation.problems, s.preparation.unsaid = s.refused(err)
	}
	s.preparation.query = query
	return s.preparation
}

// refused gives an error of package rego about the policy and its rules its places. unsaid
// are those that no comment silences.
func (s *subject) refused(err error) (all, unsaid document.Error) {
	var unrendered *rego.UnrenderedError
	if !errors.As(err, &unrendered) {
		all.Problems = []document.Problem{s.policySource.doc.Problem("", "has no rendering in Rego: "+err.Error())}
		return all, all
	}
	for _, r := range unrendered.Rules {
		doc := s.ruleSources[r.Index].doc
		placed := doc.Locate(r.Err) // which names fields
		_ = all.Add(placed)
		if !doc.Ignores("condition", lint.NoRego) {
			_ = unsaid.Add(placed)
		}
	}
	return all, unsaid
}
