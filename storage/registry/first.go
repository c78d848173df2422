package registry

import (
	"context"
	"errors"
	"slices"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// First is what the first decision of an organization reads.
type First struct {
	Subscription *storage.Subscription // nil if there is none
	Stop         *storage.Stop         // nil if the organization is active
	Policy       *engine.ActionPolicy  // nil if there is none
	Agents       []*engine.Agent       // as AgentsNamed returns them

	// These are the results of RulesAndLibraries.
	Rules     []engine.Rule
	Libraries []engine.Library
	Revision  int64
}

// First reads one state of the store: the organization's plan and rules, a policy, and the agents with a
// name. A store with a [storage.Prefetcher] gets four requests, where single reads make sixteen.
func (r *Registry) First(ctx context.Context, org, policyID, agent string) (*First, error) {
	var f *First
	_, err := r.load(ctx, org, func(tx storage.Reader) (revision, loaded int64, err error) {
		f = new(First)
		if err = storage.Prefetch(tx, firstQueries(org)...); err == nil {
			err = f.read(tx, org, policyID, agent)
		}
		if err == nil {
			loaded, err = f.readRules(tx, org)
		}
		return f.Revision, loaded, err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func firstQueries(org string) (queries []storage.Query) {
	for _, kind := range []storage.Kind{
		storage.SubscriptionKind, storage.StopKind, storage.RuleKind, storage.LibraryKind, storage.ListKind,
		storage.CountsKind, storage.LoadedKind,
	} {
		queries = append(queries, storage.Query{Kind: kind, Org: org})
	}
	return queries
}

func (f *First) read(tx storage.Reader, org, policyID, agent string) (err error) {
	if f.Subscription, err = ifAny(storage.Subscriptions.Get(tx, org, "")); err != nil {
		return err
	}
	if f.Stop, err = ifAny(storage.Stops.Get(tx, org, storage.StopID)); err != nil {
		return err
	}
	if f.Policy, err = ifAny(newest(tx, org, policyID)); err != nil {
		return err
	}
	f.Agents, err = agentsNamed(tx, org, agent)
	return err
}

// readRules reads the results of RulesAndLibraries. loaded is the greatest revision of a rule, a list or a library.
func (f *First) readRules(tx storage.Reader, org string) (loaded int64, err error) {
	if f.Rules, err = values(tx, storage.Rules, org); err != nil {
		return 0, err
	}
	if f.Libraries, err = values(tx, storage.Libraries, org); err != nil {
		return 0, err
	}
	if f.Revision, loaded, err = rulesRevision(tx, org, storage.ListKind); err != nil {
		return 0, err
	}
	for i := range f.Rules {
		loaded = max(loaded, f.Rules[i].Revision)
	}
	for i := range f.Libraries {
		loaded = max(loaded, f.Libraries[i].Revision)
	}
	f.Revision = max(f.Revision, loaded)
	slices.SortFunc(f.Rules, CompareRules)
	return loaded, nil
}

// ifAny returns nil for a document that does not exist.
func ifAny[T any](doc *T, err error) (*T, error) {
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	return doc, err
}
