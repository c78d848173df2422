package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ.example/writ/engine"
)

type lister interface{ list(c *Coverage) }

func (p *coveredPolicy) list(sum *Coverage) {
	for i := range p.checks {
		c := &p.checks[i]
		if c.field == "" {
			continue // a check without a setting in the policy: agent, usage, status
		}
		sum.Checks.see(c.holds)
		missing := never("holds", c.holds)
		if !c.matchesAll() {
			sum.Checks.see(c.failed)
			missing = append(missing, never("fails", c.failed)...)
		}
		p.source.list(sum, c.field, string(c.code), missing)
		for j, pattern := range c.entries {
			sum.Checks.see(c.matched[j])
			p.source.list(sum, fmt.Sprintf("%s[%d]", c.field, j), "  "+pattern, never("matches", c.matched[j]))
		}
	}
}

// matchesAll reports whether the check cannot fail because its list allows everything.
func (c *coveredCheck) matchesAll() bool {
	return c.code == engine.CodeActionNotAllowed && slices.Contains(c.entries, "*") ||
		c.code == engine.CodeResourceNotAllowed && slices.Contains(c.entries, "**")
}

// list adds the line of a field to the listing.
func (s *source) list(sum *Coverage, field, text string, missing []string) {
	sum.Listing = append(sum.Listing,
		Listed{File: s.file, Line: s.place(field).Line, Text: text, Missing: strings.Join(missing, ", ")})
}

func (r *coveredRule) list(sum *Coverage) {
	line := func(field, text string, missing []string) { r.source.list(sum, field, text, missing) }
	name := fmt.Sprintf("%s %q", r.outcome, r.source.rule.Name)
	if !r.active {
		line("name", fmt.Sprintf("not active: %q", r.source.rule.Name), nil)
		return
	}
	sum.Rules.see(r.matched)
	sum.Rules.see(r.decided)
	sum.Rules.see(r.notMatched)
	missing := append(never("matches", r.matched), never("fails to match", r.notMatched)...)
	switch {
	case r.decided:
	case r.matched:
		missing = append(missing, "shadowed: it matches and never decides, but "+strings.Join(quoted(r.shadows), ", "))
	default:
		missing = append(missing, "never decides")
	}
	line("name", name, missing)
	for _, l := range r.leaves {
		sum.Conditions.see(l.isTrue)
		sum.Conditions.see(l.isNot)
		line("condition", "  "+oneLine(l.text), append(never("true", l.isTrue), never("false", l.isNot)...))
	}
	r.listLines(sum)
}

// listLines lists the lines of a condition in Rego, if the condition has more than one line.
func (r *coveredRule) listLines(sum *Coverage) {
	if len(r.lines) < 2 {
		return
	}
	text := strings.Split(r.leaves[0].text, "\n")
	for _, n := range slices.Sorted(maps.Keys(r.lines)) {
		sum.Conditions.see(r.lines[n])
		sum.Listing = append(sum.Listing, Listed{
			File: r.source.file, Line: r.source.lineOf("/rego", n), Text: "    " + strings.TrimSpace(text[n-1]),
			Missing: strings.Join(never("evaluated", r.lines[n]), ""),
		})
	}
}

func quoted(names []string) (all []string) {
	for _, n := range names {
		if n != "" {
			all = append(all, fmt.Sprintf("%q", n))
		}
	}
	return all
}

// never returns "never " + what, or nil if seen is true.
func never(what string, seen bool) []string {
	if seen {
		return nil
	}
	return []string{"never " + what}
}
