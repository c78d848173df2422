package corpus_test

import (
	"encoding/json"
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/internal/scrub"
)

// TestNoDocumentLooksLikeASecret checks that no document of the corpus looks like a secret. The
// service would refuse a document that does.
func TestNoDocumentLooksLikeASecret(t *testing.T) {
	s, err := scrub.New()
	if err != nil {
		t.Fatal(err)
	}
	docs := []any{corpus.ReferencePolicy()}
	for _, rule := range corpus.Rules(1000, 1) {
		docs = append(docs, rule.Name, rule.Description, rule.Condition, rule.Action)
	}
	for _, doc := range docs {
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if kind, found := s.Find(string(text)); found {
			t.Errorf("%s looks like a secret (%s)", text, kind)
		}
	}
}
