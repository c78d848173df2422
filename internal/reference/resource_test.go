package reference

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"writ.example/writ/internal/oracles/verdicts"
)

// stricter are resources for which the engine is stricter than the text, because some program reads
// them strictly. They have numbers that are not an address, a host that no client looks up, or an
// entry that is not host:port. They may also have a dot behind a domain, a zone in a file, or a
// backslash in user info.
var stricter = []string{
	"https://4294967296.0.0.1/x", "https://127.0.0.0.1/x", "https://xn--example-.example/x",
	"postgres://db2|db.example.com:5432/prod", "postgres://address=(host=db.example.com)(port=5432)/prod",
	"postgres://u:p@db.example.com,u:p@db2/prod", "mailto:ceo@example.com.", "file://[fe80::1%25eth0]/x",
	`https://a.example\@b.example/x`,
}

// TestVerdicts compares the reference with the expected verdicts on policies. It also tests
// resources that were once wrongly allowed.
func TestVerdicts(t *testing.T) {
	verdicts.Run(t, func(t *testing.T, c verdicts.Case) {
		for want, all := range map[string][]string{"passes": c.Passes, "does not": c.Not, "refused": c.IsRefused} {
			for _, raw := range all {
				if got := verdict(t, c, raw); got != want && (want != "does not" || got != "refused") && !slices.Contains(stricter, raw) {
					t.Errorf("allow %q, block %q: %q is %s, want %s", c.Allow, c.Block, raw, got, want)
				}
			}
		}
	})
}

func verdict(t *testing.T, c verdicts.Case, raw string) string {
	t.Helper()
	r, err := Read(raw)
	if err != nil {
		return "refused"
	}
	for _, p := range c.Block {
		if _, ok := Blocked(pattern(t, p), r); ok {
			return "does not"
		}
	}
	var allowed []*Pattern
	for _, p := range c.Allow {
		allowed = append(allowed, pattern(t, p))
	}
	if len(allowed) > 0 && !Allowed(allowed, r) {
		return "does not"
	}
	return "passes"
}

func pattern(t *testing.T, s string) *Pattern {
	t.Helper()
	p, err := ReadPattern(s)
	if err != nil {
		t.Fatalf("ReadPattern(%q): %v", s, err)
	}
	return p
}

// TestRefused checks that ReadPattern refuses patterns that no reader can read.
func TestRefused(t *testing.T) {
	for _, p := range []string{"a[", "{a", "a/../b", "https://h/a/%2e%2e/b", "https://a%2eb/**", "/..", "https://m*ünchen.example/**"} {
		if _, err := ReadPattern(p); err == nil {
			t.Errorf("ReadPattern(%q) is not refused", p)
		}
	}
}

// TestOrdinary checks that ordinary identifiers are accepted, except those that the documentation
// names. Both ** and the pattern that quotes an identifier must match it.
func TestOrdinary(t *testing.T) {
	named := map[string]bool{"https://example.com/tab%09tab": true} // a URL whose path has an escaped control character
	f, err := os.Open("../oracles/testdata/ordinary.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	everything := pattern(t, "**")
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var row struct{ Resource string }
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		r, err := Read(row.Resource)
		if (err != nil) != named[row.Resource] {
			t.Errorf("Read(%q) = %v", row.Resource, err)
		}
		if err != nil {
			continue
		}
		if by, ok := Outside([]*Pattern{everything}, r); ok {
			t.Errorf("** does not allow %q: %s", row.Resource, by)
		}
		p, err := ReadPattern(row.Resource)
		if err != nil {
			t.Logf("ReadPattern(%q): %v", row.Resource, err)
			continue
		}
		if by, ok := Outside([]*Pattern{p}, r); ok {
			t.Errorf("%q does not allow itself: %s", row.Resource, by)
		}
		if _, ok := Blocked(p, r); !ok {
			t.Errorf("%q does not block itself", row.Resource)
		}
	}
	if n < 200 {
		t.Errorf("only %d identifiers", n)
	}
}
