package lint

import (
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/proof"
)

// shadow warns of a rule that can never decide. Either its condition is never true, or an earlier
// rule always decides and ends the evaluation.
func (l *linter) shadow(r *active) {
	if len(r.cases) == 0 {
		r.shadowed = true
		l.add(r.at, "condition", shadowed, "never decides: the condition is true of no intent",
			"say what can be true, or remove the rule")
		return
	}
	by := l.endedBy(r)
	if by == nil || len(l.found[r.at]) > 0 && slices.ContainsFunc(l.found[r.at], func(w Warning) bool {
		return w.Rule == duplicate
	}) {
		return
	}
	r.shadowed = true
	names := make([]string, len(by))
	for i, a := range by {
		names[i] = l.name(a.at)
	}
	all := strings.Join(names, " and ")
	message := fmt.Sprintf("never decides: %s, asked before, matches everything that it matches", all)
	if len(by) == 1 && by[0].matches.IsConst(true) {
		message = fmt.Sprintf("never decides: %s, asked before, matches everything", names[0])
	}
	l.add(r.at, "condition", shadowed, message, "give it a higher priority, narrow the other rule, or remove it")
}

// endedBy returns earlier rules that hide r. For each intent that r matches, one of these rules
// decides and ends the evaluation. It returns nil if that is not proved.
func (l *linter) endedBy(r *active) []*active {
	var by []*active
	for _, c := range r.cases {
		a := l.ending(r, c)
		if a == nil {
			return nil
		}
		if !slices.Contains(by, a) {
			by = append(by, a)
		}
	}
	// A rule that is evaluated once for each reading has cases about a single reading. A match of
	// one reading does not make such a rule match. So several rules together cannot hide it.
	if len(by) > 1 && r.oneReading {
		return nil
	}
	slices.SortFunc(by, func(a, b *active) int { return a.place - b.place })
	return by
}

// ending returns the first rule before r that ends the evaluation in case c, or nil.
func (l *linter) ending(r *active, c *proof.Case) *active {
	var first *active
	for a := range l.index.Candidates(c) {
		if a.place >= r.place || first != nil && first.place < a.place {
			continue
		}
		alike := !a.oneReading || !r.oneReading || (a.Outcome() == engine.Allow) == (r.Outcome() == engine.Allow)
		if alike && isBefore(a, r) && c.Decide(a.ends) == condition.True {
			first = a
		}
	}
	return first
}

// isBefore reports whether a is evaluated before b in every store. If two rules have the same
// priority and outcome, createdAt and id decide the order. Only stored rules have createdAt and id.
func isBefore(a, b *active) bool {
	r, s := a.Rule(), b.Rule()
	if r.Priority != s.Priority || a.Outcome() != b.Outcome() {
		return a.place < b.place
	}
	return !r.CreatedAt.IsZero() && !s.CreatedAt.IsZero() && engine.CompareDeciding(a.CompiledRule, b.CompiledRule) < 0
}
