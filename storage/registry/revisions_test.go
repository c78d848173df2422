package registry_test

import (
	"context"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// interrupted calls first once, before the next update.
type interrupted struct {
	storage.Documents
	first func()
}

func (d *interrupted) Update(ctx context.Context, org string, f func(storage.Tx) error) (uint64, error) {
	if first := d.first; first != nil {
		d.first = nil
		first()
	}
	return d.Documents.Update(ctx, org, f)
}

// TestRulesAndLibraries_BeginsAgain changes a rule after it was read, and before that is noted. Nobody
// may decide by the rule that was read, because the change has not kept it.
func TestRulesAndLibraries_BeginsAgain(t *testing.T) {
	docs := &interrupted{Documents: storagetest.NewMemory().Open()}
	r := registry.New(docs)
	put := func(priority int64) {
		t.Helper()
		if err := registry.New(docs.Documents).PutRule(t.Context(), "org", &engine.Rule{ID: "r", Priority: priority}, 0); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	docs.first = func() { put(2) }
	rules, _, at, err := r.RulesAndLibraries(t.Context(), "org")
	if err != nil || len(rules) != 1 || rules[0].Priority != 2 {
		t.Fatalf("RulesAndLibraries = %v, %v; want the changed rule", rules, err)
	}
	put(3)
	if stood, _, err := r.RulesAt(t.Context(), "org", registry.Then{Revision: at}); err != nil || len(stood) != 1 || stood[0].Priority != 2 {
		t.Errorf("RulesAt = %v, %v; want the rule that was loaded", stood, err)
	}
}
