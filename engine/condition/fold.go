package condition

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"writ.example/writ/engine/resource"
)

// FoldID returns the form in which names of agents are compared. Names with equal forms belong to the
// same agent. The form is Unicode's identifier caseless matching (D147): NFKC and case folding, repeated
// until neither changes anything, without invisible characters. A name may have a joiner or a variation
// selector after a character outside ASCII, such as a full-width letter. An id in ASCII without upper-case
// letters is its own form.
func FoldID(id string) string {
	for i := range len(id) {
		if c := id[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return norm.NFKC.String(foldCase(norm.NFKC.String(foldCase(norm.NFD.String(resource.Visible(id))))))
		}
	}
	return id
}

// foldCase returns Unicode's full case folding of s. Cherokee needs its own step, because package
// cases swaps the two cases of Cherokee instead of folding them to capitals.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cherokee, r) {
			return unicode.ToUpper(r)
		}
		return r
	}, cases.Fold().String(s))
}
