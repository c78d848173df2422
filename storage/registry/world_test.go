package registry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ/engine"
	"writ/storage"
	"writ/storage/embedded"
	"writ/storage/registry"
	"writ/storage/registry/registrytest"
	"writ/storage/storagetest"
)

// noon is when documents are made.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a registry over a new store.
type world struct {
	*testing.T
	*registry.Registry
	docs storage.Documents
	ctx  context.Context
}

// test holds a registry to one rule.
type test struct {
	rule string
	run  func(*world)
}

// TestRegistry holds the registry to its rules over different stores, and where
// every update is run twice.
func TestRegistry(t *testing.T) {
	stores := map[string]func(t *testing.T) storage.Documents{
		"embedded": openEmbedded,
		"memory":   func(t *testing.T) storage.Documents { return storagetest.NewMemory().Open() },
		"twice": func(t *testing.T) storage.Documents {
			return storagetest.Twice{Documents: storagetest.NewMemory().Open()}
		},
	}
	groups := map[string][]test{
		"Policies": policyTests, "Rules": ruleTests, "Agents": agentTests, "Tokens": tokenTests, "Subscriptions": subscriptionTests,
		"Counts": countTests, "Keys": keyTests, "Details": detailsTests, "Watch": watchTests, "Lists": listTests, "NamedLists": namedListTests, "Tenancy": tenancyTests, "Races": raceTests,
		"Webhooks": webhookTests,
	}
	for name, open := range stores {
		for group, tests := range groups {
			t.Run(name+"/"+group, func(t *testing.T) {
				for _, test := range tests {
					t.Run(test.rule, func(t *testing.T) {
						docs := open(t)
						test.run(&world{T: t, Registry: registry.New(docs), docs: docs, ctx: t.Context()})
					})
				}
			})
		}
	}
}

func openEmbedded(t *testing.T) storage.Documents {
	s, err := embedded.Open("db", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// must fails the test at an error.
func (w *world) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s = %v, want nil", what, err)
	}
}

// wantErr reports an error that is not want.
func (w *world) wantErr(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s = %v, want %v", what, err, want)
	}
}

// wantSame reports a difference between documents; times are compared as
// instants and an empty list is the same as none.
func (w *world) wantSame(what string, got, want any) {
	w.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(engine.Stored{})); diff != "" {
		w.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// PutSubscription stores or replaces s.
func (w *world) PutSubscription(ctx context.Context, s *storage.Subscription) error {
	return registrytest.PutSubscription(ctx, w.Registry, s)
}
