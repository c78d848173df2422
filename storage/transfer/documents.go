package transfer

import (
	"bytes"
	"errors"
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// putDocuments stores and counts the documents that the store lacks. One write may change a
// policy only once. So each version of a policy has a write of its own.
func (i *importer) putDocuments() error {
	for rest := i.documents; len(rest) > 0; {
		n, err := distinct(rest)
		if err != nil {
			return err
		}
		policy := ""
		if _, err := i.Store.Update(i.ctx, i.org, func(tx storage.Tx) (err error) {
			policy, err = put(tx, i.org, rest[:n], i.policy)
			return err
		}); err != nil {
			return err
		}
		i.policy = policy
		rest = rest[n:]
	}
	return nil
}

// distinct returns the number of documents before the first repeated name.
func distinct(documents []storage.Document) (n int, err error) {
	type name struct {
		kind storage.Kind
		id   string
	}
	names := make(map[name]bool)
	for n, d := range documents {
		_, id, _, err := storage.CollectionOf(d.Kind).Describe(d)
		if err != nil || names[name{d.Kind, id}] {
			return n, err
		}
		names[name{d.Kind, id}] = true
	}
	return len(documents), nil
}

// put stores and counts the documents that the store lacks. It skips the file's counts and
// details. policy is the policy id of the last version that was stored. put returns the new value
// of policy.
func put(tx storage.Tx, org string, documents []storage.Document, policy string) (string, error) {
	counts, err := storage.AllCounts.Get(tx, org, "")
	if errors.Is(err, storage.ErrNotFound) {
		counts, err = new(storage.Counts), nil
	}
	if err != nil {
		return "", err
	}
	before := *counts
	for _, d := range documents {
		if d.Kind == storage.CountsKind || d.Kind == storage.DetailsKind {
			continue
		}
		fresh, err := missing(tx, &d)
		if err == nil && fresh {
			if err = tx.Put(d); err != nil {
				err = fmt.Errorf("storing the %s %q: %w", storage.CollectionOf(d.Kind).Name, d.ID, err)
			}
		}
		by := int64(0)
		if fresh {
			by = 1
		}
		if err == nil {
			policy, err = count(counts, d, by, policy)
		}
		if err != nil {
			return "", err
		}
	}
	if *counts != before {
		err = storage.AllCounts.Put(tx, org, counts)
	}
	return policy, err
}

// missing reports whether the store lacks d. A different document with the same id is an error.
// The exceptions are an agent that was disabled during the import, which stays disabled, and a stop, of
// which the store keeps its own.
func missing(tx storage.Tx, d *storage.Document) (bool, error) {
	name := storage.CollectionOf(d.Kind).Name
	there, err := tx.Get(d.Kind, d.Org, d.ID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return true, nil
	case err != nil:
		return false, err
	case there.Org != d.Org:
		return false,
			fmt.Errorf("%w: the id of the %s %q is taken by another organization of this store", storage.ErrConflict,
				name, d.ID)
	case bytes.Equal(there.Value, d.Value), d.Kind == storage.StopKind:
		return false, nil
	case d.Kind == storage.AgentKind:
		stored, err := storage.Agents.Parse(there)
		if err != nil {
			return false, err
		}
		agent, err := storage.Agents.Parse(*d)
		if err != nil {
			return false, err
		}
		agent.Status, agent.UpdatedAt, agent.Revision = stored.Status, stored.UpdatedAt, stored.Revision
		if agent.CreatedAt.Equal(stored.CreatedAt) {
			agent.CreatedAt = stored.CreatedAt // take the stored spelling of the time
		}
		if stored.Status == engine.AgentDisabled && *agent == *stored {
			return false, nil
		}
	}
	return false, fmt.Errorf("%w: the %s %q is there and is another", storage.ErrConflict, name, d.ID)
}

// count adds by to the count of d's kind. by is 1, 0 or -1. Only the first version of a policy is
// counted. policy is the policy id of the last version that was counted. count returns the new
// value of policy.
func count(n *storage.Counts, d storage.Document, by int64, policy string) (string, error) {
	switch d.Kind {
	case storage.RuleKind:
		n.Rules += by
	case storage.ListKind:
		list, err := storage.Lists.Parse(d)
		if err != nil {
			return "", err
		}
		n.ListBytes += by * int64(list.Size())
	case storage.LibraryKind:
		library, err := storage.Libraries.Parse(d)
		if err != nil {
			return "", err
		}
		n.LibraryBytes += by * int64(library.Size())
	case storage.AgentKind:
		agent, err := storage.Agents.Parse(d)
		if err != nil {
			return "", err
		}
		n.Agents += by
		if agent.Status == engine.AgentDisabled {
			n.Disabled += by
		}
	case storage.PolicyKind:
		version, err := storage.Policies.Parse(d)
		if err != nil {
			return "", err
		}
		n.VersionBytes += by * int64(len(d.Value))
		if version.PolicyID != policy {
			n.Policies += by
		}
		policy = version.PolicyID
	}
	return policy, nil
}

// eachDocument calls f for org's documents of the kinds in a file, in the file's order.
func eachDocument(r storage.Reader, org string, f func(*storage.Collection, storage.Document) error) error {
	for _, c := range carried {
		if err := eachOf(r, org, c, func(d storage.Document) error { return f(c, d) }); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls f for the documents of org in a collection.
func eachOf(r storage.Reader, org string, c *storage.Collection, f func(storage.Document) error) error {
	q := storage.Query{Kind: c.Kind, Org: org}
	if c.Global {
		q.Index = storage.ByOwnName
	}
	return r.Scan(q, func(_ []byte, d storage.Document) (bool, error) { return true, f(d) })
}
