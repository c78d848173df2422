package storagetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// RunDocuments runs the tests of documents. open must return a new, empty store and close it when t
// ends.
func RunDocuments(t *testing.T, open func(t *testing.T) storage.Documents) {
	for name, tests := range map[string][]docTest{
		"Documents": documentTests, "Watch": watchTests, "Revisions": revisionTests,
		"Libraries": libraryTests,
	} {
		t.Run(name, func(t *testing.T) {
			for _, test := range tests {
				t.Run(test.rule, func(t *testing.T) {
					t.Parallel()
					test.run(&docs{Checks: Checks{t}, Documents: open(t)})
				})
			}
		})
	}
}

type docTest struct {
	rule string
	run  func(*docs)
}

type docs struct {
	Checks
	storage.Documents
}

// put returns an update that stores rules with the given ids.
func put(org string, ids ...string) func(storage.Tx) error {
	return func(tx storage.Tx) error {
		for _, id := range ids {
			if err := storage.Rules.Put(tx, org, &engine.Rule{ID: id}); err != nil {
				return err
			}
		}
		return nil
	}
}

func putToken(org, id string) func(storage.Tx) error {
	return func(tx storage.Tx) error {
		return storage.Tokens.Put(tx, org, &storage.Token{ID: id, OrganizationID: org, CreatedAt: noon})
	}
}

func (d *docs) update(org string, f func(storage.Tx) error) uint64 {
	d.Helper()
	revision, err := d.Update(d.Context(), org, f)
	if err != nil {
		d.Fatalf("Update = %v, want nil", err)
	}
	return revision
}

func (d *docs) view(f func(storage.Reader) error) {
	d.Helper()
	if err := d.View(d.Context(), f); err != nil {
		d.Fatalf("View = %v, want nil", err)
	}
}

func ids(r storage.Reader, q storage.Query) (ids []string, err error) {
	err = r.Scan(q, func(_ []byte, doc storage.Document) (bool, error) {
		ids = append(ids, doc.ID)
		if (len(doc.Value) > 0) == q.Bare {
			return false, fmt.Errorf("document %q has a value of %d bytes", doc.ID, len(doc.Value))
		}
		return true, nil
	})
	return ids, err
}

func (d *docs) wantIDs(q storage.Query, want ...string) {
	d.Helper()
	d.view(func(r storage.Reader) error {
		got, err := ids(r, q)
		if !slices.Equal(got, want) {
			d.Errorf("Scan(%+v) = %q, want %q", q, got, want)
		}
		return err
	})
}

func rulesOf(org string) storage.Query { return storage.Query{Kind: storage.RuleKind, Org: org} }

var errRefused = errors.New("refused")

var documentTests = []docTest{
	{"Prefetch changes no answer", func(d *docs) {
		orgs := []string{"org", "or", "org2", "o\xc3\xa9"}
		for _, org := range orgs {
			d.update(org, put(org, "a", "aa", "b", "c\x00", "\u00ff", "d"))
			d.update(org, putToken(org, "t"+org))
		}
		read := func(queries ...storage.Query) (got []string) {
			d.view(func(r storage.Reader) error {
				if err := storage.Prefetch(r, queries...); err != nil {
					return err
				}
				for _, org := range orgs {
					for _, q := range []storage.Query{
						rulesOf(org), {Kind: storage.RuleKind, Org: org, Prefix: []byte("a")}, {Kind: storage.RuleKind, Org: org, Bare: true},
						{Kind: storage.RuleKind, Org: org, From: []byte("aa")}, {Kind: storage.ListKind, Org: org},
						{Kind: storage.RuleKind, Org: org, Every: true}, {Kind: storage.AgentKind, Org: org, Index: storage.ByAge},
					} {
						names, err := ids(r, q)
						if err != nil {
							return err
						}
						got = append(got, fmt.Sprintf("%+v: %q", q, names))
					}
					for _, id := range []string{"a", "aa", "ab", "", "d", "c\x00", "c"} {
						found, err := r.Get(storage.RuleKind, org, id)
						got = append(got, fmt.Sprintf("%q: %d bytes of %q, %v", id, len(found.Value), found.ID, errors.Is(err, storage.ErrNotFound)))
					}
				}
				return nil
			})
			return got
		}
		want := read()
		for i, queries := range [][]storage.Query{
			{rulesOf("org")},
			{rulesOf("org2"), {Kind: storage.ListKind, Org: "org"}, rulesOf("or")},
			{{Kind: storage.RuleKind, Org: "org", Prefix: []byte("a")}, {Kind: storage.RuleKind, Org: "org", From: []byte("c")}},
			{rulesOf("none")},
		} {
			d.WantSame(fmt.Sprintf("answers after Prefetch %d", i), read(queries...), want)
		}
		d.view(func(r storage.Reader) error {
			if err := storage.Prefetch(r, rulesOf("org")); err != nil {
				return err
			}
			if err := r.Scan(rulesOf("org"), func([]byte, storage.Document) (bool, error) { return true, errRefused }); !errors.Is(err, errRefused) {
				d.Errorf("Scan = %v, want f's error", err)
			}
			return nil
		})
	}},
	{"Update commits all that f wrote, or nothing when f fails, whose error is returned as it is", func(d *docs) {
		_, err := d.Update(d.Context(), "org", func(tx storage.Tx) error {
			return errors.Join(put("org", "a", "b")(tx), errRefused)
		})
		d.WantErr("Update", err, errRefused)
		if _, err := d.Update(d.Context(), "org", func(storage.Tx) error { return errRefused }); err != errRefused { //nolint:errorlint // as it is
			d.Errorf("Update = %v, want f's error", err)
		}
		d.wantIDs(rulesOf("org"))
		d.update("org", put("org", "a", "b"))
		d.wantIDs(rulesOf("org"), "a", "b")
		ended, cancel := context.WithCancel(d.Context())
		cancel()
		_, err = d.Update(ended, "org", put("org", "c"))
		d.WantErr("Update under a context that has ended", err, context.Canceled)
		d.wantIDs(rulesOf("org"), "a", "b")
	}},
	{"every commit of an organization has a greater revision, which is that of what it wrote", func(d *docs) {
		last := make(map[string]uint64)
		for _, org := range []string{"a", "b", "a"} {
			revision := d.update(org, put(org, "r"))
			if revision <= last[org] {
				d.Errorf("Update = revision %d after %d, want a greater one", revision, last[org])
			}
			last[org] = revision
			d.view(func(r storage.Reader) error {
				doc, err := r.Get(storage.RuleKind, org, "r")
				if doc.Revision != revision || doc.Org != org || doc.ID != "r" || doc.Kind != storage.RuleKind {
					d.Errorf("Get = %+v, want revision %d", doc, revision)
				}
				return err
			})
		}
		if revision := d.update("a", func(storage.Tx) error { return nil }); revision != 0 {
			d.Errorf("Update that writes nothing = revision %d, want 0", revision)
		}
	}},
	{"a Tx sees what was written through it", func(d *docs) {
		d.update("org", put("org", "a", "b"))
		d.update("org", func(tx storage.Tx) error {
			err := errors.Join(put("org", "c")(tx), tx.Delete(storage.RuleKind, "org", "a"))
			got, scanErr := ids(tx, rulesOf("org"))
			if !slices.Equal(got, []string{"b", "c"}) {
				d.Errorf("Scan = %q, want b and c", got)
			}
			_, getErr := tx.Get(storage.RuleKind, "org", "a")
			d.WantErr("Get of what is deleted", getErr, storage.ErrNotFound)
			d.WantErr("Delete of it", tx.Delete(storage.RuleKind, "org", "a"), storage.ErrNotFound)
			return errors.Join(err, scanErr)
		})
		d.wantIDs(rulesOf("org"), "b", "c")
	}},
	{"View has one state, whatever is written meanwhile, and Get and Scan may be nested", func(d *docs) {
		d.update("org", put("org", "a", "b"))
		d.view(func(r storage.Reader) error {
			n := 0
			err := r.Scan(rulesOf("org"), func([]byte, storage.Document) (bool, error) {
				n++
				d.update("org", put("org", fmt.Sprint("c", n)))
				got, err := ids(r, rulesOf("org"))
				if !slices.Equal(got, []string{"a", "b"}) {
					d.Errorf("Scan = %q, want a and b", got)
				}
				_, getErr := r.Get(storage.RuleKind, "org", "c1")
				d.WantErr("Get of what was written since", getErr, storage.ErrNotFound)
				return true, err
			})
			if n != 2 {
				d.Errorf("Scan called f %d times, want 2", n)
			}
			return err
		})
		d.wantIDs(rulesOf("org"), "a", "b", "c1", "c2")
	}},
	{"Scan selects by prefix and start, in order, until f has enough or fails", func(d *docs) {
		d.update("org", put("org", "b", "a", "ab", "a\x00", "ÿ"))
		d.update("orgg", put("orgg", "a"))
		q := rulesOf("org")
		d.wantIDs(q, "a", "a\x00", "ab", "b", "ÿ")
		q.Prefix = []byte("a")
		d.wantIDs(q, "a", "a\x00", "ab")
		q.From = []byte("a\x00")
		d.wantIDs(q, "a\x00", "ab")
		q.Prefix, q.Bare = nil, true
		d.wantIDs(q, "a\x00", "ab", "b", "ÿ")
		q.From = []byte("z\xff\xff")
		d.wantIDs(q, "ÿ")
		d.wantIDs(storage.Query{Kind: storage.RuleKind, Every: true}, "a", "a\x00", "ab", "b", "ÿ", "a")
		d.wantIDs(storage.Query{Kind: storage.RuleKind, Every: true, Org: "org", From: []byte("b")}, "b", "ÿ", "a")
		n := 0
		stop := func(more bool, err error) error {
			return d.View(d.Context(), func(r storage.Reader) error {
				return r.Scan(rulesOf("org"), func([]byte, storage.Document) (bool, error) { n++; return more, err })
			})
		}
		d.WantErr("Scan that has enough", stop(false, nil), nil)
		d.WantErr("Scan that fails", stop(true, errRefused), errRefused)
		if n != 2 {
			d.Errorf("Scan called f %d times, want 2", n)
		}
	}},
	{"an index has what its collection says of what is stored, and nothing of what was", func(d *docs) {
		age := storage.Query{Kind: storage.TokenKind, Org: "org", Index: storage.ByAge}
		expiry := age
		expiry.Index = storage.ByExpiry
		token := func(id string, at, expires int, revoked bool) func(storage.Tx) error {
			t := &storage.Token{ID: id, OrganizationID: "org", CreatedAt: noon.AddDate(0, 0, at)}
			if expires > 0 {
				t.ExpiresAt = noon.AddDate(0, 0, expires)
			}
			if revoked {
				t.RevokedAt = noon
			}
			return func(tx storage.Tx) error {
				return storage.Tokens.Put(tx, "org", t)
			}
		}
		d.update("org", token("late", 2, 0, false))
		d.update("org", token("early", 1, 9, false))
		d.update("org", token("same", 1, 3, false))
		d.wantIDs(age, "early", "same", "late")
		d.wantIDs(expiry, "same", "early", "late")
		expiry.From, expiry.Bare = storage.Time(noon.AddDate(0, 0, 3).Add(1)), true
		d.wantIDs(expiry, "early", "late")
		d.update("org", token("late", 0, 0, true))
		d.wantIDs(age, "late", "early", "same")
		d.wantIDs(expiry, "early")
		d.update("org", func(tx storage.Tx) error { return tx.Delete(storage.TokenKind, "org", "early") })
		d.wantIDs(age, "late", "same")
		d.wantIDs(expiry)
	}},
	{"a Global collection has one space of ids for all organizations", func(d *docs) {
		d.update("a", putToken("a", "t"))
		for _, org := range []string{"", "a", "b"} {
			d.view(func(r storage.Reader) error {
				doc, err := r.Get(storage.TokenKind, org, "t")
				if doc.Org != "a" {
					d.Errorf("Get(%q) = a document of %q, want one of a", org, doc.Org)
				}
				return err
			})
		}
		if _, err := d.Update(d.Context(), "b", putToken("b", "t")); err == nil {
			d.Error("Put of an id that another organization has = nil, want an error")
		}
		_, err := d.Update(d.Context(), "b", func(tx storage.Tx) error { return tx.Delete(storage.TokenKind, "b", "t") })
		d.WantErr("Delete by another organization", err, storage.ErrNotFound)
		d.wantIDs(storage.Query{Kind: storage.TokenKind, Org: "b", Index: storage.ByAge})
		d.wantIDs(storage.Query{Kind: storage.TokenKind, Org: "a", Index: storage.ByAge}, "t")
	}},
	{"Put refuses what is another organization's, of no collection, or not in its place", func(d *docs) {
		for name, doc := range map[string]storage.Document{
			"another organization": {Kind: storage.RuleKind, Org: "other", ID: "r", Value: []byte(`{"id":"r"}`)},
			"no collection":        {Kind: '?', Org: "org", ID: "r", Value: []byte(`{"id":"r"}`)},
			"another id":           {Kind: storage.RuleKind, Org: "org", ID: "r", Value: []byte(`{"id":"s"}`)},
			"no document":          {Kind: storage.RuleKind, Org: "org", ID: "r", Value: []byte(`{`)},
		} {
			if _, err := d.Update(d.Context(), "org", func(tx storage.Tx) error { return tx.Put(doc) }); err == nil {
				d.Errorf("Put of %s = nil, want an error", name)
			}
		}
		d.wantIDs(rulesOf("org"))
		d.wantIDs(rulesOf("other"))
	}},
	{"no organization id reaches into another's range", func(d *docs) {
		for _, org := range Hostile {
			d.update(org, put(org, "r", org))
			d.update(org, putToken(org, "t"+org))
		}
		for _, org := range Hostile {
			want := []string{"r", org}
			slices.Sort(want)
			d.wantIDs(rulesOf(org), want...)
			d.wantIDs(storage.Query{Kind: storage.TokenKind, Org: org, Index: storage.ByOwnName}, "t"+org)
			d.wantIDs(storage.Query{Kind: storage.AgentKind, Org: org})
		}
	}},
	{"updates of one organization are as if one ran after the other", func(d *docs) {
		Race(func(int) {
			for range 4 {
				if _, err := d.Update(d.Context(), "org", countRule); err != nil {
					d.Errorf("Update = %v", err)
				}
			}
		})
		d.wantCount(4 * Racers)
	}},
}

// countRule increments a number that a rule contains.
func countRule(tx storage.Tx) error {
	n, err := storage.AllCounts.Get(tx, "org", "")
	if errors.Is(err, storage.ErrNotFound) {
		n, err = &storage.Counts{}, nil
	}
	if err != nil {
		return err
	}
	n.Rules++
	return storage.AllCounts.Put(tx, "org", n)
}

func (d *docs) wantCount(want int64) {
	d.Helper()
	d.view(func(r storage.Reader) error {
		n, err := storage.AllCounts.Get(r, "org", "")
		if err == nil && n.Rules != want {
			d.Errorf("the count is %d, want %d", n.Rules, want)
		}
		return err
	})
}

// digestOf returns the expected digest of a rule's change.
func digestOf(id string) [32]byte {
	value, err := storage.Rules.Encode(&engine.Rule{ID: id})
	if err != nil {
		panic(err)
	}
	return sha256.Sum256(value)
}

func (d *docs) wantChanges(what string, got []storage.Change, want ...storage.Change) {
	d.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		d.Errorf("%s: -want +got\n%s", what, diff)
	}
}
