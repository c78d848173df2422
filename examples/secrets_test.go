package examples

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"writ/internal/scrub"
)

// TestNoExampleLooksLikeASecret holds the rules for secrets to documents that
// people write: the service would refuse those that look like one.
func TestNoExampleLooksLikeASecret(t *testing.T) {
	s, err := scrub.New()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") || strings.HasPrefix(path, "intents") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dec := jsontext.NewDecoder(strings.NewReader(string(data)))
		for {
			token, err := dec.ReadToken()
			if err != nil {
				return nil //nolint:nilerr // the end
			}
			if kind, found := s.Find(token.String()); token.Kind() == '"' && found {
				t.Errorf("%s: %s looks like a secret (%s): %s", path, dec.StackPointer(), kind, token)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
