package glob

import (
	"testing"

	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/oracles/verdicts"
)

// TestDecision_Resources_NoSpellingOfABlockedResourceMayPass checks the verdicts on lists. For each
// spelling of a blocked resource, either the spelling is refused or the blocked pattern matches. An
// allowance holds for every reader.
func TestDecision_Resources_NoSpellingOfABlockedResourceMayPass(t *testing.T) {
	verdicts.Run(t, func(t *testing.T, c verdicts.Case) {
		blocked, allowed := mustList(t, resource.ForBlock, c.Block...), mustList(t, resource.ForAllow, c.Allow...)
		for want, all := range map[string][]string{"passes": c.Passes, "does not": c.Not, "refused": c.IsRefused} {
			for _, raw := range all {
				got := "passes"
				if r, err := resource.Read(raw); err != nil {
					got = "refused"
				} else if anyReading(blocked, &r) || len(c.Allow) > 0 && !allowed.Holds(&r) {
					got = "does not"
				}
				if got != want && (want != "does not" || got != "refused") {
					t.Errorf("allow %q, block %q: %q is %s, want %s", c.Allow, c.Block, raw, got, want)
				}
			}
		}
	})
}

// anyReading reports whether a blocked pattern matches any reading.
func anyReading(l *List, r *resource.Readings) bool {
	i, _ := l.FirstMatch(r)
	return i >= 0
}

// texts returns the readings that an allowance must cover.
func texts(r *resource.Readings) []string {
	var all []string
	for i := range r.Len(resource.ForAllow) {
		all = append(all, r.At(resource.ForAllow, i).Text)
	}
	return all
}

func mustList(t testing.TB, side resource.Side, patterns ...string) *List {
	t.Helper()
	l, err := Compile(patterns, side)
	if err != nil {
		t.Fatalf("Compile(%q): %v", patterns, err)
	}
	return l
}

// TestDecision_Resources_ABackslashHidesNoBlockedPathFromOtherClients checks paths with a
// backslash. Only browsers read a backslash in a URL as a slash. curl, Python's requests and Go's
// net/http encode the backslash as an ordinary character. For them a segment with a backslash and
// dots is not a dot segment.
func TestDecision_Resources_ABackslashHidesNoBlockedPathFromOtherClients(t *testing.T) {
	const host = "https://h.example"
	blocked := mustList(t, resource.ForBlock, host+"/admin/**")
	allowed := mustList(t, resource.ForAllow, host+"/public/**")
	for _, path := range []string{
		`/admin/..\public/x`, `//admin/..\public/x`, `/%61dmin/..\..\public/x`, `/admin/.\..\public\x`,
		`/x/../admin/..\public/`, `/admin%2F..\public/x`, `/admin/a\..\..\public/x?q#f`,
	} {
		r, err := resource.Read(host + path)
		if err != nil {
			t.Errorf("resource.Read(%q) = %v, want readings", host+path, err)
			continue
		}
		if !anyReading(blocked, &r) {
			t.Errorf("%q is not blocked in any of %q", path, texts(&r))
		}
		if allowed.Holds(&r) {
			t.Errorf("%q is allowed in each of %q", path, texts(&r))
		}
	}
}

// TestDecision_Resources_EncodedSlashesAreReadBeforeDotSegments checks paths with encoded slashes.
// A client may send dot segments unchanged. The server may decode slashes before it resolves dot
// segments. Go's client and server do so.
func TestDecision_Resources_EncodedSlashesAreReadBeforeDotSegments(t *testing.T) {
	const host = "https://h.example"
	blocked, allowed := mustList(t, resource.ForBlock, host+"/secret/**"), mustList(t, resource.ForAllow, host+"/admin/**")
	for _, path := range []string{
		"/%73ecret/a%2Fb/../../admin/x", "/secret%2Fa/../admin/x", "/%73ecret/a%5cb/../../admin/x", "/x/../%73ecret/a%2fb%2Fc/../../../admin/x",
	} {
		r, err := resource.Read(host + path)
		if err != nil || !anyReading(blocked, &r) || allowed.Holds(&r) {
			t.Errorf("the readings of %q = %q, %v, want one in /secret", path, texts(&r), err)
		}
	}
}

// TestDecision_Resources_EncodedSlashesAndBackslashesAreReadApart checks paths that encode both
// slashes and backslashes. A server on POSIX decodes both, but only a slash separates segments
// there. The segment ..\x is then an ordinary name.
func TestDecision_Resources_EncodedSlashesAndBackslashesAreReadApart(t *testing.T) {
	const host = "https://h.example"
	for base, paths := range map[string][]string{
		host: {
			`/secret%2F..%5Cadmin/x`, `/secret%2fa%5c..%5c..%5cadmin/x`, `/%73ecret%2F..%5C..%5Cadmin%5Cx`,
			`/secret/a%2Fb\../../../admin/x`, `/secret/a%2Fb%5C../../../admin/x`,
		},
		"s3://bucket": {`/secret%2F..%5Cadmin/x`},
		"":            {`/secret%2F..%5Cadmin/x`, `/secret/a%2Fb%5C../../../admin/x`},
	} {
		blocked, allowed := mustList(t, resource.ForBlock, base+"/secret/**"), mustList(t, resource.ForAllow, base+"/admin/**")
		for _, path := range paths {
			r, err := resource.Read(base + path)
			if err != nil || !anyReading(blocked, &r) || allowed.Holds(&r) {
				t.Errorf("the readings of %q = %q, %v, want one in /secret", base+path, texts(&r), err)
			}
		}
	}
}
