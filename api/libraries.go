package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// libraryBody is the body of PUT /v1/libraries/{name}.
type libraryBody struct {
	Modules map[string]string `json:"modules"`
}

func summarizeLibrary(_ *request, l *engine.Library) namedSummary {
	return namedSummary{l.Name, l.Version, len(l.Modules), l.CreatedAt, l.UpdatedAt}
}

func checkLibrary(r *request, in *libraryBody) error {
	l := engine.Library{Name: r.param, Modules: in.Modules}
	return l.Validate()
}

// putLibrary stores a library or its next version. Every library and every rule of the organization
// compiles with it, and it is in force before the answer is sent.
func (s *Server) putLibrary(r *request, in *libraryBody) error {
	var l *engine.Library
	var created bool
	var warnings []lint.Warning
	err := s.changeLibraries(r, func(c *libraryChange) (err error) {
		warnings = c.warnings
		l, created, err = s.docs.PutLibrary(r.ctx, r.who.org, r.param, in.Modules, r.stamp(), c.check)
		return err
	}, s.checkLibraries)
	if full := (*storage.LimitError)(nil); errors.As(err, &full) {
		return invalid("modules", "take the libraries of the organization over %d KiB together", full.Limit>>10)
	}
	if err != nil {
		return fmt.Errorf("storing a library: %w", err)
	}
	return r.answerPut(warnedLibrary{l, warnings}, created)
}

// deleteLibrary removes a library. It refuses if a rule or another library imports the library.
func (s *Server) deleteLibrary(r *request) error {
	err := s.changeLibraries(r, func(c *libraryChange) error {
		return s.docs.DeleteLibrary(r.ctx, r.who.org, r.param, c.check)
	}, s.checkUnused)
	if err != nil {
		return about("library", err)
	}
	return r.answer(http.StatusNoContent, nil)
}

// errLibrariesUnchecked aborts a change of libraries that is not checked yet.
var errLibrariesUnchecked = errors.New("the libraries are not checked")

// libraryChange is a change of an organization's libraries: the libraries as they would be, and the
// rules that may import one.
type libraryChange struct {
	r         *request
	libraries []engine.Library
	rules     []engine.Rule
	// seen identifies libraries and rules. checked is the value of seen that passed.
	seen, checked [sha256.Size]byte
	// warnings has the warnings about the rules that import the library.
	warnings []lint.Warning
}

// warnedLibrary is a library with the warnings about the rules that import it.
type warnedLibrary struct {
	*engine.Library
	Warnings []lint.Warning `json:"warnings,omitzero"`
}

// check is a [registry.LibraryCheck]. All other writes wait for it, so it only compares.
func (c *libraryChange) check(old *engine.Library, next []engine.Library, rules []engine.Rule) error {
	if err := c.r.mayChangeLibrary(old); err != nil {
		return err
	}
	h := sha256.New()
	for i := range next {
		_, _ = fmt.Fprintf(h, "%q %d %q\n", next[i].Name, next[i].Revision, next[i].Modules)
	}
	for i := range rules {
		_, _ = fmt.Fprintf(h, "%q %d\n", rules[i].ID, rules[i].Revision)
	}
	c.seen = [sha256.Size]byte(h.Sum(nil))
	if c.seen == c.checked {
		return nil
	}
	c.libraries, c.rules = next, rules
	return errLibrariesUnchecked
}

// changeLibraries makes a change once check has accepted it. change stops where the libraries or the
// rules are not those that check has accepted. changeLibraries then checks them, and tries again.
func (s *Server) changeLibraries(
	r *request, change func(*libraryChange) error, check func(*request, *libraryChange) error,
) error {
	c := &libraryChange{r: r}
	for {
		err := change(c)
		switch {
		case !errors.Is(err, errLibrariesUnchecked):
			return err
		case r.ctx.Err() != nil:
			return fmt.Errorf("changing a library: %w", context.Cause(r.ctx))
		}
		if err := check(r, c); err != nil {
			return err
		}
		c.checked = c.seen
	}
}

// mayChangeLibrary refuses a change whose If-Match or If-None-Match fails. l is the stored library,
// or nil.
func (r *request) mayChangeLibrary(l *engine.Library) error {
	var updated *time.Time
	if l != nil {
		updated = &l.UpdatedAt
	}
	if r.mayPut(updated) {
		return nil
	}
	return refuse(codeLibraryChanged, "The library is not as If-Match or If-None-Match says. Read it again.")
}

// checkLibraries compiles the libraries and the rules that import one, and refuses what a new rule would
// be refused for. A rule that would have been refused before may still be.
func (s *Server) checkLibraries(r *request, c *libraryChange) error {
	o := s.decisions.Conditions()
	libraries, err := o.CompileLibraries(c.libraries)
	if err != nil {
		i := slices.IndexFunc(c.libraries, func(l engine.Library) bool { return l.Name == r.param })
		return c.libraries[i].Locate(err)
	}
	o.Libraries = libraries
	next := compiledAll(r, c.rules, o)
	c.warnings = nil
	wrong := make(map[string]error)
	for _, b := range next.Broken() {
		wrong[b.RuleID] = b.Err
	}
	for _, rule := range next.Rules() {
		if !slices.Contains(rule.Libraries(), r.param) {
			continue
		}
		r.slot.Yield()
		if err := rule.Review().Refused; err != nil {
			wrong[rule.Rule().ID] = err
		}
		for _, w := range lint.Rule(rule) {
			w.Field, w.Message = "modules", c.title(rule.Rule().ID)+": "+w.Message
			c.warnings = append(c.warnings, w)
		}
	}
	c.warnings = c.warnings[:min(len(c.warnings), usersNamed)]
	if len(wrong) == 0 {
		return nil
	}
	if o.Libraries, err = s.currentLibraries(r); err != nil {
		return err
	}
	now := compiledAll(r, c.rules, o)
	for _, b := range now.Broken() {
		delete(wrong, b.RuleID)
	}
	for _, rule := range now.Rules() {
		if id := rule.Rule().ID; wrong[id] != nil && rule.Review().Refused != nil {
			delete(wrong, id)
		}
	}
	var bad fieldErrors
	for _, id := range slices.Sorted(maps.Keys(wrong)) {
		bad.add("modules", fmt.Sprintf("%s would no longer be accepted: %v", c.title(id), wrong[id]))
	}
	return bad.err()
}

// compiledAll compiles rules as stored ones. Inactive rules count, because they can be activated.
func compiledAll(r *request, rules []engine.Rule, o engine.Options) *engine.RuleSet {
	all := slices.Clone(rules)
	for i := range all {
		all[i].IsActive = true
	}
	r.slot.Yield()
	return engine.CompileRules(all, o)
}

func (s *Server) currentLibraries(r *request) (engine.Libraries, error) {
	rules, err := s.decisions.Sets.Rules(r.ctx, &r.slot, r.who.org)
	if err != nil {
		return nil, fmt.Errorf("loading the libraries: %w", err)
	}
	return rules.Libraries(), nil
}

// title returns the name and the id of a rule.
func (c *libraryChange) title(ruleID string) string {
	for i := range c.rules {
		if c.rules[i].ID == ruleID {
			return fmt.Sprintf("the rule %q (%s)", c.rules[i].Name, ruleID)
		}
	}
	return "the rule " + ruleID
}

// usersNamed bounds how many users of a library, and how many warnings about them, an answer has.
const usersNamed = 10

// checkUnused refuses to delete a library that rules or other libraries import.
func (s *Server) checkUnused(r *request, c *libraryChange) error {
	o := s.decisions.Conditions()
	var err error
	if o.Libraries, err = s.currentLibraries(r); err != nil {
		return err
	}
	var used []string
	for i := range c.libraries {
		name := c.libraries[i].Name
		if o.Libraries != nil && slices.Contains(o.Libraries.Imports(name), r.param) {
			used = append(used, "the library "+name)
		}
	}
	for _, rule := range compiledAll(r, c.rules, o).Rules() {
		if slices.Contains(rule.Libraries(), r.param) {
			used = append(used, c.title(rule.Rule().ID))
		}
	}
	if len(used) == 0 {
		return nil
	}
	return refuse(codeLibraryInUse, "The library is imported by "+
		strings.Join(used[:min(len(used), usersNamed)], ", ")+". Change or delete them first.")
}

// usesOf returns the lists and the libraries that a compiled rule uses.
func usesOf(compiled *engine.CompiledRule, libraries engine.Libraries) registry.Uses {
	uses := registry.Uses{Lists: compiled.Lists(), Texts: compiled.Texts()}
	if names := compiled.Libraries(); len(names) > 0 {
		uses.Libraries = make(map[string]int64)
		for _, l := range libraries.Documents() {
			if slices.Contains(names, l.Name) {
				uses.Libraries[l.Name] = l.Revision
			}
		}
	}
	return uses
}

// libraryMoved reports whether err says that a library has changed since a rule was compiled.
func libraryMoved(err error) bool {
	changed := (*registry.LibraryChangedError)(nil)
	return errors.As(err, &changed)
}
