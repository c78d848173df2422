package oracles

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// urlTest is a case of urltestdata.json. It has an input and a browser's reading of the input.
type urlTest struct {
	Input    string
	Base     string
	Href     string
	Protocol string
	Host     string
	Pathname string
	Search   string
	Failure  bool
}

// absolute matches URLs with a scheme of the web or of a file. Other inputs are read against a
// base, which a resource does not have.
var absolute = regexp.MustCompile(`(?i)^[\x00-\x20]*(https?|wss?|ftp|file):`)

// TestBrowserReading checks writ against the WHATWG URL test data. A block of the host and the
// path that a browser reads must block the input, unless the input is refused.
func TestBrowserReading(t *testing.T) {
	ran := 0
	for _, u := range urlTests(t) {
		sameBase := !strings.Contains(u.Input, "//") && strings.HasPrefix(u.Base, u.Protocol)
		if u.Failure || u.Input == "" || !absolute.MatchString(u.Input) || sameBase {
			continue // a browser goes nowhere, or to a place that depends on the base
		}
		ran++
		pattern := u.Protocol + "//" + u.Host + u.Pathname
		t.Run(u.Input, func(t *testing.T) { blocksOrRefuses(t, pattern, u.Input) })
		t.Run(u.Href, func(t *testing.T) { blocksOrRefuses(t, pattern, u.Href) })
	}
	if ran < 100 {
		t.Errorf("%d inputs of the test data are URLs of ours, want at least 100", ran)
	}
}

// TestBrowserHost checks writ against the hosts of toascii.json in the same way. It checks both
// directions: a block of either spelling must block the other spelling.
func TestBrowserHost(t *testing.T) {
	var all []json.RawMessage
	readJSON(t, "testdata/toascii.json", &all)
	ran := 0
	for _, raw := range all {
		var host struct {
			Input  string
			Output *string
		}
		if json.Unmarshal(raw, &host) != nil || host.Output == nil || host.Input == "" {
			continue // a comment, or a host that no browser accepts
		}
		ran++
		t.Run(host.Input, func(t *testing.T) {
			blocksOrRefuses(t, "https://"+*host.Output+"/x", "https://"+host.Input+"/x")
			if !strings.Contains(host.Input, "%") {
				blocksOrRefuses(t, "https://"+host.Input+"/x", "https://"+*host.Output+"/x")
			}
		})
	}
	if ran < 25 {
		t.Errorf("%d hosts have an output, want at least 25", ran)
	}
}

// blocksOrRefuses checks that a policy that blocks pattern does not allow the resource. If the
// pattern is refused, its author gets the error, and nothing passes.
func blocksOrRefuses(t *testing.T, pattern, resource string) {
	t.Helper()
	p, err := policy(nil, []string{pattern})
	if err != nil {
		return
	}
	if got := decide(p, resource); got == allowed {
		t.Errorf("%q passes a block of %q", resource, pattern)
	}
}

func urlTests(t *testing.T) []urlTest {
	t.Helper()
	var all []json.RawMessage
	readJSON(t, "testdata/urltestdata.json", &all)
	var out []urlTest
	for _, raw := range all {
		var u urlTest
		if json.Unmarshal(raw, &u) == nil { // comments are strings
			out = append(out, u)
		}
	}
	return out
}

func readJSON(t *testing.T, file string, v any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
