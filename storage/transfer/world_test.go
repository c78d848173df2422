package transfer_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/transfer"
)

// The ids of acme's documents.
const (
	policyID = "0c0ffee0-0000-4000-8000-000000000001"
	agentID  = "0c0ffee0-0000-4000-8000-000000000002"
	keyID    = "01tRy6czI6jAOLpZvq3hw1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain is a scrubber that finds nothing to scrub.
type plain struct{ ledgertest.Plain }

func signerOf(seed byte) *receipt.Signer {
	return receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

func keysOf(t testing.TB, seeds ...byte) (keys receipt.Keys) {
	t.Helper()
	for _, seed := range seeds {
		one, err := receipt.NewKeys(signerOf(seed).Public())
		must(t, err)
		keys = keys.With(one)
	}
	return keys
}

// reader is a store that is opened for an export or a proof.
type reader interface {
	ledger.History
	transfer.Source
	io.Closer
}

// place is the location of a store, with the seed of its signing key.
type place struct {
	key  byte
	open func(t *testing.T) storage.Store
	read func(t *testing.T) reader
}

func inMemory(key byte) place {
	disk := vfs.NewMem()
	return place{
		key: key,
		open: func(t *testing.T) storage.Store {
			t.Helper()
			s, err := embedded.Open("data/store", embedded.Options{FS: disk})
			must(t, err)
			return s
		},
		read: func(t *testing.T) reader {
			t.Helper()
			r, err := embedded.OpenReadOnly("data/store", embedded.Options{FS: disk})
			must(t, err)
			return r
		},
	}
}

var databases atomic.Int64

func inMongoDB(set *mongotest.Set, key byte) place {
	o := mongodb.Options{URI: set.URI(), Database: fmt.Sprint("transfer", databases.Add(1))}
	return place{
		key: key,
		open: func(t *testing.T) storage.Store {
			t.Helper()
			s, err := mongodb.Open(t.Context(), o)
			must(t, err)
			return s
		},
		read: func(t *testing.T) reader {
			t.Helper()
			r, err := mongodb.OpenSnapshot(t.Context(), o)
			must(t, err)
			return r
		},
	}
}

// with calls f with the place's store and a ledger on it.
func (p place) with(t *testing.T, at time.Time, f func(storage.Store, *ledger.Ledger)) {
	t.Helper()
	s := p.open(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	p.ledger(t, s, at, f)
}

func (p place) ledger(t *testing.T, s storage.Store, at time.Time, f func(storage.Store, *ledger.Ledger)) {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: signerOf(p.key), Scrub: plain{}, Now: func() time.Time { return at }})
	must(t, err)
	f(s, l)
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// prove proves all of a place with some keys.
func (p place) prove(t *testing.T, keys receipt.Keys) (ledger.Proof, error) {
	t.Helper()
	r := p.read(t)
	defer r.Close()
	return ledger.Prove(t.Context(), r, ledger.ProveConfig{Keys: keys})
}

func intent(n int) *engine.Intent {
	return &engine.Intent{
		IntentID: fmt.Sprintf("5eed0000-0000-4000-8000-%012d", n), PolicyID: policyID, AgentID: "bot", ActionType: "deploy",
		Resource: "k8s/<staging>&ä", IssuedAt: "2026-11-02T10:00:00Z", Metadata: map[string]string{"ticket": "OPS-7", "env": "prod"},
		Cost: &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
	}
}

func decide(ctx context.Context, l *ledger.Ledger, org string, n int) (ledger.Outcome, error) {
	outs, err := ledgertest.Commit(ctx, l, org, &ledger.Entry{
		Intent: intent(n), PolicyVersion: 1, Credential: "operator:alice",
		Result: engine.Result{Decision: engine.Decision(1 + n%3), Findings: []engine.Finding{{Outcome: engine.Allow, Reason: "policy.allowed: yes"}}},
	})
	if err != nil {
		return ledger.Outcome{}, err
	}
	return outs[0], outs[0].Err
}

// fill gives a place the organizations acme and rival. Acme has n rows, every fourth of which
// is settled, five removed rows, two versions of a policy, a rule, an agent, a key and a plan.
func (p place) fill(t *testing.T, n int) (answers map[int]string) {
	t.Helper()
	answers = make(map[int]string)
	p.with(t, noon, func(s storage.Store, l *ledger.Ledger) {
		p.documents(t, s)
		must(t, l.SignChanges(t.Context(), s))
		p.decide(t, l, 0, 5, answers)
	})
	p.with(t, noon.Add(time.Hour), func(s storage.Store, l *ledger.Ledger) {
		expired, err := s.CountExpired(t.Context(), "acme", noon.Add(30*time.Minute), 100)
		if err == nil {
			err = l.Retain(t.Context(), "acme", noon.Add(30*time.Minute), expired)
		}
		if err == nil {
			_, err = s.RemoveRecords(t.Context(), "acme", noon.Add(30*time.Minute), expired)
		}
		must(t, err)
		p.decide(t, l, 5, n+5, answers)
	})
	return answers
}

func (p place) decide(t *testing.T, l *ledger.Ledger, from, to int, answers map[int]string) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for n := from; n < to; n++ {
		wg.Go(func() {
			out, err := decide(t.Context(), l, "acme", n)
			if _, rivals := decide(t.Context(), l, "rival", n); rivals != nil {
				err = errors.Join(err, rivals)
			}
			if err == nil && n%4 == 0 {
				_, _, err = l.Settle(t.Context(), "acme", out.Record.DecisionID, storage.Settlement{
					Outcome: storage.Executed, AmountMinor: new(int64(n)), Currency: "EUR", ExternalRef: "tx", RecordedAt: out.Record.DecidedAt.Add(time.Second),
				})
			}
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[n] = out.Record.DecisionID + out.Record.Receipt.Sig
		})
	}
	wg.Wait()
}

func (p place) documents(t *testing.T, s storage.Store) {
	t.Helper()
	ctx := storage.WithActor(t.Context(), "operator:alice")
	docs := registry.New(s)
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	for version := range int64(2) {
		for _, org := range []string{"acme", "rival"} {
			_, err := docs.PutPolicy(ctx, &engine.ActionPolicy{OrganizationID: org, PolicyID: policyID, Version: version + 1, AgentID: "bot"}, 0)
			add(err)
		}
	}
	add(errors.Join(errs...))
	add(docs.PublishKeys(ctx, keysOf(t, p.key)))
	_, err := s.Update(ctx, "acme", func(tx storage.Tx) error {
		err := storage.Rules.Put(tx, "acme", &engine.Rule{ID: "0c0ffee0-0000-4000-8000-00000000000a", Name: "none"})
		if err == nil {
			err = storage.Agents.Put(tx, "acme", &engine.Agent{ID: agentID, ExternalID: "bot", CreatedAt: noon})
		}
		if err == nil {
			err = storage.Tokens.Put(tx, "acme", &storage.Token{ID: keyID, Hash: [32]byte{1}, OrganizationID: "acme", Name: "key", Scopes: []string{"policy:evaluate"}, CreatedAt: noon})
		}
		if err == nil {
			err = storage.Subscriptions.Put(tx, "acme", &storage.Subscription{OrganizationID: "acme", Plan: "pro", UpdatedAt: noon})
		}
		return err
	})
	add(err)
	must(t, errors.Join(errs...))
}

// export exports acme into a new file.
func (p place) export(t *testing.T) (name string, footer transfer.Footer) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "acme.ndjson")
	footer, err := p.exportTo(t, name)
	must(t, err)
	return name, footer
}

// exported returns a place with n rows of acme and a file with its export.
func exported(t *testing.T, n int) (from place, file string, footer transfer.Footer) {
	t.Helper()
	from = inMemory(1)
	from.fill(t, n)
	file, footer = from.export(t)
	return from, file, footer
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return data
}

func (p place) mustImport(t *testing.T, name string, keys receipt.Keys) {
	t.Helper()
	_, err := p.importInto(t, name, keys)
	must(t, err)
}

func (p place) exportTo(t *testing.T, name string) (transfer.Footer, error) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer f.Close()
	r := p.read(t)
	defer r.Close()
	return transfer.Export(t.Context(), r, f, transfer.ExportConfig{Organization: "acme", Now: time.Now})
}

// accept accepts every document. Package api tests which documents are refused.
func accept(storage.Document) ([]string, error) { return nil, nil }

// checking returns the configuration for checks of files.
func checking(keys receipt.Keys) transfer.CheckConfig {
	return transfer.CheckConfig{Keys: keys, Validate: accept, Plans: []string{"free", "pro"}}
}

// importFile imports a file into a store as the command does.
func (p place) importFile(t *testing.T, s storage.Store, name string, keys receipt.Keys) (i ledger.Import, err error) {
	t.Helper()
	data := readFile(t, name)
	checked, err := transfer.Check(t.Context(), bytes.NewReader(data), int64(len(data)), checking(keys))
	if err != nil {
		return i, err
	}
	p.ledger(t, s, noon.Add(3*time.Hour), func(s storage.Store, l *ledger.Ledger) {
		target := transfer.Target{Store: s, Ledger: l, Publish: registry.New(s).PublishKeys, Now: time.Now}
		i, err = transfer.Import(t.Context(), target, bytes.NewReader(data), &checked)
	})
	return i, err
}

// importInto imports a file into a place.
func (p place) importInto(t *testing.T, name string, keys receipt.Keys) (i ledger.Import, err error) {
	t.Helper()
	s := p.open(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	return p.importFile(t, s, name, keys)
}
