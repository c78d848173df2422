package transfer

import (
	"encoding/base64"
	"strings"
	"testing"

	"writ.example/writ/storage"
)

// TestChecker_Details checks that details must have the digest in their row. Details without a row
// are accepted.
func TestChecker_Details(t *testing.T) {
	const id = "01a1fe16-0000-7000-8000-000000000001"
	own := storage.NewDetails(id, map[string]string{"why": "so"})
	changed := *own
	changed.Values = map[string]string{"why": "no"}
	for name, test := range map[string]struct {
		details *storage.Details
		digests map[string]string
		want    string
	}{
		"its own":          {own, map[string]string{id: own.Digest()}, ""},
		"changed":          {&changed, map[string]string{id: own.Digest()}, "the details of decision " + id + " are not those of its row"},
		"of a removed row": {own, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := storage.AllDetails.Encode(test.details)
			if err != nil {
				t.Fatal(err)
			}
			c := checker{CheckConfig: CheckConfig{Validate: func(storage.Document) ([]string, error) { return nil, nil }}, details: test.digests, state: state{header: &Header{OrganizationID: "acme"}}}
			err = c.document(1, &document{Kind: storage.AllDetails.Name, ID: base64.RawURLEncoding.EncodeToString([]byte(id)), Value: value})
			if test.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("details %s = %v, want %q", name, err, test.want)
			}
		})
	}
}
