package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// listsPath is the prefix of the paths of lists. The body of a list may be as large as a batch.
const listsPath = "/v1/lists/"

// listBody is the body of PUT /v1/lists/{name}. It has one of both members.
type listBody struct {
	Values []string       `json:"values"`
	Data   jsontext.Value `json:"data"`
}

// of returns the list called name.
func (b *listBody) of(name string) engine.List {
	return engine.List{Name: name, Values: b.Values, Data: b.Data}
}

func summarizeList(_ *request, l *engine.List) namedSummary {
	return namedSummary{l.Name, l.Version, l.Len(), l.CreatedAt, l.UpdatedAt}
}

// putList stores a list or its next version. The list is in force before the answer is sent.
func (s *Server) putList(r *request, in *listBody) error {
	looks, err := s.looksInList(r, (*engine.CompiledRule).Texts)
	if err != nil {
		return err
	}
	r.slot.Leave() // from here on the handler only waits for the store
	l, created, err := s.docs.PutList(r.ctx, r.who.org, in.of(r.param), r.stamp(), looks, r.mayChangeList)
	if used := (*registry.ListInUseError)(nil); errors.As(err, &used) {
		return refuse(codeListInUse, "Rules look for texts in the list, and the document is no array of texts: "+
			strings.Join(used.Rules, ", ")+". Change or delete them first.")
	}
	if full := (*storage.LimitError)(nil); errors.As(err, &full) {
		return invalid(in.member(), "take the lists of the organization over %d MiB together", full.Limit>>20)
	}
	if err != nil {
		return fmt.Errorf("storing a list: %w", err)
	}
	return r.answerPut(l, created)
}

// mayChangeList refuses a change whose If-Match or If-None-Match fails. l is the stored list, or
// nil.
func (r *request) mayChangeList(l *engine.List) error {
	var updated *time.Time
	if l != nil {
		updated = &l.UpdatedAt
	}
	if r.mayPut(updated) {
		return nil
	}
	return refuse(codeListChanged, "The list is not as If-Match or If-None-Match says. Read it again.")
}

func checkList(r *request, in *listBody) error {
	var bad fieldErrors
	if in.Values == nil && in.Data == nil {
		bad.add("values", "is required: want an array of strings, which may be empty, or data with a JSON document")
	}
	l := in.of(r.param)
	bad.merge(l.Validate())
	return bad.err()
}

// deleteList removes a list. It refuses if a rule refers to the list.
func (s *Server) deleteList(r *request) error {
	looks, err := s.looksInList(r, (*engine.CompiledRule).Lists)
	if err != nil {
		return err
	}
	err = s.docs.DeleteList(r.ctx, r.who.org, r.param, looks, r.mayChangeList)
	if used := (*registry.ListInUseError)(nil); errors.As(err, &used) {
		return refuse(codeListInUse,
			"Rules look in the list: "+strings.Join(used.Rules, ", ")+". Change or delete them first.")
	}
	if err != nil {
		return about("list", err)
	}
	return r.answer(http.StatusNoContent, nil)
}

// looksInList returns a function that reports whether the list that r names is among those that names
// returns of a rule. An inactive rule counts, too.
func (s *Server) looksInList(
	r *request, names func(*engine.CompiledRule) []string,
) (func(engine.Rule) bool, error) {
	o := s.decisions.Conditions()
	var err error
	o.Libraries, err = s.currentLibraries(r)
	return func(rule engine.Rule) bool {
		rule.IsActive = true
		looks := func(c *engine.CompiledRule) bool { return slices.Contains(names(c), r.param) }
		return slices.ContainsFunc(engine.CompileRules([]engine.Rule{rule}, o).Rules(), looks)
	}, err
}

// member returns the name of the member that the body has.
func (b *listBody) member() string {
	if b.Data != nil {
		return "data"
	}
	return "values"
}

// missingList adds advice to an error about a rule that refers to a missing list, or that looks for texts in
// a document.
func missingList(err error) error {
	if other := (*registry.NoTextsError)(nil); errors.As(err, &other) {
		return invalid("condition", "looks for texts in the list %q, which is a document: read it in Rego as "+
			"data.lists[%[1]q], or name a list of texts", other.Name)
	}
	if missing := (*registry.MissingListError)(nil); errors.As(err, &missing) {
		return invalid("condition", "looks in the list %q, which does not exist: make it with PUT %s%s first",
			missing.Name, listsPath, missing.Name)
	}
	return err
}

// listsOf returns the lists to which the rules refer. A missing list is an error.
func (s *Server) listsOf(r *request, rules ...*engine.CompiledRule) (condition.Lists, error) {
	names := engine.ListNames((*engine.CompiledRule).Lists, rules...)
	if len(names) == 0 {
		return nil, nil
	}
	found, _, err := s.docs.Lists(r.ctx, r.who.org, names)
	if err != nil {
		return nil, fmt.Errorf("loading the lists of rules: %w", err)
	}
	lists := engine.CompileLists(found)
	for _, name := range names {
		if lists[name] == nil {
			return nil, missingList(&registry.MissingListError{Name: name})
		}
	}
	return lists, nil
}
