package transfer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

func keyOf(n int, parent int, change func(*storage.Token)) *storage.Token {
	id := func(n int) string { return fmt.Sprintf("%022d", n) }
	k := &storage.Token{ID: id(n), OrganizationID: "acme", Name: "key", Scopes: []string{"policy:evaluate"}, Hash: [32]byte{1}}
	if parent != 0 {
		k.ParentID = id(parent)
	}
	if change != nil {
		change(k)
	}
	return k
}

// TestDecision_Documents_KeysOfAnImportAreFamilies checks that the keys of a file can have been made by
// their parents, and that no key is its own ancestor: approvals and settlements ask for the family.
func TestDecision_Documents_KeysOfAnImportAreFamilies(t *testing.T) {
	end := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	bound := func(agent string) func(*storage.Token) { return func(k *storage.Token) { k.AgentID = agent } }
	ends := func(at time.Time) func(*storage.Token) { return func(k *storage.Token) { k.ExpiresAt = at } }
	revoked := func(k *storage.Token) { k.RevokedAt = end }
	for name, tc := range map[string]struct {
		keys []*storage.Token
		want string
	}{
		"a family":             {[]*storage.Token{keyOf(1, 3, nil), keyOf(2, 1, nil), keyOf(3, 0, nil)}, ""},
		"its own parent":       {[]*storage.Token{keyOf(1, 0, nil), keyOf(2, 2, nil)}, "line 2: the key 0000000000000000000002 is made by itself"},
		"a cycle of three":     {[]*storage.Token{keyOf(1, 2, nil), keyOf(2, 3, nil), keyOf(3, 1, nil)}, "is made by itself"},
		"above a cycle":        {[]*storage.Token{keyOf(1, 2, nil), keyOf(2, 3, nil), keyOf(3, 2, nil)}, "is made by itself"},
		"no parent":            {[]*storage.Token{keyOf(1, 9, nil)}, "is not in the file"},
		"a scope more":         {[]*storage.Token{keyOf(1, 0, nil), keyOf(2, 1, func(k *storage.Token) { k.Scopes = append(k.Scopes, "rules:write") })}, `the scope "rules:write", which its parent lacks`},
		"a longer life":        {[]*storage.Token{keyOf(1, 0, ends(end)), keyOf(2, 1, ends(end.Add(1)))}, "ends later"},
		"no end":               {[]*storage.Token{keyOf(1, 0, ends(end)), keyOf(2, 1, nil)}, "ends later"},
		"the same end":         {[]*storage.Token{keyOf(1, 0, ends(end)), keyOf(2, 1, ends(end))}, ""},
		"not revoked":          {[]*storage.Token{keyOf(1, 0, revoked), keyOf(2, 1, nil)}, "its parent is revoked"},
		"revoked alone":        {[]*storage.Token{keyOf(1, 0, nil), keyOf(2, 1, revoked)}, ""},
		"unbound":              {[]*storage.Token{keyOf(1, 0, bound("team/*")), keyOf(2, 1, nil)}, "is bound to the agents team/*"},
		"bound to others":      {[]*storage.Token{keyOf(1, 0, bound("team/*")), keyOf(2, 1, bound("other/a"))}, "is bound to the agents team/*"},
		"bound more":           {[]*storage.Token{keyOf(1, 0, bound("team/*")), keyOf(2, 1, bound("team/a"))}, ""},
		"an id that is none":   {[]*storage.Token{keyOf(1, 0, func(k *storage.Token) { k.ID = "../x" })}, "is not 22 digits of base62"},
		"a policy from where?": {[]*storage.Token{keyOf(1, 0, func(k *storage.Token) { k.PolicyID = "0c0ffee0-0000-4000-8000-000000000001" })}, "is not in the file"},
		"no hash":              {[]*storage.Token{keyOf(1, 0, func(k *storage.Token) { k.Hash = [32]byte{} })}, "has no hash"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRelations(), error(nil)
			for i, k := range tc.keys {
				value, encodeErr := storage.Tokens.Encode(k)
				if encodeErr != nil {
					t.Fatal(encodeErr)
				}
				if err == nil {
					err = r.relate(i+1, storage.Document{Kind: storage.TokenKind, Org: "acme", ID: k.ID, Value: value}, nil)
				}
			}
			if err == nil {
				err = r.families()
			}
			if tc.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("keys with %s = %v, want %q", name, err, tc.want)
			}
		})
	}
}

// TestRelations_IdsAndNames checks ids and names, and what documents say of others.
func TestRelations_IdsAndNames(t *testing.T) {
	const id = "0c0ffee0-0000-4000-8000-00000000000"
	agent := func(n, external string) storage.Document {
		value, _ := storage.Agents.Encode(&engine.Agent{ID: id + n, ExternalID: external})
		return storage.Document{Kind: storage.AgentKind, ID: id + n, Value: value}
	}
	list := func(name string, values ...string) storage.Document {
		value, _ := storage.Lists.Encode(&engine.List{Name: name, Values: values})
		return storage.Document{Kind: storage.ListKind, ID: name, Value: value}
	}
	policy := func(id string, version int64) storage.Document {
		value, _ := storage.Policies.Encode(&engine.ActionPolicy{PolicyID: id, Version: version})
		return storage.Document{Kind: storage.PolicyKind, Value: value}
	}
	rule := storage.Document{Kind: storage.RuleKind, ID: id + "1"}
	var long []string
	for i := range 8 << 10 {
		long = append(long, fmt.Sprintf("%01024d", i))
	}
	for name, tc := range map[string]struct {
		docs  []storage.Document
		lists []string
		want  string
	}{
		"two agents":             {[]storage.Document{agent("1", "bot"), agent("2", "Bote")}, nil, ""},
		"two agents of one name": {[]storage.Document{agent("1", "bot"), agent("2", "ＢＯＴ")}, nil, "differs from one only in case"},
		"an external id of an id": {[]storage.Document{agent("1", ""), agent("2", strings.ToUpper(id)+"1")}, nil,
			"differs from one only in case"},
		"an agent's id":         {[]storage.Document{agent("/../x", "")}, nil, "is not a UUID"},
		"a list's name":         {[]storage.Document{list("../x")}, nil, "the name of a list has"},
		"too many lists":        {[]storage.Document{list("a", long...), list("b", long...)}, nil, "take over 8 MiB"},
		"a policy's id":         {[]storage.Document{policy("../x", 1)}, nil, "is not a UUID"},
		"a policy's version":    {[]storage.Document{policy(id+"1", 0)}, nil, "is not from 1 to"},
		"a rule's id":           {[]storage.Document{{Kind: storage.RuleKind, ID: "../x"}}, nil, "is not a UUID"},
		"a rule's list":         {[]storage.Document{list("a"), rule}, []string{"a"}, ""},
		"a rule's missing list": {[]storage.Document{list("a"), rule}, []string{"a", "b"}, `in the list "b", which is not in the file`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := newRelations(), error(nil)
			for i, d := range tc.docs {
				if err == nil {
					err = r.relate(i+1, d, tc.lists)
				}
			}
			if tc.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s = %v, want %q", name, err, tc.want)
			}
		})
	}
}
