package proof

import (
	"slices"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
)

// Counted says whether a counter counts the intents for which a condition asks it.
type Counted struct {
	Counter *condition.Counter
	// Truth is True if the counter counts every such intent, as far as the condition names action
	// types and currencies. It is False if the counter counts none of them. Then every comparison
	// with the counter is false.
	Truth condition.Truth
}

// Counters returns a Counted for each counter of n. It looks at action types and costs only.
func (p *Prover) Counters(n *condition.Node) (all []Counted) {
	for _, literals := range alternatives(n, true) {
		var asked []*condition.Counter
		about := literals[:0:0]
		for _, l := range literals {
			switch l.leaf.Field.ID {
			case condition.CounterValue:
				asked = append(asked, l.leaf.Field.Counter)
			case condition.ActionType, condition.Cost, condition.CostAmount, condition.CostCurrency:
				about = append(about, l)
			}
		}
		if len(asked) == 0 || !isSmall(about) {
			continue
		}
		c := p.newCase(about)
		if c == nil {
			continue // no intent asks the counter here
		}
		for _, counter := range asked {
			all = joinCounted(all, Counted{counter, c.counted(counter)})
		}
	}
	return all
}

// maxTexts bounds the comparisons of texts with literals that Counters makes for one case, because
// it runs when a rule is created.
const maxTexts = 4096

func isSmall(literals []literal) bool {
	texts := 0
	for _, l := range literals {
		texts += len(l.leaf.Values)
	}
	return texts*len(literals) <= maxTexts
}

// joinCounted adds what is known of one case. A counter that counts all in one case and none in
// another counts some.
func joinCounted(all []Counted, c Counted) []Counted {
	i := slices.IndexFunc(all, func(d Counted) bool { return d.Counter.Key == c.Counter.Key })
	if i < 0 {
		return append(all, c)
	}
	if all[i].Truth != c.Truth {
		all[i].Truth = condition.Unknown
	}
	return all
}

// counted returns whether a counter counts the intents of the case.
func (c *Case) counted(counter *condition.Counter) condition.Truth {
	actions, costs := c.countsActions(counter), c.countsCosts(counter)
	switch {
	case actions == condition.False || costs == condition.False:
		return condition.False
	case actions == condition.True && costs == condition.True:
		return condition.True
	}
	return condition.Unknown
}

// countsCosts returns whether a counter counts the costs of the case. A case that does not name a
// currency leaves it to the counter to select one.
func (c *Case) countsCosts(counter *condition.Counter) condition.Truth {
	if !counter.Sum {
		return condition.True
	}
	if c.present[subject{id: condition.Cost}] == condition.False {
		return condition.False
	}
	k := c.about(subject{id: condition.CostCurrency})
	if !k.finite {
		return condition.True
	}
	return allOf(k.values, func(s string) condition.Truth { return condition.TruthOf(s == counter.Currency) })
}

// countsActions returns whether a counter counts the action types of the case.
func (c *Case) countsActions(counter *condition.Counter) condition.Truth {
	k := c.about(subject{id: condition.ActionType})
	if k.finite {
		return allOf(k.values, func(s string) condition.Truth {
			return condition.TruthOf(counter.Counts(s, counter.Currency, "session"))
		})
	}
	named := condition.True
	for _, l := range k.literals {
		patterns := actionPatterns(l.leaf)
		switch {
		case l.truth && len(patterns) > 0:
			t := allOf(patterns, func(s string) condition.Truth { return countsPattern(counter, s) })
			if t == condition.False {
				return t
			}
			if named == condition.True {
				named = t
			}
		case !l.truth && slices.ContainsFunc(patterns, func(s string) bool {
			return ActionCovers(s, counter.ActionType)
		}):
			named = condition.Unknown // it counts only spellings of what the condition excludes
		}
	}
	return named
}

// allOf returns the truth that is the same for all texts, otherwise Unknown.
func allOf(texts []string, truth func(string) condition.Truth) condition.Truth {
	all := truth(texts[0])
	for _, s := range texts[1:] {
		if truth(s) != all {
			return condition.Unknown
		}
	}
	return all
}

// actionPatterns returns the patterns of action types of which a leaf matches one, or nil.
func actionPatterns(n *condition.Node) (patterns []string) {
	before, after := "", ""
	switch n.Op {
	case condition.ActionGlob:
	case condition.Eq, condition.In:
	case condition.StartsWith:
		after = "*"
	case condition.EndsWith:
		before = "*"
	case condition.Contains:
		before, after = "*", "*"
	default:
		return nil
	}
	for _, s := range n.Texts() {
		patterns = append(patterns, before+s+after)
	}
	return patterns
}

// countsPattern returns whether a counter counts the action types that a pattern matches.
func countsPattern(counter *condition.Counter, pattern string) condition.Truth {
	switch {
	case ActionCovers(counter.ActionType, pattern):
		return condition.True
	case !actionsMeet(counter.ActionType, pattern):
		return condition.False
	}
	return condition.Unknown
}

// actionsMeet reports whether a folded action type can match both patterns. It may return true
// although none can. It drops a dot beside a *, because folding makes one dot of several.
func actionsMeet(a, b string) bool {
	a, b = loose(a), loose(b)
	if len(a)*len(b) > maxMeet {
		return true
	}
	// rest[j] says whether the rest of a, from the current place on, meets b[j:].
	rest := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		diagonal := false // rest[j+1] of the row before
		for j := len(b); j >= 0; j-- {
			below := rest[j]
			switch {
			case i == len(a) && j == len(b):
				rest[j] = true
			case i < len(a) && a[i] == '*':
				rest[j] = below || j < len(b) && rest[j+1]
			case j < len(b) && b[j] == '*':
				rest[j] = rest[j+1] || i < len(a) && below
			default:
				rest[j] = i < len(a) && j < len(b) && a[i] == b[j] && diagonal
			}
			diagonal = below
		}
	}
	return rest[0]
}

// maxMeet bounds the work of actionsMeet. Action types have at most 256 bytes.
const maxMeet = 1 << 16

func loose(pattern string) string {
	folded := string(glob.FoldAction(nil, pattern, true))
	for _, dot := range []string{"*.", ".*"} {
		folded = strings.ReplaceAll(folded, dot, "*")
	}
	return folded
}
