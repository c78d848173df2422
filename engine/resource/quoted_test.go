package resource

import (
	"reflect"
	"testing"
)

// FuzzReadQuoted checks that a pattern without wildcards has the readings of an allowance of the same resource, and is
// refused if the resource is.
func FuzzReadQuoted(f *testing.F) {
	for _, s := range []string{
		"a", "https://a/b", "{a,b}/?", "https://{a,b}/c", `c:\x`, `postgres:/\db`, "postgres://a,b;c@d:1/x", "db:x", "a@b.c", "file:///x",
		"jdbc:pg:a", "tel:+1", "\u00e9://x", "a\uff1a//b", "http:x", "s3://b/*",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, side := range []Side{ForAllow, ForBlock} {
			got, err := ReadQuoted(s, side)
			r, refused := readAny(s)
			if (err == nil) != (refused == nil) || err != nil && err.Error() != refused.Error() {
				t.Fatalf("ReadQuoted(%q): %v, want %v", s, err, refused)
			}
			if err != nil {
				continue
			}
			if want := patternReadings(append(r.allow, Reading{s, Raw}), side); !reflect.DeepEqual(got, want) {
				t.Errorf("ReadQuoted(%q) = %v, want %v", s, got, want)
			}
		}
	})
}
