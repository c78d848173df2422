package embedded

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// TestRevokeToken_ReadsNoTokenOfAnother checks that RevokeToken does not read a token of another
// organization. The time of such a read would reveal that the token exists.
func TestRevokeToken_ReadsNoTokenOfAnother(t *testing.T) {
	s := openTest(t, vfs.NewMem(), nil)
	defer closeTest(t, s)
	docs := registry.New(s)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	must(t, docs.PutToken(t.Context(), &storage.Token{ID: "t", OrganizationID: "a", CreatedAt: at}, 0))
	must(t, s.db.Set(documentKey(&storage.Tokens.Collection, "a", "t"), []byte("unreadable"), pebble.Sync))
	if err := docs.RevokeToken(t.Context(), "b", "t", at); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("RevokeToken of another's = %v, want ErrNotFound without reading it", err)
	}
	if err := docs.RevokeToken(t.Context(), "a", "t", at); err == nil || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("RevokeToken of an unreadable token = %v, want an error about it", err)
	}
}

// TestCheckIndex_Documents makes changes to documents and their indexes that an attacker with write
// access could make. It checks the error for each change.
func TestCheckIndex_Documents(t *testing.T) {
	w := writeHistory(t)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	w.change(t, func(s *Store) {
		docs := registry.New(s)
		for _, id := range []string{"a", "b"} {
			if err := errors.Join(
				docs.PutAgent(t.Context(), "acme", &engine.Agent{ID: id, ExternalID: "x" + id, CreatedAt: at}, 0),
				docs.PutToken(t.Context(), &storage.Token{ID: id, OrganizationID: "acme", CreatedAt: at}, 0),
				docs.PutRule(t.Context(), "acme", &engine.Rule{ID: id}, 0),
			); err != nil {
				t.Fatal(err)
			}
		}
	})
	if _, err := w.prove(t, w.disk, nil); err != nil {
		t.Fatalf("Prove = %v", err)
	}
	entry := func(k storage.Kind, i storage.Index, value []byte, id string) key {
		return append(indexOf(k, "acme", i), value...).text(id)
	}
	age := entry(storage.AgentKind, storage.ByAge, storage.Time(at), "a")
	for name, test := range map[string]struct {
		do   func(t *testing.T, s *Store)
		want string
	}{
		"a rule swapped, with a change that would have been signed": {waitingChange(t, 2, 2), "the change of revision 2 waits to be signed, and those of "},
		"a rule swapped, with a change that was never made":         {waitingChange(t, 999, 999), "the change of revision 999 waits to be signed, and those of "},
		"a rule swapped, with a change in another place":            {waitingChange(t, 999, 8), "the change of revision 8 is not in its place"},
		"a change cut": {func(t *testing.T, s *Store) { put(t, s, changeKey(8, 9), []byte("x")) }, "a stored change is corrupt: "},
		"an agent that its name does not find": {func(t *testing.T, s *Store) {
			del(t, s, entry(storage.AgentKind, storage.ByName, storage.Text("xa"), "a"))
		}, `organization "acme": agent "a": it is not found as index 2 has it`},
		"an agent that a name of another finds": {func(t *testing.T, s *Store) {
			put(t, s, entry(storage.AgentKind, storage.ByName, storage.Text("xb"), "a"), []byte("a"))
		}, `organization "acme": agent "a": an index has it under a key that is not its own`},
		"an entry that leads to another": {func(t *testing.T, s *Store) { put(t, s, age, []byte("b")) },
			`organization "acme": agent "a": it is not found as index 1 has it`},
		"an agent deleted": {func(t *testing.T, s *Store) {
			del(t, s, documentKey(&storage.Agents.Collection, "acme", "a"))
		}, `organization "acme": agent "a": it is found in an index, and it is not there`},
		"a rule in the place of another": {func(t *testing.T, s *Store) {
			v, _ := s.get(documentKey(&storage.Rules.Collection, "acme", "b"))
			put(t, s, documentKey(&storage.Rules.Collection, "acme", "a"), v)
		}, `organization "acme": the rule "b" of "" is in the place of "a" of "acme"`},
		"a token of another organization": {func(t *testing.T, s *Store) {
			k := documentKey(&storage.Tokens.Collection, "", "a")
			v, _ := s.get(k)
			d := storage.Document{Kind: storage.TokenKind, ID: "a"}
			must(t, parseDocument(&d, &storage.Tokens.Collection, v))
			d.Org = "rival"
			put(t, s, k, documentRow(&storage.Tokens.Collection, d))
		}, `organization "rival": the key "a" of "acme" is in the place of "a" of "rival"`},
		"a document cut": {func(t *testing.T, s *Store) {
			put(t, s, documentKey(&storage.Rules.Collection, "acme", "a"), []byte("x"))
		}, `organization "acme": a stored rule of 1 bytes`},
		"a document of no kind": {func(t *testing.T, s *Store) { put(t, s, key{byte(kindDocument), '?', 0, 0}, nil) },
			"a document is of the kind '?', which is none"},
		"an index of no kind": {func(t *testing.T, s *Store) { put(t, s, key{byte(kindIndex), '?', 0, 0, 1}, nil) },
			"an index is of its kind, which is none"},
		"an index without an organization": {func(t *testing.T, s *Store) { put(t, s, key{byte(kindIndex)}, nil) },
			"0 stored bytes have no organization"},
	} {
		t.Run(name, func(t *testing.T) {
			forged := written{disk: w.disk.CrashClone(vfs.CrashCloneCfg{}), keys: w.keys}
			forged.change(t, func(s *Store) { test.do(t, s) })
			_, err := forged.prove(t, forged.disk, nil)
			wantBreak(t, err, test.want)
		})
	}
}

// waitingChange replaces a rule of acme at one revision. It stores the change of that rule under
// the key of another revision.
func waitingChange(t *testing.T, at, revision uint64) func(*testing.T, *Store) {
	t.Helper()
	return func(t *testing.T, s *Store) {
		d := storage.Document{Value: []byte(`{"id":"q","name":"lifts"}`), Revision: revision}
		put(t, s, documentKey(&storage.Rules.Collection, "acme", "q"), documentRow(&storage.Rules.Collection, d))
		v, err := json.Marshal(storage.Change{Kind: storage.RuleKind, Org: "acme", ID: "q", Revision: revision, Digest: sha256.Sum256(d.Value)})
		must(t, err)
		put(t, s, changeKey(at, 0), v)
	}
}

// TestWatch_GoesOnAfterARestart opens a store again. Changes must return all changes after a given
// revision, and no revision may be used twice.
func TestWatch_GoesOnAfterARestart(t *testing.T) {
	fs := vfs.NewMem()
	s := openTest(t, fs, nil)
	put := func(id string) uint64 {
		t.Helper()
		revision, err := s.Update(t.Context(), "org", func(tx storage.Tx) error {
			return storage.Rules.Put(tx, "org", &engine.Rule{ID: id})
		})
		must(t, err)
		return revision
	}
	put("a")
	second := put("b")
	third := put("c")
	closeTest(t, s)
	s = openTest(t, fs, nil)
	defer closeTest(t, s)
	var got []string
	defer s.Watch(func(c storage.Change) { got = append(got, c.ID) })()
	if fourth := put("d"); fourth <= third {
		t.Errorf("revision %d after a restart, want more than %d", fourth, third)
	}
	if want := []string{"d"}; !slices.Equal(got, want) {
		t.Errorf("changes heard after a restart = %q, want %q", got, want)
	}
	if late, err := s.Changes(t.Context(), storage.Change{Revision: second}, 1); err != nil || len(late) != 1 || late[0].ID != "c" {
		t.Errorf("Changes after a restart = %+v, %v, want c", late, err)
	}
	some, err := s.Changes(t.Context(), storage.Change{}, 3)
	must(t, errors.Join(err, s.Trim(t.Context(), some)))
	if left, err := s.Changes(t.Context(), storage.Change{}, 9); err != nil || len(left) != 1 || left[0].ID != "d" {
		t.Errorf("Changes after Trim = %+v, %v, want d", left, err)
	}
}
