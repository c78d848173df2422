package resource

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// pieces are parts of resources that are just plain or just not plain.
var pieces = []string{
	"http", "https", "HTTP", "ws", "ftp", "file", "mailto", "tel", "urn", "arn", "S3", "git", ":", "://", ":/", "//",
	"/", "/.", "/..", ".", "..", "?", "/?", "??", "#", "@", " ", "  ", "\\", "%2e", "%", ";", "&", "=", ",", "!", "~", "[0]",
	"{id}", "|", "^", "<", ">", "\"", "`", "'", "(", ")", "$", "*", "+", "-", "--", "xn--", "xn-", "XN--", "_", "a", "b", "Z", "z9",
	"9", "0", "80", "443", ":80", ":443", ":0", ":080", ":8080", ":65535", ":65536", ":99999", ":100000", "example.com",
	"host", "a-b", "-a", "a-", "A.com", "127.0.0.1", "com1", "ß", "é", "。", "\x7f", "\t", "\n", "\x00", "k8s/prod", "db",
}

// TestPlainForms checks that the expressions recognise exactly the plain resources, with the
// readings that [Read] gives them.
func TestPlainForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(30, 1))
	check := plainForms(t)
	count := map[bool]int{}
	for range 400_000 {
		var s strings.Builder
		if rng.IntN(2) == 0 {
			s.WriteString([]string{"https://", "http://"}[rng.IntN(2)])
			if rng.IntN(2) == 0 {
				s.WriteString("api.example.com/")
			}
		}
		for range rng.IntN(7) {
			s.WriteString(pieces[rng.IntN(len(pieces))])
		}
		count[check(s.String())]++
	}
	for _, s := range []string{
		strings.Repeat("a", MaxLength), strings.Repeat("a", MaxLength+1), "https://h/" + strings.Repeat("a", MaxLength-10),
		"https://h/" + strings.Repeat("a", MaxLength-9), "https://h/?" + strings.Repeat("a", MaxLength),
	} {
		count[check(s)]++
	}
	for c := range 256 {
		for _, s := range []string{"%", "a%", "%a", "a%b", "/%", "https://h/%", "https://h/a?%", "https://%/", "https://h%/a", "a:%", "a%:b"} {
			count[check(strings.ReplaceAll(s, "%", string(rune(c))))]++
		}
	}
	if count[true] < 20_000 || count[false] < 20_000 {
		t.Errorf("%d resources are plain and %d are not: want 20,000 of each", count[true], count[false])
	}
}

func FuzzPlainForms(f *testing.F) {
	for _, s := range []string{"", "/", "k8s/prod/db", "https://h.example:8443/a?b=c", "urn:a:b", "a:/b", "xn--a"} {
		f.Add(s)
	}
	check := plainForms(f)
	f.Fuzz(func(_ *testing.T, s string) { check(s) })
}

// plainForms returns a function that compares the forms with readPlain, and reports whether s is plain.
func plainForms(t testing.TB) func(s string) bool {
	type compiled struct {
		PlainForm
		is, not, list *regexp.Regexp
	}
	var forms []compiled
	for _, f := range PlainForms() {
		c := compiled{f, regexp.MustCompile(f.Is), regexp.MustCompile(f.Not), nil}
		if f.List != "" {
			c.list = regexp.MustCompile(f.List)
		}
		forms = append(forms, c)
	}
	return func(s string) bool {
		want, plain := readPlain(s)
		var got []Reader
		stops, query := StopsAtSlash, false
		for _, f := range forms {
			if len(s) > MaxLength || !f.is.MatchString(s) || f.not.MatchString(s) {
				continue
			}
			got, query = append(got, f.Readers), f.Query
			if f.list != nil && f.list.MatchString(s) {
				stops = StopsInList
			}
		}
		if plain != (len(got) == 1) || len(got) > 1 || plain && (got[0] != want.plain || stops != want.Stops()) {
			t.Errorf("%q: the forms say %v, stops %q, readPlain says %v %v, stops %q", s, got, stops, plain, want.plain, want.Stops())
		}
		if before, _, found := strings.Cut(s, "?"); plain && (found && (!query || want.At(ForBlock, 1).Text != before) ||
			want.Len(ForBlock) != 1+min(1, strings.Count(s, "?"))) {
			t.Errorf("%q has %d readings for a block", s, want.Len(ForBlock))
		}
		return plain
	}
}
