package workspace

import (
	"fmt"
	"strings"
	"time"

	"writ.example/writ/authoring/document"
)

// String shows the change for a review. The server's values come first, then the file's values.
func (c Change) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s", c.sign(), c.Title(), c.about())
	for _, d := range c.shownDifferences() {
		b.WriteString("\n    " + strings.ReplaceAll(d.String(), "\n", "\n    "))
	}
	return b.String()
}

// sign returns the first character of a change's line.
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

// Title returns the kind, the name or id, and the place of the document.
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

// about returns a note about the whole document. It may be empty.
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

// changed returns the time at which a rule, a list or a library was last changed on the server.
func (c Change) changed() time.Time {
	switch {
	case c.list != nil:
		return c.list.UpdatedAt
	case c.library != nil:
		return c.library.UpdatedAt
	}
	return c.rule.UpdatedAt
}

// shownDifferences returns the members of a new document, or the differences of a changed one.
func (c Change) shownDifferences() []Difference {
	switch {
	case c.State != Added:
		return c.Differences
	case c.Kind == document.Policy:
		return diffOf([]byte("{}"), without(policyValue(c.local.policy), "organization_id"))
	case c.Kind == document.List:
		return diffOf([]byte("{}"), listValue(c.local.list))
	case c.Kind == document.Library:
		return diffOf([]byte("{}"), libraryValue(c.local.library))
	}
	return diffOf([]byte("{}"), without(ruleValue(c.local.rule), "name"))
}
