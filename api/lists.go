package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
	"writ/storage/registry"
)

// listsPath is the prefix of the paths of lists. The body of a list may be as large as a batch.
const listsPath = "/v1/lists/"

// listBody is the body of PUT /v1/lists/{name}.
type listBody struct {
	Values []string `json:"values"`
}

func summarizeList(_ *request, l *engine.List) namedSummary {
	return namedSummary{l.Name, l.Version, len(l.Values), l.CreatedAt, l.UpdatedAt}
}

// putList stores a list or its next version. The list is in force before the answer is sent.
func (s *Server) putList(r *request, in *listBody) error {
	r.slot.Leave() // from here on the handler only waits for the store
	l, created, err := s.docs.PutList(r.ctx, r.who.org, r.param, in.Values, r.stamp(), r.mayChangeList)
	if full := (*storage.LimitError)(nil); errors.As(err, &full) {
		return invalid("values", "take the lists of the organization over %d MiB together", full.Limit>>20)
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
	if in.Values == nil {
		bad.add("values", "is required: want an array of strings, which may be empty")
	}
	l := engine.List{Name: r.param, Values: in.Values}
	bad.merge(l.Validate())
	return bad.err()
}

// deleteList removes a list. It refuses if a rule refers to the list.
func (s *Server) deleteList(r *request) error {
	o := s.decisions.Conditions()
	var err error
	if o.Libraries, err = s.currentLibraries(r); err != nil {
		return err
	}
	err = s.docs.DeleteList(r.ctx, r.who.org, r.param, func(rule engine.Rule) bool {
		rule.IsActive = true // an inactive rule also prevents the deletion
		return slices.Contains(engine.CompileRules([]engine.Rule{rule}, o).ListNames(), r.param)
	}, r.mayChangeList)
	if used := (*registry.ListInUseError)(nil); errors.As(err, &used) {
		return refuse(codeListInUse,
			"Rules look in the list: "+strings.Join(used.Rules, ", ")+". Change or delete them first.")
	}
	if err != nil {
		return about("list", err)
	}
	return r.answer(http.StatusNoContent, nil)
}

// missingList adds advice to an error about a rule that refers to a missing list.
func missingList(err error) error {
	if missing := (*registry.MissingListError)(nil); errors.As(err, &missing) {
		return invalid("condition", "looks in the list %q, which does not exist: make it with PUT %s%s first",
			missing.Name, listsPath, missing.Name)
	}
	return err
}

// listsOf returns the lists to which the rules refer. A missing list is an error.
func (s *Server) listsOf(r *request, rules ...*engine.CompiledRule) (condition.Lists, error) {
	names := engine.ListNames(rules...)
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
