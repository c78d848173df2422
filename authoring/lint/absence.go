package lint

import (
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/proof"
)

// unguarded warns of a rule that denies or asks for approval because of a value that the caller may
// leave out.
func (l *linter) unguarded(i int, r *engine.CompiledRule, review condition.Review) {
	then := "the rule does not match then"
	missing, language := review.Dodges, inTree
	if _, isRego := r.RegoSource(); isRego {
		language = inRego
	}
	if len(review.Unguarded) > 0 {
		does := map[engine.Decision]string{engine.Deny: "denies",
			engine.ApprovalRequired: "asks for approval"}[r.Outcome()]
		missing, language, then = review.Unguarded, inCEL, "that is an error, with which the rule "+does
	}
	for _, name := range missing {
		key, isKey := strings.CutPrefix(name, "metadata.")
		if strings.HasPrefix(key, engine.FactPrefix) || l.decidesAbsence(r, name) {
			continue
		}
		instead := language(name)
		if isKey {
			instead += "; or rest on a key that begins with " + engine.FactPrefix
		}
		l.add(i, "condition", unguardedKey, fmt.Sprintf("rests on %s, which the caller may leave out: %s", name, then),
			instead)
	}
}

func inTree(name string) string {
	return fmt.Sprintf(
		`say what absence means: %[1]s with {"$exists":true} beside it, or with {"$exists":false} in an $or`,
		condition.Quote(name),
	)
}

func inCEL(name string) string {
	has := "has(intent.cost)"
	if key, ok := strings.CutPrefix(name, "metadata."); ok {
		has = condition.Quote(key) + " in intent.metadata"
	}
	return fmt.Sprintf("say what absence means: %[1]s && …, or !(%[1]s) || …", has)
}

func inRego(name string) string {
	path := "input.intent.cost"
	if key, ok := strings.CutPrefix(name, "metadata."); ok {
		path = "input.intent.metadata[" + condition.Quote(key) + "]"
	}
	return fmt.Sprintf("say what absence means: %[1]s in a line of its own, or a second match with not %[1]s", path)
}

// decidesAbsence reports whether other rules decide if the field is missing. The other rules must
// be active and at least as strict as r. Together they must match every intent without the field
// that r would match with the field. No rule that allows may come before them.
func (l *linter) decidesAbsence(r *engine.CompiledRule, name string) bool {
	f := condition.FieldOf(condition.Cost)
	if key, ok := strings.CutPrefix(name, "metadata."); ok {
		f = condition.MetadataKey(key)
	}
	without := condition.Both(proof.Forget(r.Certain(), f), condition.Negate(condition.Has(f)))
	for _, c := range l.prover.Cases(without) {
		decided := false
		for a := range l.index.Candidates(c) {
			decided = a.CompiledRule != r && a.Outcome() >= r.Outcome() && a.Outcome() != engine.Allow &&
				c.Decide(a.matches) == condition.True && !l.lifted(r, a, c)
			if decided {
				break
			}
		}
		if !decided {
			return false
		}
	}
	return true
}

// lifted reports whether a rule that allows may decide the case c before a does. It ignores rules
// that come before r.
func (l *linter) lifted(r *engine.CompiledRule, a *active, c *proof.Case) bool {
	return slices.ContainsFunc(l.deciding[:a.place], func(b *active) bool {
		return b.Outcome() == engine.Allow && engine.CompareDeciding(r, b.CompiledRule) < 0 &&
			c.Decide(b.matches) != condition.False
	})
}

// lifts warns of a rule that allows, if it can overrule a rule that asks for approval and reads
// other fields.
func (l *linter) lifts(a *active) {
	if a.Outcome() != engine.Allow || a.shadowed {
		return
	}
	var over []int
	for _, r := range l.deciding[a.place+1:] {
		if r.Outcome() == engine.ApprovalRequired && r.Rule().Priority < a.Rule().Priority && len(r.cases) > 0 &&
			!shareField(l.reviews[a.at].Fields, l.reviews[r.at].Fields) {
			over = append(over, r.at)
		}
	}
	if len(over) == 0 {
		return
	}
	others := ""
	if len(over) > 1 {
		others = fmt.Sprintf(" and over %d other approvals", len(over)-1)
	}
	l.add(a.at, "condition", liftsUnrelated,
		fmt.Sprintf("wins over %s%s, with which it shares no field", l.name(over[0]), others),
		"narrow it by what the approval asks for, or give it a lower priority")
}

// shareField reports whether two conditions read the same field, or a field and a part of it.
func shareField(a, b []string) bool {
	return slices.ContainsFunc(a, func(f string) bool {
		return slices.ContainsFunc(b, func(g string) bool {
			return f == g || strings.HasPrefix(f, g+".") || strings.HasPrefix(g, f+".")
		})
	})
}
