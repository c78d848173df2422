// Package storagetest tests every backend against the contract of package storage. Each subtest is
// named for a rule of the contract and gets a new store.
package storagetest

import (
	"testing"

	"writ.example/writ/storage"
)

// Run runs the suite. open must return a new, empty store and close it when t ends. The tests of a
// group run at the same time.
func Run(t *testing.T, open func(t *testing.T) storage.Store) {
	groups := []struct {
		name  string
		tests []test
	}{
		{"Decisions", decisionTests},
		{"Entries", entryTests},
		{"History", historyTests},
		{"Counts", countTests},
		{"Quotas", quotaTests},
		{"Retention", retentionTests},
		{"Passing", passingTests},
		{"Import", importTests},
		{"Store", storeTests},
		{"Tenancy", tenancyTests},
		{"Races", raceTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.rule, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, open(t))
					test.run(w)
					CheckCounts(t, w.Store, w.orgs()...)
				})
			}
		})
	}
	t.Run("Model", func(t *testing.T) { Model(t, 0, 40, open(t), nil) })
	RunDocuments(t, func(t *testing.T) storage.Documents { return open(t) })
}

// test is the test of one rule of the contract.
type test struct {
	rule string
	run  func(*world)
}
