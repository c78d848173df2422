package registry_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a registry over a new store.
type world struct {
	storagetest.Checks
	*registry.Registry
	docs storage.Documents
	ctx  context.Context
}

// test checks one rule that a registry enforces.
type test struct {
	rule string
	run  func(*world)
}

// TestRegistry tests the registry over different stores. One store runs the function of every
// update twice.
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
		"Counts": countTests, "Keys": keyTests, "Details": detailsTests, "Watch": watchTests, "Lists": listTests, "NamedLists": namedListTests, "Libraries": libraryTests, "Tenancy": tenancyTests, "Races": raceTests,
		"Webhooks": webhookTests, "Sinks": sinkTests, "Stops": stopTests, "DecisionEvents": decisionEventTests, "IntentAge": intentAgeTests,
	}
	for name, open := range stores {
		for group, tests := range groups {
			t.Run(name+"/"+group, func(t *testing.T) {
				for _, test := range tests {
					t.Run(test.rule, func(t *testing.T) {
						docs := open(t)
						test.run(&world{Checks: storagetest.Checks{T: t}, Registry: registry.New(docs), docs: docs, ctx: t.Context()})
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

// put stores documents of org. Policies and rules that exist already are accepted.
func (w *world) put(org string, docs ...any) {
	w.Helper()
	for _, d := range docs {
		var err error
		switch d := d.(type) {
		case *engine.ActionPolicy:
			_, err = w.PutPolicy(w.ctx, d, 0)
		case *engine.Rule:
			err = w.PutRule(w.ctx, org, d, 0)
		case *engine.Agent:
			err = w.PutAgent(w.ctx, org, d, 0)
		case *storage.Token:
			err = w.PutToken(w.ctx, d, 0)
		case *storage.Subscription:
			err = storagetest.PutSubscription(w.ctx, w, d)
		}
		w.Must(fmt.Sprintf("storing %+v", d), err)
	}
}
