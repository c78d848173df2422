package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/gobwas/glob"
)

// FuzzReadResource holds what every reader of a resource relies on: a normal
// form is its own normal form, the quick way agrees with the long way, an
// error repeats nothing of the resource, and a pattern that blocks a resource
// literally blocks its normal form too, hence all of its spellings.
func FuzzReadResource(f *testing.F) {
	for _, set := range [][]blockedSpelling{
		webSpellings, addressSpellings, idnaSpellings, pathSpellings, otherSpellings, mailSpellings, fileSpellings,
	} {
		for _, s := range set {
			f.Add(s.resource)
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := ReadResource(raw)
		if err != nil {
			checkRefusal(t, raw, err)
			return
		}
		if long, err := readAll(raw); err != nil || isPlain(raw) && (long.Len() != 1 || long.NormalLen() != 1) {
			t.Errorf("readAll(%q) = %+v, %v, want itself alone", raw, long, err)
		}
		again, err := ReadResource(r.Normal())
		if err != nil || again.Normal() != r.Normal() {
			t.Errorf("Normal(%q) = %q, but Normal of that = %q, %v", raw, r.Normal(), again.Normal(), err)
		}
		if r.At(0) != raw || r.NormalAt(0) != r.Normal() {
			t.Errorf("first readings of %q = %q, %q, want it and %q", raw, r.At(0), r.NormalAt(0), r.Normal())
		}
		if p := r.Projection(); strings.ContainsAny(p, "?#") {
			t.Errorf("Projection of %q = %q, want no query or fragment", raw, p)
		}
		checkBlockedEverywhere(t, glob.QuoteMeta(raw), &r)
	})
}

func checkRefusal(t *testing.T, raw string, err error) {
	var refused *ResourceError
	if !errors.As(err, &refused) {
		t.Fatalf("ReadResource(%q) = %v, want a ResourceError", raw, err)
	}
	if len(raw) > 12 && strings.Contains(err.Error(), raw) {
		t.Errorf("ReadResource(%q) = %v, which repeats it", raw, err)
	}
}

// checkBlockedEverywhere checks that pattern, which matches the resource as it
// is written, matches its normal form.
func checkBlockedEverywhere(t *testing.T, pattern string, r *Readings) {
	g, err := CompileGlobs([]string{pattern})
	if err != nil {
		return // refused at registration: nothing passes it
	}
	if g.Match(r.Raw()) != 0 {
		t.Errorf("%q does not match %q as it is written", pattern, r.Raw())
	}
	if g.Match(r.Normal()) != 0 {
		t.Errorf("%q blocks %q but not its normal form %q", pattern, r.Raw(), r.Normal())
	}
}

// FuzzCompileGlobs holds that patterns mean at least what they mean to the
// library that OPA uses, and that a wildcard at the end of a literal does not
// keep the literal from matching normal forms.
func FuzzCompileGlobs(f *testing.F) {
	for _, pattern := range []string{
		"https://*.Example.com:443/{a,b}/**", "**/[!a-z]?x", `C:\\**`, "{a,{b,c}}*", "**.Foo:80**", "*://h:*/x", `\[::1\]`,
	} {
		f.Add(pattern, "https://a.example.com/a/b")
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 48 || len(s) > 64 {
			return // the library's time may grow exponentially
		}
		g, err := CompileGlobs([]string{pattern})
		if err == nil {
			library, err := glob.Compile(pattern, '/')
			if err != nil {
				t.Fatalf("CompileGlobs(%q) succeeds, the library says %v", pattern, err)
			}
			if library.Match(s) && g.Match(s) != 0 {
				t.Errorf("%q does not match %q, which the library says it does", pattern, s)
			}
		}
		if r, err := ReadResource(s + "zz"); err == nil {
			checkBlockedEverywhere(t, glob.QuoteMeta(s)+"*", &r)
		}
	})
}
