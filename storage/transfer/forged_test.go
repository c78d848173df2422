package transfer_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

// TestCheck_Forged checks that Check finds changes that a person with the file could make. The
// error must name the line.
func TestCheck_Forged(t *testing.T) {
	_, file, _ := exported(t, rows)
	whole := readFile(t, file)
	elsewhere := inMemory(1)
	elsewhere.fill(t, rows)
	another, _ := elsewhere.export(t)
	others := readFile(t, another)
	lines := func(of []byte) []string {
		all := strings.SplitAfter(string(of), "\n")
		return all[:len(all)-1]
	}
	// Lines 2 to 6 are removed rows, lines 7 to 46 are rows, and lines 47 to 54 are
	// documents.
	find := func(all []string, part string) int {
		return slices.IndexFunc(all, func(l string) bool { return strings.Contains(l, part) })
	}
	replace := func(i int, from, to string) func([]string) []string {
		return func(all []string) []string {
			if !strings.Contains(all[i], from) {
				t.Fatalf("line %d is %s, want it to have %q", i+1, all[i], from)
			}
			all[i] = strings.Replace(all[i], from, to, 1)
			return all
		}
	}
	for _, test := range []struct {
		name string
		do   func(all []string) []string
		want string
	}{
		{"a row changed", replace(9, `"agent_id":"bot"`, `"agent_id":"tob"`), "line 10: decision "},
		{"a row's decision changed", replace(9, `"reasons":["policy`, `"reasons":["policx`), "its row is not the one of its audit digest"},
		{"a row's audit digest taken away", func(all []string) []string {
			all[9] = regexp.MustCompile(`,"audit_digest":"[^"]*"`).ReplaceAllString(all[9], "")
			return all
		}, "payload does not match: digest"},
		{"a receipt's time changed", replace(9, `"exp":1`, `"exp":2`), "line 10: decision "},
		{"a signature changed", replace(9, `"sig":"A`, `"sig":"B`), "line 10: decision "},
		{"a settlement changed", func(all []string) []string {
			return replace(find(all, `"settlement"`), `"outcome":"executed"`, `"outcome":"skipped"`)(all)
		}, "its settlement"},
		{"a settlement's reference changed", func(all []string) []string {
			return replace(find(all, `"settlement"`), `"external_ref":"tx"`, `"external_ref":"ty"`)(all)
		}, "its settlement: receipt: signature does not verify"},
		{"a settlement taken to another row", func(all []string) []string {
			i := find(all, `"settlement"`)
			j := i + 1 + find(all[i+1:], `"settlement"`)
			_, settlement, _ := strings.Cut(all[i], `"settlement"`)
			before, _, _ := strings.Cut(all[j], `"settlement"`)
			all[j] = before + `"settlement"` + settlement
			return all
		}, "its settlement"},
		{"a settlement deleted", func(all []string) []string {
			i := find(all, `"settlement"`)
			before, _, _ := strings.Cut(all[i], `,"settlement"`)
			all[i] = before + "}}\n"
			return all
		}, "the file was changed or cut"},
		{"a row deleted", func(all []string) []string { return slices.Delete(all, 9, 10) }, "the file was changed or cut"},
		{"a row twice", func(all []string) []string { return slices.Insert(all, 9, all[9]) }, "line 11: decision "},
		{"rows exchanged", func(all []string) []string { all[9], all[10] = all[10], all[9]; return all }, "it is there twice or out of order"},
		{"a row of another store with the same key", func(all []string) []string {
			theirs := lines(others)
			all[len(all)-10] = theirs[len(theirs)-10]
			return all
		}, "line "},
		{"a row of another organization", replace(9, `"organization_id":"acme"`, `"organization_id":"rival"`), `it is of organization "rival", and the file of "acme"`},
		{"another organization's name", replace(0, `"organization_id":"acme"`, `"organization_id":"rival"`), `it is of organization "acme", and the file of "rival"`},
		{"no footer", func(all []string) []string { return all[:len(all)-1] }, "it is not whole"},
		{"half a footer", func(all []string) []string { return append(all[:len(all)-1], all[len(all)-1][:20]) }, "it is not whole"},
		{"a footer of fewer rows", replace(len(lines(whole))-1, `"rows":40`, `"rows":39`), "the footer is of 39 rows (10 settled), 5 removed rows and "},
		{"a line after the footer", func(all []string) []string { return append(all, all[9]) }, "it is after the footer"},
		{"no header", func(all []string) []string { return all[1:] }, "the first line, and no other, is the header"},
		{"two headers", func(all []string) []string { return slices.Insert(all, 1, all[0]) }, "the first line, and no other, is the header"},
		{"another format", replace(0, `"writ-export/4"`, `"writ-export/1"`), `this writ knows writ-export/4, writ-export/3 and writ-export/2`},
		{"an id that is none", replace(0, `"id":"`, `"id":"x`), "is not a UUIDv7"},
		{"a key in place of a trusted one", replace(0, `"x":"`, `"x":"A`), "line 1: "},
		{"a row after the last one of the header", replace(0, `"last":"0`, `"last":"00`), "the header says that "},
		{"a document changed", func(all []string) []string { return replace(find(all, `"kind":"rule"`), `"none"`, `"some"`)(all) }, "the file was changed or cut"},
		{"a key that is its own parent", func(all []string) []string {
			return resealed(t, replace(find(all, `"kind":"key"`), `"name":"key"`, `"name":"key","parent_id":"`+keyID+`"`)(all))
		}, `line 54: the key ` + keyID + ` is made by itself`},
		{"a key whose parent is not there", func(all []string) []string {
			return resealed(t, replace(find(all, `"kind":"key"`), `"name":"key"`, `"name":"key","parent_id":"x"`)(all))
		}, `line 54: the key ` + keyID + `: its parent "x" is not in the file`},
		{"a plan with a member that nobody knows", func(all []string) []string {
			return replace(find(all, `"kind":"plan"`), `"plan":"pro"`, `"plan":"pro","paid":true`)(all)
		}, `line 49: invalid: paid: `},
		{"a plan that nobody knows", func(all []string) []string {
			return replace(find(all, `"kind":"plan"`), `"plan":"pro"`, `"plan":"prp"`)(all)
		}, `line 49: the organization is on the plan "prp": want one of free, pro`},
		{"a document of another kind", func(all []string) []string { return replace(find(all, `"kind":"rule"`), `"rule"`, `"public key"`)(all) }, `a document of the kind "public key"`},
		{"a document of another organization", func(all []string) []string {
			return replace(find(all, `"kind":"key"`), `"organization_id":"acme"`, `"organization_id":"rival"`)(all)
		}, "line 54: "},
		{"a key of no organization", func(all []string) []string {
			return replace(find(all, `"kind":"key"`), `"organization_id":"acme"`, `"organization_id":""`)(all)
		}, `line 54: the key is of organization "", and the file of "acme"`},
		{"a plan that names no organization", func(all []string) []string {
			return replace(find(all, `"kind":"plan"`), `"organization_id":"acme",`, ``)(all)
		}, `the plan is of organization "", and the file of "acme"`},
		{"a document before the rows", func(all []string) []string { return slices.Insert(all, 1, all[50]) }, "it is after the documents"},
		{"a document twice, the second one another", func(all []string) []string {
			i := find(all, `"kind":"policy"`)
			return slices.Insert(all, i, strings.Replace(all[i], `"max_cost_minor":0`, `"max_cost_minor":9`, 1))
		}, "a policy is there twice or is out of order"},
		{"documents of a kind exchanged", func(all []string) []string {
			i := find(all, `"kind":"policy"`)
			all[i], all[i+1] = all[i+1], all[i]
			return all
		}, "a policy is there twice or is out of order"},
		{"documents exchanged", func(all []string) []string { all[46], all[52] = all[52], all[46]; return all }, "is out of order"},
		{"what is left of a row changed", replace(2, `"intent_id":"5`, `"intent_id":"6`), "the file was changed or cut"},
		{"what is left of a row without leaves", func(all []string) []string {
			before, _, _ := strings.Cut(all[2], `"leaves"`)
			all[2] = before + `"leaves":[]}}` + "\n"
			return all
		}, "0 leaves are left of decision"},
		{"a leaf that is none", replace(2, `"chain":"`, `"chain":"x`), "one of its leaves is malformed"},
		{"a member that is not known", replace(9, `{"row":{`, `{"row":{"x":1,`), "it is not a line of an export"},
		{"a member twice", replace(9, `{"row":{`, `{"row":{"intent_id":"x",`), "it is not a line of an export"},
		{"two things on a line", replace(9, `{"row":`, `{"header":{},"row":`), "want one of header, row, removed, document, footer"},
		{"nothing on a line", func(all []string) []string { all[9] = "{}\n"; return all }, "want one of header, row, removed, document, footer"},
		{"an empty line", func(all []string) []string { all[9] = "\n"; return all }, "line 10: "},
		{"nothing at all", func([]string) []string { return nil }, "it is not whole"},
	} {
		t.Run(test.name, func(t *testing.T) {
			forged := []byte(strings.Join(test.do(lines(whole)), ""))
			_, err := transfer.Check(t.Context(), bytes.NewReader(forged), int64(len(forged)), checking(keysOf(t, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check = %v, want %q", err, test.want)
			}
		})
	}
	for name, keys := range map[string]receipt.Keys{"other keys": keysOf(t, 2), "no keys": {}} {
		_, err := transfer.Check(t.Context(), bytes.NewReader(whole), int64(len(whole)), checking(keys))
		if line := (*transfer.LineError)(nil); !errors.As(err, &line) || line.Line != 7 || !errors.Is(err, receipt.ErrUnknownKey) {
			t.Errorf("Check with %s = %v, want that the key of line 7 is unknown", name, err)
		}
	}
	if found, err := transfer.Check(t.Context(), bytes.NewReader(whole), int64(len(whole)), checking(keysOf(t, 1, 2))); err != nil || !slices.Equal(found.Keys.IDs(), keysOf(t, 1).IDs()) {
		t.Errorf("Check = keys %q, %v, want those of the file alone", found.Keys.IDs(), err)
	}
}

// TestImport_Refused checks that a refused import stores nothing.
func TestImport_Refused(t *testing.T) {
	from, file, _ := exported(t, rows)
	for name, test := range map[string]struct {
		before func(s storage.Store, l *ledger.Ledger) error
		want   error
		said   string
	}{
		"decisions": {func(_ storage.Store, l *ledger.Ledger) error {
			_, err := decide(t.Context(), l, "acme", 1000)
			return err
		}, transfer.ErrHere, "it has decisions"},
		"a document": {func(s storage.Store, _ *ledger.Ledger) error {
			_, err := s.Update(t.Context(), "acme", func(tx storage.Tx) error {
				return storage.Subscriptions.Put(tx, "acme", &storage.Subscription{OrganizationID: "acme", Plan: "free"})
			})
			return err
		}, transfer.ErrHere, "it has a plan"},
		"a change of something that is gone": {func(s storage.Store, l *ledger.Ledger) error {
			for _, f := range []func(tx storage.Tx) error{
				func(tx storage.Tx) error {
					return storage.Subscriptions.Put(tx, "acme", &storage.Subscription{OrganizationID: "acme", Plan: "free"})
				},
				func(tx storage.Tx) error { return tx.Delete(storage.SubscriptionKind, "acme", "") },
			} {
				if _, err := s.Update(t.Context(), "acme", f); err != nil {
					return err
				}
			}
			return l.SignChanges(t.Context(), s)
		}, transfer.ErrHere, "its history has a change"},
		"another import that is not finished": {func(s storage.Store, _ *ledger.Ledger) error {
			_, err := s.Update(t.Context(), "acme", func(tx storage.Tx) error {
				return storage.Imports.Put(tx, "acme", &storage.Import{ID: "another", BeganAt: noon})
			})
			return err
		}, transfer.ErrHere, "the export another, is not finished"},
		"another key of the same id": {func(s storage.Store, _ *ledger.Ledger) error {
			jwks := strings.ReplaceAll(string(keysOf(t, 9).JWKS()), signerOf(9).KeyID(), signerOf(1).KeyID())
			keys, err := receipt.ParseKeys([]byte(jwks))
			if err == nil {
				err = registry.New(s).PublishKeys(t.Context(), keys)
			}
			return err
		}, nil, "the store has another key of the id"},
	} {
		t.Run(name, func(t *testing.T) {
			to := inMemory(2)
			to.with(t, noon, func(s storage.Store, l *ledger.Ledger) {
				must(t, test.before(s, l))
			})
			_, err := to.importInto(t, file, keysOf(t, 1))
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.said) {
				t.Errorf("Import beside %s = %v, want %q", name, err, test.said)
			}
			if proof, err := to.prove(t, keysOf(t, 1, 2)); err != nil || proof.Foreign.Rows > 0 {
				t.Errorf("Prove = %+v, %v, want nothing that was imported", proof.Foreign, err)
			}
		})
	}
	if _, err := from.importInto(t, file, keysOf(t, 1)); err == nil || !strings.Contains(err.Error(), "the one they were exported from") {
		t.Errorf("Import into the source = %v, want that it is the source", err)
	}
}

// TestImport_KeyOfAnother checks an import of an API key whose id belongs to another organization
// of the store. The import can continue once the id is free.
func TestImport_KeyOfAnother(t *testing.T) {
	to := inMemory(2)
	_, file, _ := exported(t, rows)
	taken := func(f func(tx storage.Tx) error) {
		t.Helper()
		to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
			if _, err := s.Update(t.Context(), "other", f); err != nil {
				t.Fatal(err)
			}
		})
	}
	taken(func(tx storage.Tx) error {
		return storage.Tokens.Put(tx, "other", &storage.Token{ID: keyID, OrganizationID: "other", CreatedAt: noon})
	})
	_, err := to.importInto(t, file, keysOf(t, 1))
	if !errors.Is(err, storage.ErrConflict) || !strings.Contains(err.Error(), `the id of the key "`+keyID+`" is taken by another organization`) {
		t.Errorf("Import = %v, want that the key's id is taken", err)
	}
	if proof, err := to.prove(t, keysOf(t, 1, 2)); err != nil || len(proof.Unfinished) != 1 {
		t.Errorf("Prove = %q, %v, want an import that is not finished", proof.Unfinished, err)
	}
	// An unfinished import cannot be exported.
	if _, err := to.exportTo(t, t.TempDir()+"/acme"); err == nil || !strings.Contains(err.Error(), "its import into this store is not finished") {
		t.Errorf("Export = %v, want that the import is not finished", err)
	}
	// The organization gets no new policy before the import is finished, so no intent of the
	// organization is decided. Other organizations are not affected.
	register := func(org string, want error) {
		t.Helper()
		to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
			if _, err := registry.New(s).PutPolicy(t.Context(), &engine.ActionPolicy{OrganizationID: org, PolicyID: "new", Version: 1, AgentID: "bot"}, 0); !errors.Is(err, want) {
				t.Errorf("PutPolicy of %s = %v, want %v", org, err, want)
			}
		})
	}
	register("acme", storage.ErrImporting)
	register("other", nil)
	taken(func(tx storage.Tx) error { return tx.Delete(storage.TokenKind, "other", keyID) })
	if _, err := to.importInto(t, file, keysOf(t, 1)); err != nil {
		t.Errorf("Import = %v", err)
	}
	register("acme", nil)
	wantWhole(t, to, keysOf(t, 1, 2))
}

// TestImport_Changed checks that Import stores only lines that Check has read, even if
// the file changes after Check.
func TestImport_Changed(t *testing.T) {
	to := inMemory(2)
	_, file, _ := exported(t, rows)
	data := readFile(t, file)
	checked, err := transfer.Check(t.Context(), bytes.NewReader(data), int64(len(data)), checking(keysOf(t, 1)))
	must(t, err)
	swapped := bytes.Replace(data, []byte(`"agent_id":"bot","action_type":"deploy"`), []byte(`"agent_id":"tob","action_type":"deploy"`), 1)
	cut := data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
	to.with(t, noon, func(s storage.Store, l *ledger.Ledger) {
		target := transfer.Target{Store: s, Ledger: l, Publish: registry.New(s).PublishKeys, Now: time.Now}
		if _, err := transfer.Import(t.Context(), target, bytes.NewReader(swapped), &checked); err == nil || !strings.Contains(err.Error(), "the file has changed") {
			t.Errorf("Import of another row = %v, want that the file has changed", err)
		}
		if found, _, err := s.ListRecords(t.Context(), "acme", storage.Filter{}, storage.Page{Limit: 1}); err != nil || len(found) > 0 {
			t.Errorf("ListRecords = %d rows, %v, want none of a file that has changed", len(found), err)
		}
		if _, err := transfer.Import(t.Context(), target, bytes.NewReader(cut), &checked); err == nil || !strings.Contains(err.Error(), "the file has changed") {
			t.Errorf("Import = %v, want that the file has changed", err)
		}
		if _, err := registry.New(s).Token(t.Context(), keyID); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Token = %v, want that the key is not stored", err)
		}
	})
	if _, err := to.importInto(t, file, keysOf(t, 1)); err != nil {
		t.Errorf("Import again = %v", err)
	}
	wantWhole(t, to, keysOf(t, 1, 2))
}

// TestImport_Counts checks that Import ignores the counts in a file. Too low counts would let an
// organization have more documents than its plan allows.
func TestImport_Counts(t *testing.T) {
	from := inMemory(1)
	from.fill(t, rows)
	from.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		if _, err := s.Update(t.Context(), "acme", func(tx storage.Tx) error {
			if err := storage.Agents.Put(tx, "acme", &engine.Agent{ID: "0c0ffee0-0000-4000-8000-000000000003", Status: engine.AgentDisabled, CreatedAt: noon}); err != nil {
				return err
			}
			return storage.AllCounts.Put(tx, "acme", &storage.Counts{Policies: -100_000, Agents: -5, Disabled: 7})
		}); err != nil {
			t.Fatal(err)
		}
	})
	file, _ := from.export(t)
	to := inMemory(2)
	to.mustImport(t, file, keysOf(t, 1))
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		must(t, s.View(t.Context(), func(r storage.Reader) error {
			want := storage.Counts{Policies: 1, Rules: 1, Agents: 2, Disabled: 1}
			err := storage.Policies.Scan(r, storage.Query{Org: "acme"}, func(_ []byte, p *engine.ActionPolicy) (bool, error) {
				value, err := storage.Policies.Encode(p)
				want.VersionBytes += int64(len(value))
				return true, err
			})
			if err != nil {
				return err
			}
			got, err := storage.AllCounts.Get(r, "acme", "")
			if err == nil && *got != want {
				t.Errorf("counts = %+v, want %+v", *got, want)
			}
			return err
		}))
	})
}

// TestImport_DisabledAgent checks an agent that is disabled in the target during an unfinished
// import. The agent must stay disabled and must be counted once.
func TestImport_DisabledAgent(t *testing.T) {
	to := inMemory(2)
	_, file, _ := exported(t, rows)
	for left := 0; ; left++ { // until the agent is stored, and the last documents are not
		s := &dying{Store: to.open(t), left: left}
		_, err := to.importFile(t, s, file, keysOf(t, 1))
		if err == nil {
			t.Fatal("the import is done before the agent is there alone")
		}
		_, agent := registry.New(s.Store).Agent(t.Context(), "acme", "bot")
		must(t, s.Close())
		if agent == nil {
			break
		}
	}
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		if _, err := registry.New(s).SetAgentStatus(t.Context(), "acme", "bot", engine.AgentDisabled, noon, 0); err != nil {
			t.Fatal(err)
		}
	})
	to.mustImport(t, file, keysOf(t, 1))
	to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
		agent, err := registry.New(s).Agent(t.Context(), "acme", "bot")
		if err != nil || agent.Status != engine.AgentDisabled {
			t.Errorf("Agent = %+v, %v, want it disabled", agent, err)
		}
		if n, err := registry.New(s).Usage(t.Context(), "acme", time.Now()); err != nil || n.Agents != (registry.AgentCount{Total: 1, Disabled: 1}) {
			t.Errorf("Usage = %+v, %v, want one agent, which is disabled", n, err)
		}
	})
	wantWhole(t, to, keysOf(t, 1, 2))
}

// TestImport_Stopped checks that an organization that was stopped in the source or in the target is
// stopped after an import, by the first stop that the target knew.
func TestImport_Stopped(t *testing.T) {
	stop := func(p place, at time.Time) {
		p.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
			if _, err := registry.New(s).Stop(t.Context(), "acme", at); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, stops := range map[string][2]time.Time{
		"none": {}, "in the source": {noon}, "in the target": {{}, noon}, "in both": {noon.Add(time.Hour), noon},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := inMemory(1), inMemory(2)
			from.fill(t, rows)
			if !stops[0].IsZero() {
				stop(from, stops[0])
			}
			file, _ := from.export(t)
			if !stops[1].IsZero() {
				stop(to, stops[1])
			}
			for range 2 {
				to.mustImport(t, file, keysOf(t, 1))
			}
			to.with(t, noon, func(s storage.Store, _ *ledger.Ledger) {
				got, err := registry.New(s).Stopped(t.Context(), "acme")
				if err != nil || (got == nil) != (name == "none") || got != nil && !got.At.Equal(noon) {
					t.Errorf("Stopped = %+v, %v", got, err)
				}
			})
			wantWhole(t, to, keysOf(t, 1, 2))
		})
	}
}

// resealed returns the lines with the footer that an export of them has.
func resealed(t *testing.T, all []string) []string {
	t.Helper()
	sum := sha256.New()
	for _, line := range all[:len(all)-1] {
		sum.Write([]byte(line))
	}
	footer := regexp.MustCompile(`"digest":"[^"]*"`)
	last := len(all) - 1
	all[last] = footer.ReplaceAllString(all[last], fmt.Sprintf(`"digest":"sha256:%x"`, sum.Sum(nil)))
	return all
}
