package examples

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/internal/must"
	"writ.example/writ/internal/scrub"
)

// TestNoExampleLooksLikeASecret checks that no text in a policy, a rule or a list looks like a
// secret. The service would refuse such a document.
func TestNoExampleLooksLikeASecret(t *testing.T) {
	s, read := must.Get(scrub.New())(t), 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".json", ".yaml"}, filepath.Ext(path)) {
			return err
		}
		for _, d := range must.Get(document.Parse(path, must.Get(os.ReadFile(path))(t)))(t) {
			if d.Kind != document.Policy && d.Kind != document.Rule && d.Kind != document.List {
				continue
			}
			read++
			dec := jsontext.NewDecoder(strings.NewReader(string(d.JSON())))
			for token, err := dec.ReadToken(); err == nil; token, err = dec.ReadToken() {
				if kind, found := s.Find(token.String()); token.Kind() == '"' && found {
					t.Errorf("%s: %s looks like a secret (%s): %s", path, dec.StackPointer(), kind, token)
				}
			}
		}
		return nil
	})
	if err != nil || read < 20 {
		t.Errorf("%d documents were read: %v", read, err)
	}
}
