package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// PutRule stores a new rule or replaces the rule with its ID. It returns a *storage.LimitError if
// the rule is new and org already has maxRules rules. 0 means no limit. uses has the lists and the
// libraries that the rule uses. If a list is missing, PutRule returns a [*MissingListError]. If a
// library is missing or has another revision, PutRule returns a [*LibraryChangedError].
func (r *Registry) PutRule(ctx context.Context, org string, rule *engine.Rule, maxRules int, uses ...Uses) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		if err := have(tx, org, uses); err != nil {
			return err
		}
		_, err := storage.Rules.Get(tx, org, rule.ID)
		if errors.Is(err, storage.ErrNotFound) {
			err = recount(tx, org, func(c *storage.Counts) error { return raise(&c.Rules, 1, "rules", maxRules) })
		} else if err == nil {
			err = retire(tx, storage.RuleKind, org, rule.ID, false)
		}
		if err != nil {
			return err
		}
		return storage.Rules.Put(tx, org, rule)
	})
}

// UpdateRule atomically replaces a rule with f's result. f may be called more than once. It must
// not change the rule's ID and must not call the store. UpdateRule returns storage.ErrNotFound if
// the rule is missing, and f's error if f fails. uses has the lists and the libraries that the new
// rule uses, as in [Registry.PutRule].
func (r *Registry) UpdateRule(
	ctx context.Context, org, ruleID string, f func(engine.Rule) (engine.Rule, error), uses ...Uses,
) (*engine.Rule, error) {
	return change(ctx, r, org, func(tx storage.Tx) (*engine.Rule, error) {
		stored, err := storage.Rules.Get(tx, org, ruleID)
		if err != nil {
			return nil, err
		}
		changed, err := f(*stored)
		if err == nil && changed.ID != ruleID {
			err = fmt.Errorf("updating rule %s: its id became %s", ruleID, changed.ID)
		}
		if err == nil {
			err = have(tx, org, uses)
		}
		if err == nil {
			err = retire(tx, storage.RuleKind, org, ruleID, false)
		}
		if err != nil {
			return nil, err
		}
		return &changed, storage.Rules.Put(tx, org, &changed)
	})
}

// DeleteRule removes the rule, or returns storage.ErrNotFound. If check is not nil, it gets the
// stored rule, and DeleteRule returns an error of check without a removal. check may be called
// more than once and must not call the store.
func (r *Registry) DeleteRule(ctx context.Context, org, ruleID string, check func(engine.Rule) error) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		stored, err := storage.Rules.Get(tx, org, ruleID)
		if err == nil && check != nil {
			err = check(*stored)
		}
		if err != nil {
			return err
		}
		if err := retire(tx, storage.RuleKind, org, ruleID, true); err != nil {
			return err
		}
		if err := tx.Delete(storage.RuleKind, org, ruleID); err != nil {
			return err
		}
		return recount(tx, org, func(c *storage.Counts) error { return raise(&c.Rules, -1, "rules", 0) })
	})
}

// Rule returns a rule of org, or storage.ErrNotFound.
func (r *Registry) Rule(ctx context.Context, org, ruleID string) (*engine.Rule, error) {
	return read(ctx, r, func(tx storage.Reader) (*engine.Rule, error) { return storage.Rules.Get(tx, org, ruleID) })
}

// AllRules returns every rule of org in the order of [CompareRules]. It also returns a revision
// that grows with each change of a rule.
func (r *Registry) AllRules(ctx context.Context, org string) (rules []engine.Rule, revision int64, err error) {
	rules, err = read(ctx, r, func(tx storage.Reader) (rules []engine.Rule, err error) {
		if rules, err = values(tx, storage.Rules, org); err == nil {
			revision, _, err = rulesRevision(tx, org, rulesKinds...)
		}
		return rules, err
	})
	slices.SortFunc(rules, CompareRules)
	return rules, revision, err
}

// RulesAndLibraries returns every rule of org in the order of [CompareRules], and every library in
// the order of their names, as they were at one time. It also returns a revision that grows with each
// change of a rule, a list or a library. The caller may decide by the result: from now on the revisions
// of these documents and of the lists are kept when they are replaced, see [Registry.RulesAt].
func (r *Registry) RulesAndLibraries(
	ctx context.Context, org string,
) (rules []engine.Rule, libraries []engine.Library, revision int64, err error) {
	var f First
	revision, err = r.load(ctx, org, func(tx storage.Reader) (revision, loaded int64, err error) {
		loaded, err = f.readRules(tx, org)
		return f.Revision, loaded, err
	})
	return f.Rules, f.Libraries, revision, err
}

// values returns the documents of org in a collection, in the order of their ids.
func values[T any](tx storage.Reader, c storage.Of[T], org string) (docs []T, err error) {
	stored, err := every(tx, c, storage.Query{Org: org})
	for _, doc := range stored {
		docs = append(docs, *doc)
	}
	return docs, err
}

// CompareRules orders rules as they are evaluated. The highest Priority comes first, then the
// earliest CreatedAt, then the least ID.
func CompareRules(a, b engine.Rule) int {
	return cmp.Or(
		cmp.Compare(b.Priority, a.Priority),
		a.CreatedAt.Compare(b.CreatedAt),
		cmp.Compare(a.ID, b.ID),
	)
}
