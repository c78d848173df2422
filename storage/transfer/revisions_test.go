package transfer_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

// standing is what stood when a decision was made.
type standing struct {
	Rules     []engine.Rule
	Libraries []engine.Library
	Lists     []engine.List
}

// past changes rules, lists and libraries, and remembers what stood at each decision.
type past struct {
	place
	n       int // decisions
	random  *rand.Rand
	decided map[string]standing // by decision id
}

func newPast(p place) *past {
	return &past{place: p, random: rand.New(rand.NewPCG(31, 0)), decided: make(map[string]standing)}
}

// live makes changes and decisions in the place.
func (p *past) live(t *testing.T) {
	t.Helper()
	p.with(t, noon, func(s storage.Store, l *ledger.Ledger) {
		docs := registry.New(s)
		must(t, docs.PublishKeys(t.Context(), keysOf(t, p.key)))
		for range 40 {
			p.change(t, docs)
			if p.random.IntN(2) == 0 {
				p.decideUnder(t, docs, l)
			}
		}
	})
}

func (p *past) decideUnder(t *testing.T, docs *registry.Registry, l *ledger.Ledger) {
	t.Helper()
	var now standing
	var at int64
	var err error
	now.Rules, now.Libraries, at, err = docs.RulesAndLibraries(t.Context(), "acme")
	must(t, err)
	now.Lists, _, err = docs.Lists(t.Context(), "acme", []string{"x", "y"})
	must(t, err)
	p.n++
	outs, err := ledgertest.Commit(t.Context(), l, "acme", &ledger.Entry{
		Intent: intent(p.n), PolicyVersion: 1, Credential: "operator:alice", RulesRevision: at,
		Result: engine.Result{Decision: engine.Allow, Findings: []engine.Finding{{Outcome: engine.Allow, Reason: "policy.allowed: yes"}}},
	})
	must(t, err)
	must(t, outs[0].Err)
	p.decided[outs[0].Record.DecisionID] = now
}

func (p *past) change(t *testing.T, docs *registry.Registry) {
	t.Helper()
	ctx, n := t.Context(), p.random.IntN(2)
	id, name := fmt.Sprintf("0c0ffee0-0000-4000-8000-00000000000%d", n), []string{"x", "y"}[n]
	anything := func(*engine.Library, []engine.Library, []engine.Rule) error { return nil }
	var err error
	switch p.random.IntN(7) {
	case 0, 1:
		err = docs.PutRule(ctx, "acme", &engine.Rule{ID: id, Priority: p.random.Int64N(1000)}, 0)
	case 2:
		err = docs.DeleteRule(ctx, "acme", id, nil)
	case 3, 4:
		l := engine.List{Name: name, Values: []string{fmt.Sprint(p.random.Int())}}
		_, _, err = docs.PutList(ctx, "acme", l, noon, nil, nil)
	case 5:
		err = docs.DeleteList(ctx, "acme", name, func(engine.Rule) bool { return false }, nil)
	case 6:
		_, _, err = docs.PutLibrary(ctx, "acme", name, map[string]string{"a.rego": fmt.Sprint(p.random.Int())}, noon, anything)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("a change = %v", err)
	}
}

// wantKnown checks that a place knows what stood at each decision.
func (p *past) wantKnown(t *testing.T) {
	t.Helper()
	p.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		docs := registry.New(s)
		own := make(map[[16]byte]bool)
		must(t, s.Chains(t.Context(), func(tip receipt.Chain) error { own[tip.ID] = true; return nil }))
		for id, want := range p.decided {
			row, err := s.Record(t.Context(), "acme", id)
			must(t, err)
			chain, err := row.Receipt.Inclusion().Chain()
			must(t, err)
			at := registry.Then{Revision: row.RulesRevision}
			if !own[chain] {
				at.Origin, err = docs.OriginOf(t.Context(), "acme", chain)
				must(t, err)
			}
			var got standing
			got.Rules, got.Libraries, err = docs.RulesAt(t.Context(), "acme", at)
			must(t, err)
			got.Lists, err = docs.ListsAt(t.Context(), "acme", []string{"x", "y"}, at)
			must(t, err)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("what stood at decision %s, revision %+v (-then +later):\n%s", id, at, diff)
			}
		}
	})
}

// TestRoundTrip_Revisions moves an organization twice. Each store changes rules, lists and libraries and
// decides under them. The last store knows what stood at each decision of each store.
func TestRoundTrip_Revisions(t *testing.T) {
	move := func(name string, places ...func() place) {
		t.Run(name, func(t *testing.T) {
			p, keys := newPast(places[0]()), receipt.Keys{}
			p.live(t)
			for _, to := range places[1:] {
				p.wantKnown(t)
				keys = keys.With(keysOf(t, p.key))
				file, _ := p.export(t)
				p.place = to()
				p.mustImport(t, file, keys)
				p.wantKnown(t)
				p.live(t)
			}
			p.wantKnown(t)
			p.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
				n, err := registry.New(s).SweepRevisions(t.Context(), "acme", time.Now().Add(time.Hour))
				if n == 0 || err != nil {
					t.Errorf("SweepRevisions = %d, %v, want some to be removed", n, err)
				}
				must(t, s.View(t.Context(), func(r storage.Reader) error {
					return storage.Revisions.Scan(r, storage.Query{Org: "acme"}, func([]byte, *storage.Revision) (bool, error) {
						return false, errors.New("a revision is left")
					})
				}))
			})
		})
	}
	memory := func(key byte) func() place { return func() place { return inMemory(key) } }
	move("embedded", memory(1), memory(2), memory(3))
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	mongo := func(key byte) func() place { return func() place { return inMongoDB(set, key) } }
	move("embedded, MongoDB, embedded", memory(1), mongo(2), memory(3))
	move("MongoDB, embedded, MongoDB", mongo(1), memory(2), mongo(3))
}

// TestCheck_ForgedRevisions checks that revisions and origins that do not fit are refused.
func TestCheck_ForgedRevisions(t *testing.T) {
	const (
		origin = "01a1fe16-0000-7000-8000-000000000001"
		rule   = "0c0ffee0-0000-4000-8000-000000000001"
		chain  = "00112233445566778899aabbccddeeff"
	)
	type obj = map[string]any
	an := func(id string, chains ...string) storage.Document {
		value, err := storage.Origins.Encode(&storage.Origin{ID: id, Chains: chains})
		must(t, err)
		return storage.Document{Kind: storage.OriginKind, ID: id, Value: value}
	}
	of := func(since, until int64, change func(*storage.Revision)) storage.Document {
		v := &storage.Revision{Origin: origin, Of: "r", ID: rule, Since: since, Until: until, ReplacedAt: noon, Value: jsontext.Value(`{"id":"` + rule + `"}`)}
		if change != nil {
			change(v)
		}
		value, err := storage.Revisions.Encode(v)
		must(t, err)
		return storage.Document{Kind: storage.RevisionKind, ID: v.DocumentID(), Value: value}
	}
	own := an(origin, chain)
	for name, test := range map[string]struct {
		want string
		docs []storage.Document
	}{
		"some that fit":            {"", []storage.Document{own, of(7, 0, nil), of(5, 7, nil), of(1, 4, nil)}},
		"an origin without chains": {"", []storage.Document{an(origin)}},
		"no origin":                {"which is not in the file", []storage.Document{of(7, 0, nil)}},
		"a revision of this store": {"which is not in the file", []storage.Document{own, of(7, 9, func(v *storage.Revision) { v.Origin = "" })}},
		"an origin that is none":   {"is not a UUIDv7", []storage.Document{an("x")}},
		"a chain that is none":     {"want 32 lower-case hex digits", []storage.Document{an(origin, strings.ToUpper(chain))}},
		"a chain of two origins":   {"is of two origins", []storage.Document{own, an("01a1fe16-0000-7000-8000-000000000002", chain)}},
		"a policy":                 {"want r, l or b", []storage.Document{own, of(7, 0, func(v *storage.Revision) { v.Of = "p" })}},
		"no kind":                  {"want r, l or b", []storage.Document{own, of(7, 0, func(v *storage.Revision) { v.Of = "" })}},
		"another id":               {"in the place of", []storage.Document{own, of(7, 0, func(v *storage.Revision) { v.ID = origin })}},
		"an id that is none":       {"is not a UUID", []storage.Document{own, of(7, 0, func(v *storage.Revision) { v.ID = "../x" })}},
		"no revision":              {"want integers from 1", []storage.Document{own, of(0, 0, nil)}},
		"an end before it begins":  {"before it begins", []storage.Document{own, of(7, 7, nil)}},
		"two current ones":         {"stands beside its revision 7", []storage.Document{own, of(7, 0, nil), of(5, 0, nil)}},
		"two that overlap":         {"stands beside its revision 7", []storage.Document{own, of(7, 0, nil), of(5, 8, nil)}},
		"no time":                  {"has no replaced_at", []storage.Document{own, of(7, 0, func(v *storage.Revision) { v.ReplacedAt = time.Time{} })}},
		"a list's name": {"the name of a list has", []storage.Document{own, of(7, 0, func(v *storage.Revision) {
			v.Of, v.ID, v.Value = "l", "../x", jsontext.Value(`{"name":"../x"}`)
		})}},
		"twice":       {"there twice or is out of order", []storage.Document{own, of(7, 9, nil), of(7, 9, nil)}},
		"older first": {"there twice or is out of order", []storage.Document{own, of(5, 7, nil), of(7, 9, nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			line := func(member string, v any) {
				text, err := json.Marshal(obj{member: v}, json.Deterministic(true))
				must(t, err)
				all = append(all, string(text)+"\n")
			}
			line("header", transfer.Header{Format: "writ-export/4", ID: origin, OrganizationID: "acme", Keys: keysOf(t, 1).JWKS()})
			for _, d := range test.docs {
				line("document", obj{"kind": storage.CollectionOf(d.Kind).Name, "value": jsontext.Value(d.Value),
					"id": base64.RawURLEncoding.EncodeToString([]byte(d.ID))})
			}
			line("footer", transfer.Footer{Documents: int64(len(test.docs)), Root: new(ledger.ImportTree).Root()})
			file := strings.Join(resealed(t, all), "")
			_, err := transfer.Check(t.Context(), strings.NewReader(file), int64(len(file)), checking(receipt.Keys{}))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check = %v, want %q", err, test.want)
			}
		})
	}
}

// TestReceive_Revisions exports from a store that runs, in parts. The documents under which it decides are revisions of the
// target, although the header is in another part.
func TestReceive_Revisions(t *testing.T) {
	p := newPast(inMemory(1))
	p.live(t)
	file := filepath.Join(t.TempDir(), "acme.ndjson")
	p.with(t, noon.Add(time.Hour), func(s storage.Store, _ *ledger.Ledger) {
		if _, err := (&server{t: t, s: s, rows: 3, left: 1 << 30}).receive(file); err != nil {
			t.Fatal(err)
		}
	})
	p.place = inMemory(2)
	p.mustImport(t, file, keysOf(t, 1))
	p.wantKnown(t)
}

// TestAbandon_Revisions abandons an import of revisions. Revisions that the target keeps of itself stay,
// and the same file can be imported again.
func TestAbandon_Revisions(t *testing.T) {
	p := newPast(inMemory(1))
	p.live(t)
	file, _ := p.export(t)
	p.place = inMemory(2)
	p.importSome(t, file, 5)
	p.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		docs := registry.New(s)
		if _, _, _, err := docs.RulesAndLibraries(t.Context(), "acme"); err != nil { // they are loaded to decide
			t.Fatal(err)
		}
		done, err := p.abandon(t, s)
		if err != nil || len(done.Kept) > 0 {
			t.Errorf("Abandon = %+v, %v, want that nothing is kept", done, err)
		}
		must(t, s.View(t.Context(), func(r storage.Reader) error {
			own := 0
			err := storage.Revisions.Scan(r, storage.Query{Org: "acme"}, func(_ []byte, v *storage.Revision) (bool, error) {
				own++
				if v.Origin != "" || !v.Removed {
					t.Errorf("a revision of %q is left, from %d", v.Origin, v.Since)
				}
				return true, nil
			})
			if own == 0 {
				t.Error("no revision of the target is left")
			}
			return errors.Join(err, storage.Origins.Scan(r, storage.Query{Org: "acme"}, func([]byte, *storage.Origin) (bool, error) {
				return false, errors.New("an origin is left")
			}))
		}))
	})
	p.mustImport(t, file, keysOf(t, 1))
	p.wantKnown(t)
}
