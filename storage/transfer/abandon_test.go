package transfer_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

// abandon abandons the import of acme in a store.
func (p place) abandon(t *testing.T, s storage.Store) (done transfer.Abandoned, err error) {
	t.Helper()
	p.ledger(t, s, noon.Add(4*time.Hour), func(s storage.Store, l *ledger.Ledger) {
		done, err = transfer.Abandon(t.Context(), transfer.Target{Store: s, Ledger: l, Now: time.Now}, "acme")
	})
	return done, err
}

// importSome imports a file and stops the import after a number of writes to the store.
func (p place) importSome(t *testing.T, file string, writes int) {
	t.Helper()
	s := &dying{Store: p.open(t), left: writes}
	if _, err := p.importFile(t, s, file, keysOf(t, 1)); !errors.Is(err, errDead) {
		t.Fatalf("Import with %d writes = %v, want that it is dead", writes, err)
	}
	must(t, s.Close())
}

// wantNothing fails t unless acme has neither rows nor documents.
func wantNothing(t *testing.T, s storage.Store) {
	t.Helper()
	if found, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 1}); err != nil || len(found) > 0 {
		t.Errorf("ListRecords = %d rows, %v, want none", len(found), err)
	}
	if n, err := s.CountImported(t.Context(), "acme"); err != nil || n != (storage.Imported{}) {
		t.Errorf("CountImported = %+v, %v, want none", n, err)
	}
	for _, c := range storage.Collections() {
		if c.Kind == storage.PublicKeyKind {
			continue
		}
		must(t, s.View(t.Context(), func(r storage.Reader) error {
			q := storage.Query{Kind: c.Kind, Org: "acme"}
			if c.Global {
				q.Index = storage.ByOwnName
			}
			return r.Scan(q, func([]byte, storage.Document) (bool, error) {
				t.Errorf("a %s is there", c.Name)
				return true, nil
			})
		}))
	}
}

// TestAbandon_Interrupted interrupts the import after any of its writes, and Abandon after any of
// its writes. In the end nothing remains, the history is complete, and the same file can be
// imported.
func TestAbandon_Interrupted(t *testing.T) {
	_, file, footer := exported(t, rows)
	for imported := 2; imported < 6; imported++ {
		for n, done := 0, false; !done; n++ {
			if n > 40 {
				t.Fatal("it takes more than 40 writes")
			}
			to := inMemory(2)
			to.importSome(t, file, imported)
			s := &dying{Store: to.open(t), left: n}
			_, err := to.abandon(t, s)
			if done = err == nil; !done && !errors.Is(err, errDead) {
				t.Fatalf("Abandon after %d writes, with %d = %v, want that it is dead", imported, n, err)
			}
			must(t, s.Close())
			if _, err := to.prove(t, keysOf(t, 1, 2)); err != nil {
				t.Fatalf("Prove after %d and %d writes = %v", imported, n, err)
			}
			again := to.open(t)
			if _, err := to.abandon(t, again); err != nil && !errors.Is(err, transfer.ErrNoImport) {
				t.Fatalf("Abandon again = %v", err)
			}
			wantNothing(t, again)
			must(t, again.Close())
			if proof := wantWhole(t, to, keysOf(t, 1, 2)); proof.Foreign.Organizations > 0 {
				t.Errorf("Prove = %+v, want nothing that was imported", proof.Foreign)
			}
			if i, err := to.importInto(t, file, keysOf(t, 1)); err != nil || i.Root != footer.Root {
				t.Fatalf("Import after that = %+v, %v", i, err)
			}
			wantWhole(t, to, keysOf(t, 1, 2))
		}
	}
}

// TestAbandon_Lists checks that Abandon subtracts the bytes of lists from the counts.
func TestAbandon_Lists(t *testing.T) {
	from, to := inMemory(1), inMemory(2)
	from.fill(t, rows)
	from.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		_, err := s.Update(t.Context(), "acme", func(tx storage.Tx) error {
			return storage.Lists.Put(tx, "acme", &engine.List{Name: "staff", Values: []string{"ann", "bob"}})
		})
		must(t, err)
	})
	file, _ := from.export(t)
	to.importSome(t, file, 5)
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		if done, err := to.abandon(t, s); err != nil || done.Documents == 0 {
			t.Fatalf("Abandon = %+v, %v, want documents removed", done, err)
		}
		wantNothing(t, s)
	})
}

// TestAbandon_InMongoDB checks that Abandon removes all rows, even if they were imported
// in several steps.
func TestAbandon_InMongoDB(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	from, to := inMemory(1), inMongoDB(set, 2)
	from.fill(t, 2500)
	file, _ := from.export(t)
	to.importSome(t, file, 6)
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		done, err := to.abandon(t, s)
		if err != nil || done.Signed.Rows != 2500 || done.Signed.Removed != 5 {
			t.Errorf("Abandon = %+v, %v, want 2,500 rows and 5 removed ones", done, err)
		}
		wantNothing(t, s)
	})
	wantWhole(t, to, keysOf(t, 1, 2))
	to.mustImport(t, file, keysOf(t, 1))
	wantWhole(t, to, keysOf(t, 1, 2))
}

// TestAbandon_WhatOthersMade checks two documents of others. An agent that was disabled during the
// import stays disabled, also in the next import. A key that somebody made during the import stays.
func TestAbandon_WhatOthersMade(t *testing.T) {
	to := inMemory(2)
	_, file, _ := exported(t, rows)
	to.importSome(t, file, 4)
	alice := storage.WithActor(t.Context(), "operator:alice")
	made := &storage.Token{ID: "made", OrganizationID: "acme", Name: "here", CreatedAt: noon}
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		docs := registry.New(s)
		if _, err := docs.SetAgentStatus(alice, "acme", "bot", engine.AgentDisabled, noon, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Update(alice, "acme", func(tx storage.Tx) error {
			return storage.Tokens.Put(tx, "acme", made)
		}); err != nil {
			t.Fatal(err)
		}
		done, err := to.abandon(t, s)
		want := []transfer.KeptDocument{{Kind: "key", ID: "made", Actor: "operator:alice"}, {Kind: "agent", ID: agentID, Actor: "operator:alice"}}
		if err != nil || !slices.Equal(done.Kept, want) || done.Signed.Rows != rows || done.Signed.Removed != 5 {
			t.Errorf("Abandon = %+v, %v, want it to keep %v", done, err, want)
		}
		if n, err := docs.Usage(t.Context(), "acme", time.Now()); err != nil || n.Agents != (registry.AgentCount{Total: 1, Disabled: 1}) {
			t.Errorf("Usage = %+v, %v, want one agent, which is disabled", n, err)
		}
	})
	wantWhole(t, to, keysOf(t, 1, 2))
	if _, err := to.importInto(t, file, keysOf(t, 1)); !errors.Is(err, transfer.ErrHere) {
		t.Errorf("Import beside a key = %v, want ErrHere", err)
	}
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		if _, err := s.Update(alice, "acme", func(tx storage.Tx) error { return tx.Delete(storage.TokenKind, "acme", "made") }); err != nil {
			t.Fatal(err)
		}
	})
	to.mustImport(t, file, keysOf(t, 1))
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		if a, err := registry.New(s).Agent(t.Context(), "acme", "bot"); err != nil || a.Status != engine.AgentDisabled {
			t.Errorf("Agent = %+v, %v, want it disabled", a, err)
		}
	})
	wantWhole(t, to, keysOf(t, 1, 2))
}

// TestAbandon_Refused checks that Abandon returns an error if no import is under way or the import
// is already signed.
func TestAbandon_Refused(t *testing.T) {
	_, file, _ := exported(t, rows)
	for name, test := range map[string]struct {
		before func(t *testing.T, to place)
		want   error
	}{
		"no import":      {func(*testing.T, place) {}, transfer.ErrNoImport},
		"a finished one": {func(t *testing.T, to place) { to.importInto(t, file, keysOf(t, 1)) }, transfer.ErrNoImport},
		"a settlement of the store's own": {func(t *testing.T, to place) {
			to.importSome(t, file, 4)
			to.with(t, noon.Add(5*time.Hour), func(s storage.Store, l *ledger.Ledger) {
				found, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 10})
				must(t, err)
				i := slices.IndexFunc(found, func(r *storage.Record) bool { return r.Settlement == nil && r.Decision == engine.Allow })
				if _, _, err := l.Settle(t.Context(), "acme", found[i].DecisionID, storage.Settlement{Outcome: storage.Executed, RecordedAt: found[i].DecidedAt.Add(time.Second)}); err != nil {
					t.Fatal(err)
				}
			})
		}, storage.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			to := inMemory(2)
			test.before(t, to)
			to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
				before, err := s.CountImported(t.Context(), "acme")
				must(t, err)
				if _, err := to.abandon(t, s); !errors.Is(err, test.want) {
					t.Errorf("Abandon = %v, want %v", err, test.want)
				}
				if after, err := s.CountImported(t.Context(), "acme"); err != nil || after != before {
					t.Errorf("CountImported = %+v, %v, want %+v", after, err, before)
				}
			})
			if _, err := to.prove(t, keysOf(t, 1, 2)); err != nil {
				t.Errorf("Prove = %v", err)
			}
		})
	}
}
