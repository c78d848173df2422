package workspace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// State says how a document in the files differs from the same document on the server.
type State string

// These are the states of a document.
const (
	// Same says that the file and the server have the same values.
	Same State = "same"
	// Added says that only the files have the document.
	Added State = "added"
	// Edited says that the file was changed, and the server's document was not changed since the
	// pull.
	Edited State = "edited"
	// Stale says that the server's document was changed since the pull, and the file was not.
	Stale State = "stale"
	// Diverged says that the server's document was changed since the pull. The file may have been
	// changed, too.
	Diverged State = "diverged"
	// Missing says that only the server has the document.
	Missing State = "missing"
)

// Change is a document that differs between the files and the server.
type Change struct {
	Kind  document.Kind `json:"kind"`
	State State         `json:"state"`
	// ID is the policy_id, or the id of the rule on the server. It is empty for a new rule, a list
	// and a library.
	ID    string `json:"id,omitzero"`
	Name  string `json:"name,omitzero"`
	Place string `json:"place,omitzero"` // file:line, or the directory of a library
	// Version is the newest version of the policy on the server. NextVersion is the version that
	// a push would create: the version in the file, or the next free one if the server already
	// has that version.
	Version     int64        `json:"version,omitzero"`
	NextVersion int64        `json:"next_version,omitzero"`
	Differences []Difference `json:"differences,omitzero"`

	local  *Local
	policy *engine.ActionPolicy // the newest version on the server
	rule   *engine.Rule         // the rule on the server
	list   *engine.List         // the list on the server
	// library is the library on the server.
	library *engine.Library
	// byName says that a document was matched by its name only. Either the rule's id is not on
	// the server, or the list or the library was not pulled from the server's.
	byName bool
}

// Plan has the differences between the documents of a workspace and the documents on a server.
type Plan struct {
	// Changes has the documents that differ. First come the documents in the files: policies,
	// rules, lists, libraries. Each kind is in the order of the files. The documents that only the server
	// has come last.
	Changes []Change
	// same has the documents that do not differ. The server may have added members to them, such
	// as times.
	same   []Change
	w      *Workspace
	server *Server
}

// Compare compares each document in the files with the same document on the server. It returns an
// error if the name of a rule fits several rules on one side. It also returns an error if a
// policy belongs to another organization.
func (w *Workspace) Compare(s *Server) (*Plan, error) {
	p := &Plan{w: w, server: s}
	var bad document.Error
	local := make(map[string]bool)
	newest := s.Newest()
	for _, l := range w.policies {
		local[l.policy.PolicyID] = true
		if len(newest) > 0 && l.policy.OrganizationID != newest[0].OrganizationID {
			bad.Problems = append(bad.Problems, l.doc.Problem("policy.organization_id",
				fmt.Sprintf("must be %q, the organization of the credential", newest[0].OrganizationID)))
			continue
		}
		p.add(comparePolicy(l, s))
	}
	found, problems := w.findRules(s)
	bad.Problems = append(bad.Problems, problems...)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	taken := make(map[string]bool)
	for _, l := range w.rules {
		c := compareRule(l, found[l])
		taken[c.ID] = true
		p.add(c)
	}
	for _, l := range w.lists {
		p.add(compareList(l, s.list(l.list.Name)))
	}
	for _, l := range w.libraries {
		p.add(compareLibrary(l, s.library(l.library.Name)))
	}
	for _, v := range newest {
		if !local[v.PolicyID] {
			p.add(Change{Kind: document.Policy, State: Missing, ID: v.PolicyID, Version: v.Version, policy: v})
		}
	}
	for i := range s.rules {
		if r := &s.rules[i]; !taken[r.ID] {
			p.add(Change{Kind: document.Rule, State: Missing, ID: r.ID, Name: r.Name, rule: r})
		}
	}
	for i := range s.lists {
		if l := &s.lists[i]; !w.hasList(l.Name) {
			p.add(Change{Kind: document.List, State: Missing, Name: l.Name, list: l})
		}
	}
	for i := range s.libraries {
		if l := &s.libraries[i]; w.library(l.Name) == nil {
			p.add(Change{Kind: document.Library, State: Missing, Name: l.Name, library: l})
		}
	}
	return p, nil
}

func (p *Plan) add(c Change) {
	if c.State == Same {
		p.same = append(p.same, c)
		return
	}
	p.Changes = append(p.Changes, c)
}

func comparePolicy(l *Local, s *Server) Change {
	is := l.policy
	c := Change{Kind: document.Policy, ID: is.PolicyID, Place: l.place(), NextVersion: is.Version, State: Added,
		local: l}
	i := slices.IndexFunc(s.policies, func(v *engine.ActionPolicy) bool { return v.PolicyID == is.PolicyID })
	if i < 0 {
		return c
	}
	c.policy = s.policies[i]
	c.Version = c.policy.Version
	c.Differences = diffOf(policyValue(c.policy), policyValue(is))
	stored := s.policy(is.PolicyID, is.Version)
	switch {
	case len(c.Differences) == 0 && is.Version <= c.Version:
		c.State = Same
	case is.Version == c.Version:
		c.State, c.NextVersion = Edited, c.Version+1
	case is.Version > c.Version:
		c.State = Edited
	case stored != nil && len(diffOf(policyValue(stored), policyValue(is))) == 0:
		c.State = Stale
	default:
		c.State = Diverged
	}
	return c
}

// compareRule compares a rule with found, the rule on the server. found may be nil.
func compareRule(l *Local, found *engine.Rule) Change {
	is := l.rule
	c := Change{Kind: document.Rule, Name: is.Name, Place: l.place(), State: Added, local: l, rule: found}
	if found == nil {
		return c
	}
	c.ID, c.byName = found.ID, found.ID != is.ID
	c.compare(ruleValue(found), ruleValue(is), !is.UpdatedAt.IsZero() && !is.UpdatedAt.Equal(found.UpdatedAt))
	return c
}

// compare compares two forms of a rule or a list: the server's and the file's. moved says that
// the server's document changed since it was pulled.
func (c *Change) compare(from, to jsontext.Value, moved bool) {
	c.Differences = diffOf(from, to)
	switch {
	case len(c.Differences) == 0:
		c.State = Same
	case !c.byName && moved:
		c.State = Diverged
	default:
		c.State = Edited
	}
}

// compareList compares a list with found, the list of the same name on the server. found may be
// nil. If createdAt differs, found is another list: it is on another server, or it was deleted and
// created again.
func compareList(l *Local, found *engine.List) Change {
	is := l.list
	c := Change{Kind: document.List, Name: is.Name, Place: l.place(), State: Added, local: l, list: found}
	if found == nil {
		return c
	}
	c.byName = !is.CreatedAt.Equal(found.CreatedAt)
	c.compare(listValue(found), listValue(is), !is.UpdatedAt.Equal(found.UpdatedAt))
	return c
}

func (w *Workspace) hasList(name string) bool {
	return slices.ContainsFunc(w.lists, func(l *Local) bool { return l.list.Name == name })
}

// unknownLists returns an error that names each rule that uses an unknown list. A list is unknown
// if no file has it and the server would not have it after the push.
func (p *Plan) unknownLists(o PushOptions) error {
	var bad document.Error
	for _, l := range p.w.rules {
		for _, name := range l.looks {
			var why string
			switch {
			case p.w.hasList(name):
				continue
			case p.server.list(name) == nil:
				why = "which is neither in a file nor on the server"
			case !o.Prune:
				continue
			default:
				why = "which is in no file, so that --prune would delete it"
			}
			bad.Problems = append(bad.Problems,
				l.doc.Problem("condition", fmt.Sprintf("looks in the list %q, %s", name, why)))
		}
	}
	return bad.Err()
}

// findRules finds the server's rule for each rule in the files. It compares ids first, then names.
func (w *Workspace) findRules(s *Server) (found map[*Local]*engine.Rule, problems []document.Problem) {
	found = make(map[*Local]*engine.Rule)
	byID := make(map[string]*engine.Rule)
	for i := range s.rules {
		byID[s.rules[i].ID] = &s.rules[i]
	}
	named := make(map[string][]*Local) // the rules whose id the server does not have
	for _, l := range w.rules {
		if r := byID[l.rule.ID]; r != nil {
			found[l] = r
			delete(byID, r.ID)
			continue
		}
		named[l.rule.Name] = append(named[l.rule.Name], l)
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		locals := named[name]
		var rules []*engine.Rule
		for _, r := range byID {
			if r.Name == name {
				rules = append(rules, r)
			}
		}
		switch {
		case len(locals) > 1:
			for _, l := range locals[1:] {
				problems = append(problems, l.doc.Problem("rule.name", fmt.Sprintf(
					"is also the name of the rule in %s, and the server has the id of neither: give each its own name",
					locals[0].place())))
			}
		case len(rules) > 1:
			slices.SortFunc(rules, func(a, b *engine.Rule) int { return cmp.Compare(a.ID, b.ID) })
			problems = append(problems, locals[0].doc.Problem("rule.name", fmt.Sprintf(
				"is the name of %d rules on the server: give the id of the right one, such as %s", len(rules),
				rules[0].ID)))
		case len(rules) == 1:
			found[locals[0]] = rules[0]
		}
	}
	return found, problems
}

// Empty reports whether the files have no policy, rule, list or library.
func (p *Plan) Empty() bool {
	return len(p.w.policies)+len(p.w.rules)+len(p.w.lists)+len(p.w.libraries) == 0
}
