package resource

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// url has the parts of a URL without its scheme. The fragment is dropped.
type url struct {
	authority, path string
	query           string // with its question mark
	rest            string // all text after the authority, as written
}

// splitURL splits s into its parts. s starts with two slashes.
func splitURL(s string) url {
	s = s[len("//"):]
	end := strings.IndexAny(s+"#", "/?#")
	path, _, _ := strings.Cut(s[end:], "#")
	query := strings.IndexByte(path+"?", '?')
	return url{s[:end], path[:query], path[query:], s[end:]}
}

// withoutUserInfo drops the text up to the last @.
func withoutUserInfo(authority string) string {
	return authority[strings.LastIndexByte(authority, '@')+1:]
}

func (t *text) readWeb() *Error {
	if !strings.HasPrefix(t.rest, "//") || strings.HasPrefix(t.rest, "///") {
		return &Error{"a web URL needs exactly two slashes after its scheme"}
	}
	u := splitURL(t.rest)
	if strings.IndexByte(u.authority, '\\') >= 0 {
		return &Error{"it has a backslash before its path"}
	}
	authority := withoutUserInfo(u.authority)
	hosts, err := t.hosts(authority)
	if err != nil {
		return err
	}
	if err := checkWebPath(u.path); err != nil {
		return err
	}
	if u.path == "" && (!t.pattern || !endsInSuper(u.authority)) {
		u.path = "/"
	}
	for _, host := range hosts {
		t.readPath(host, u)
	}
	if decoded := decodeAll(authority); decoded != authority { // some decode the zone
		if hosts, err := t.hosts(decoded); err == nil {
			t.forBlocks(func() { t.readPath(hosts[0], u) })
		}
	}
	return nil
}

// readPath adds the readings of u's path after host, which may be any authority.
func (t *text) readPath(host string, u url) {
	t.readBehind(t.scheme+"://"+host, u)
	if zone.MatchString(host) { // the address is the same without the zone
		t.forBlocks(func() { t.readBehind(t.scheme+"://"+zone.ReplaceAllString(host, "$1]"), u) })
	}
}

// zone matches an IPv6 address with a zone.
var zone = regexp.MustCompile(`(\[[0-9a-f:.]+)%25[^\]]*\]`)

// readBehind adds the readings of u's path after base, which is a scheme and an authority. The
// literal reader is an object store: the keys in it keep dot segments.
func (t *text) readBehind(base string, u url) {
	if t.form == formFile {
		t.readFilePath(base, u)
		return
	}
	query, web := canonical(u.query), t.form == formWeb
	ways := []string{u.path}
	if web {
		ways = bothSlashes(u.path)
	}
	sent := clientPaths(ways)
	if web {
		sent = append(sent, escapedPaths(ways)...)
	}
	for _, path := range sent {
		t.add(Client, base+canonical(path)+query)
	}
	browsed := browserPath(u.path, web)
	t.add(Browser, base+canonical(browsed)+query)
	t.addServed(base, query, slices.Concat(sent, []string{browsed}, bothSlashes(u.path))...)
	for _, path := range ways {
		t.add(Literal, base+canonical(path)+query)
		if hasEscape(path) { // some clients decode escapes and encode them in another way
			t.blocks.add(Literal, base+letters(Decode(path))+query)
		}
	}
}

// checkWebPath refuses escapes that servers read in different ways.
func checkWebPath(path string) *Error {
	decoded := Decode(path)
	switch {
	case !utf8.ValidString(decoded):
		return &Error{"its path has an escape that is no UTF-8"}
	case hasEscape(decoded):
		return &Error{"its path is percent-encoded twice"}
	}
	return checkEscapedControls(path)
}

func checkEscapedControls(path string) *Error {
	if strings.ContainsFunc(Decode(path), unicode.IsControl) {
		return &Error{"its path has an escaped control character"}
	}
	return nil
}
