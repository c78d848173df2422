package workspace

import (
	"fmt"
	"strings"
	"time"

	"writ/authoring/document"
)

// String shows the change as a review does: what the server has, then what the file has.
func (c Change) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s", c.sign(), c.Title(), c.about())
	for _, d := range c.shownDifferences() {
		b.WriteString("\n    " + strings.ReplaceAll(d.String(), "\n", "\n    "))
	}
	return b.String()
}

// sign begins the line of a change.
func (c Change) sign() string {
	switch c.State {
	case Added:
		return "+"
	case Missing:
		return "-"
	case Stale, Diverged:
		return "!"
	}
	return "~"
}

// Title says which document it is.
func (c Change) Title() string {
	title := "policy " + c.ID
	if c.Kind != document.Policy {
		title = fmt.Sprintf("%s %q", c.Kind, c.Name)
	}
	if c.Place != "" {
		title += " (" + c.Place + ")"
	}
	return title
}

// about says what of the document as a whole is to be known.
func (c Change) about() string {
	policy := c.Kind == document.Policy
	switch {
	case c.State == Missing && policy:
		return fmt.Sprintf(": only on the server, version %d", c.Version)
	case c.State == Missing:
		return ": only on the server"
	case c.State == Stale:
		return fmt.Sprintf(": version %d, the server has %d; unchanged here", c.local.policy.Version, c.Version)
	case c.State == Diverged && policy:
		return fmt.Sprintf(": version %d, the server has %d; changed here, too", c.local.policy.Version, c.Version)
	case c.State == Diverged:
		return ": changed on the server at " + c.changed().Format(time.RFC3339) + ", after this was pulled"
	case c.State == Added && policy:
		return fmt.Sprintf(": new, version %d", c.NextVersion)
	case c.State == Added && c.local.rule != nil && c.local.rule.ID != "":
		return ": new; the server has no rule with its id"
	case c.State == Added:
		return ": new"
	case policy:
		return fmt.Sprintf(": version %d -> %d", c.Version, c.NextVersion)
	case c.byName && c.rule != nil:
		return ": found by its name"
	}
	return ""
}

// changed is when the server's rule or list was changed last.
func (c Change) changed() time.Time {
	if c.list != nil {
		return c.list.UpdatedAt
	}
	return c.rule.UpdatedAt
}

// shownDifferences are the members of a new document, and what differs of any other.
func (c Change) shownDifferences() []Difference {
	switch {
	case c.State != Added:
		return c.Differences
	case c.Kind == document.Policy:
		return diffOf([]byte("{}"), without(policyValue(c.local.policy), "organization_id"))
	case c.Kind == document.List:
		return diffOf([]byte("{}"), listValue(c.local.list))
	}
	return diffOf([]byte("{}"), without(ruleValue(c.local.rule), "name"))
}
