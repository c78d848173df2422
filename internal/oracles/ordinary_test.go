package oracles

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// refusedByName has the identifiers that docs/resources.md names as refused, each with the
// reason given there.
var refusedByName = map[string]string{
	"https://example.com/tab%09tab":          "an escaped control character in the path of a URL",
	"https://example.com/line%0Abreak":       "an escaped control character in the path of a URL",
	"https://api.example.com/v1/a%252Fb?x=1": "the path of a web URL with an escape of an escape",
	"1️⃣ first steps":                        "a variation selector after an ASCII character",
	"/flags/🏴󠁧󠁢󠁥󠁮󠁧󠁿.png":                     "the flag of a region, which is written with invisible characters",
}

// TestOrdinaryIdentifiers checks two promises of decisions.md. The first is "no ordinary
// identifier may be refused". The second is "a pattern always matches the very text that it
// quotes".
func TestOrdinaryIdentifiers(t *testing.T) {
	open := mustPolicy(t, nil, nil)
	for _, file := range []string{"testdata/ordinary.jsonl", "testdata/ordinary_more.jsonl"} {
		for _, resource := range resources(t, file) {
			t.Run(resource, func(t *testing.T) {
				want := allowed
				if _, ok := refusedByName[resource]; ok {
					want = refused
				}
				if got := decide(open, resource); got != want {
					t.Fatalf("%q is %s, want %s", resource, got, want)
				}
				if want == allowed {
					quotesItself(t, resource)
				}
			})
		}
	}
}

// quotesItself checks that a pattern with the text of the resource blocks and allows the
// resource. It does not check a pattern that is refused when it is registered.
func quotesItself(t *testing.T, resource string) {
	t.Helper()
	if p, err := policy(nil, []string{resource}); err == nil && decide(p, resource) != blocked {
		t.Errorf("%q is not blocked by itself", resource)
	}
	if p, err := policy([]string{resource}, nil); err == nil && decide(p, resource) != allowed {
		t.Errorf("%q is not allowed by itself", resource)
	}
}

func resources(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		var line struct{ Resource string }
		if err := json.Unmarshal(s.Bytes(), &line); err != nil || line.Resource == "" {
			t.Fatalf("%s: %q is no resource: %v", file, s.Text(), err)
		}
		out = append(out, line.Resource)
	}
	return out
}
