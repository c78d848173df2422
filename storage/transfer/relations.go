package transfer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/storage"
)

// relations records the ids and names in a file, to check references between documents. An
// endpoint accepts a document only if the documents that it refers to exist.
type relations struct {
	policies  map[string]bool // ids
	lists     map[string]bool // names
	listBytes int
	// libraryBytes is the size of all libraries.
	libraryBytes int
	agents       map[string]string // ids of agents by their folded names
	keys         map[string]*storage.Token
	lines        map[string]int // the lines of the keys
}

func newRelations() relations {
	return relations{
		policies: make(map[string]bool), lists: make(map[string]bool), agents: make(map[string]string),
		keys: make(map[string]*storage.Token), lines: make(map[string]int),
	}
}

// relate verifies the id of a document, and its references to documents on earlier lines. lists
// are the lists that a rule uses.
func (r *relations) relate(line int, doc storage.Document, lists []string) error {
	switch doc.Kind {
	case storage.PolicyKind:
		return r.policy(doc)
	case storage.RuleKind:
		if !condition.IsUUID(doc.ID) {
			return badID("rule", doc.ID)
		}
		for _, name := range lists {
			if !r.lists[name] {
				return fmt.Errorf("the rule %s looks in the list %.80q, which is not in the file", doc.ID, name)
			}
		}
	case storage.ListKind:
		return r.list(doc)
	case storage.LibraryKind:
		return r.library(doc)
	case storage.AgentKind:
		return r.agent(doc)
	case storage.TokenKind:
		return r.key(line, doc)
	}
	return nil
}

func badID(kind, id string) error {
	return fmt.Errorf("the id of the %s, %.80q, is not a UUID in lower case", kind, id)
}

func (r *relations) policy(doc storage.Document) error {
	p, err := storage.Policies.Parse(doc)
	switch {
	case err != nil:
		return err
	case !condition.IsUUID(p.PolicyID):
		return badID("policy", p.PolicyID)
	case p.Version < 1 || p.Version > condition.MaxInteger:
		return fmt.Errorf("the version of policy %s, %d, is not from 1 to %d", p.PolicyID, p.Version,
			int64(condition.MaxInteger))
	}
	r.policies[p.PolicyID] = true
	return nil
}

func (r *relations) list(doc storage.Document) error {
	l, err := storage.Lists.Parse(doc)
	if err == nil {
		err = condition.CheckListName(l.Name)
	}
	if err != nil {
		return err
	}
	r.lists[l.Name] = true
	if r.listBytes += l.Size(); r.listBytes > storage.MaxListBytes {
		return fmt.Errorf("with the list %s the lists of the organization take over %d MiB together", l.Name,
			storage.MaxListBytes>>20)
	}
	return nil
}

// library verifies a library. The Validate of a [CheckConfig] verifies what imports it.
func (r *relations) library(doc storage.Document) error {
	l, err := storage.Libraries.Parse(doc)
	if err == nil {
		err = engine.CheckLibraryName(l.Name)
	}
	if err != nil {
		return err
	}
	if r.libraryBytes += l.Size(); r.libraryBytes > storage.MaxLibraryBytes {
		return fmt.Errorf("with the library %s the libraries of the organization take over %d KiB together", l.Name,
			storage.MaxLibraryBytes>>10)
	}
	return nil
}

func (r *relations) agent(doc storage.Document) error {
	a, err := storage.Agents.Parse(doc)
	switch {
	case err != nil:
		return err
	case !condition.IsUUID(a.ID):
		return badID("agent", a.ID)
	}
	for _, name := range []string{a.ID, a.ExternalID} {
		folded := engine.FoldID(name)
		if other, taken := r.agents[folded]; name != "" && taken && other != a.ID {
			return fmt.Errorf("the agent %s has the name %.80q, which is one of agent %s, or differs from one "+
				"only in case, width or the like", a.ID, name, other)
		}
		r.agents[folded] = a.ID
	}
	return nil
}

func (r *relations) key(line int, doc storage.Document) error {
	t, err := storage.Tokens.Parse(doc)
	switch {
	case err != nil:
		return err
	case !apikey.IsID(t.ID):
		return fmt.Errorf("the id of the key, %.80q, is not %d digits of base62", t.ID, apikey.IDLen)
	case t.PolicyID != "" && !r.policies[t.PolicyID]:
		return fmt.Errorf("the key %s is for policy %.80q, which is not in the file", t.ID, t.PolicyID)
	case t.Hash == [32]byte{}:
		return fmt.Errorf("the key %s has no hash", t.ID)
	}
	r.keys[t.ID], r.lines[t.ID] = t, line
	return nil
}

// families verifies that the parent of each key may have created it, and that no key is its own
// ancestor. The ancestors of a key decide which keys may approve and settle.
func (r *relations) families() error {
	rooted := make(map[string]bool) // the keys whose ancestors are already verified
	for _, id := range slices.Sorted(maps.Keys(r.keys)) {
		var line []string
		for at := id; at != "" && !rooted[at]; {
			t := r.keys[at]
			if slices.Contains(line, at) {
				return &LineError{Line: r.lines[id], Err: fmt.Errorf("the key %s is made by itself", at)}
			}
			line = append(line, at)
			if t.ParentID == "" {
				break
			}
			if err := within(t, r.keys[t.ParentID]); err != nil {
				return &LineError{Line: r.lines[at], Err: fmt.Errorf("the key %s: %w", at, err)}
			}
			at = t.ParentID
		}
		for _, at := range line {
			rooted[at] = true
		}
	}
	return nil
}

// within returns an error unless parent may have created t.
func within(t, parent *storage.Token) error {
	if parent == nil {
		return fmt.Errorf("its parent %.80q is not in the file", t.ParentID)
	}
	for _, scope := range t.Scopes {
		if !slices.Contains(parent.Scopes, scope) {
			return fmt.Errorf("it has the scope %.80q, which its parent lacks", scope)
		}
	}
	switch {
	case !parent.ExpiresAt.IsZero() && (t.ExpiresAt.IsZero() || t.ExpiresAt.After(parent.ExpiresAt)):
		return errors.New("it ends later than its parent")
	case !parent.RevokedAt.IsZero() && t.RevokedAt.IsZero():
		return errors.New("its parent is revoked, and it is not")
	case parent.PolicyID != "" && t.PolicyID != parent.PolicyID:
		return errors.New("its parent is for another policy")
	case parent.AgentID == "":
		return nil
	}
	bound, err := engine.CompileAgentPattern("agent_id", parent.AgentID)
	if err == nil && (t.AgentID == "" || !bound.Covers(t.AgentID)) {
		err = fmt.Errorf("its parent is bound to the agents %.80s, and it is not", strings.TrimSpace(parent.AgentID))
	}
	return err
}
