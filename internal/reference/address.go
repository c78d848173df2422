package reference

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var namedAddress = regexp.MustCompile(`^[^<>]*<([^<>\s]*)>$`)

// isAddressList reports whether s is a list of addresses. s must have an @, and no slash, backslash
// or colon. An entry has no white space, except in the form "words <address>". The domain of an
// entry has a letter and a dot.
func isAddressList(s string) bool {
	if !strings.Contains(s, "@") || strings.ContainsAny(s, `/\:`) {
		return false
	}
	for _, entry := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' }) {
		entry = strings.TrimSpace(entry)
		if m := namedAddress.FindStringSubmatch(entry); m != nil {
			entry = m[1]
		}
		if strings.ContainsFunc(entry, unicode.IsSpace) {
			return false
		}
		if at := strings.LastIndex(entry, "@"); at >= 0 {
			domain := entry[at+1:]
			if !strings.Contains(domain, ".") || !strings.ContainsFunc(domain, unicode.IsLetter) {
				return false
			}
		}
	}
	return true
}

// addressesOf returns the addresses of a resource of the address form. Each address keeps its
// scheme.
func addressesOf(t text) []text {
	s := show(t)
	scheme := strings.ToLower(schemes[addressForm].FindString(strings.ReplaceAll(s, "\uFFFD", "z")))
	body := t[len(scheme):]
	lists := []text{body}
	switch scheme {
	case "mailto:":
		lists = mailLists(body)
	case "sms:", "tel:":
		lists[0], _ = cutQuery(body)
	}
	var out []text
	for _, list := range lists {
		for _, a := range addressesIn(decodeOnce(list), scheme == "sms:" || scheme == "tel:") {
			out = addText(out, concat(text(scheme), letters(a)))
		}
	}
	return out
}

// mailLists returns the addresses of a mailto: URL: the to-list of body, and the values of to, cc
// and bcc (RFC 6068).
func mailLists(body text) []text {
	to, query := cutText(body, '?')
	lists := []text{to}
	for _, field := range splitText(query, '&') {
		name, value := cutText(field, '=')
		switch strings.ToLower(show(decodeOnce(name))) {
		case "to", "cc", "bcc":
			lists = append(lists, value)
		}
	}
	return lists
}

func cutText(t text, sep rune) (before, after text) {
	i := slices.Index(t, sep)
	if i < 0 {
		return t, nil
	}
	return t[:i], t[i+1:]
}

// addressesIn cuts a decoded list into addresses. An entry without an address stays in the list
// unchanged.
func addressesIn(list text, numbers bool) []text {
	var out []text
	entries := cutWhere(list, func(r rune) bool { return r == ',' || r == ';' })
	for _, entry := range entries {
		if n, ok := number(entry); numbers && ok {
			out = append(out, n)
			continue
		}
		found := false
		for _, piece := range cutWhere(entry, addressSeparator) {
			if i := slices.Index(piece, '@'); i >= 0 {
				found = true
				out = append(out, address(piece)...)
			}
		}
		if !found && (len(entry) > 0 || len(entries) == 1) {
			out = append(out, entry)
		}
	}
	return out
}

func cutWhere(t text, sep func(rune) bool) []text {
	var out []text
	from := 0
	for i := 0; i <= len(t); i++ {
		if i == len(t) || sep(t[i]) {
			out = append(out, trimSpace(t[from:i]))
			from = i + 1
		}
	}
	return out
}

func trimSpace(t text) text {
	for len(t) > 0 && unicode.IsSpace(t[0]) {
		t = t[1:]
	}
	for len(t) > 0 && unicode.IsSpace(t[len(t)-1]) {
		t = t[:len(t)-1]
	}
	return t
}

func addressSeparator(r rune) bool {
	return isPlain(r) && (unicode.IsSpace(r) || strings.ContainsRune(",;<>\"():[]\\", r))
}

// address returns t with its domain mapped by IDNA and in lower case.
func address(t text) []text {
	at := len(t) - 1
	for t[at] != '@' {
		at--
	}
	local, domain := t[:at+1], t[at+1:]
	var out []text
	for _, transitional := range []bool{false, true} {
		mapped, err := mapHost(domain, transitional)
		if err != nil {
			mapped = eachRun(domain, strings.ToLower)
		}
		out = addText(out, concat(local, mapped))
	}
	return out
}

// number returns a telephone number without - . ( ) and white space. It also reports whether t is a
// telephone number.
func number(t text) (text, bool) {
	var out text
	digits := false
	for i, r := range t {
		switch {
		case strings.ContainsRune("-.()", r) || isPlain(r) && unicode.IsSpace(r):
			continue
		case isWild(r) || r >= '0' && r <= '9':
			digits = true
		case r != '+' || i > 0:
			return nil, false
		}
		out = append(out, r)
	}
	return out, digits
}

// addressesWithin returns the addresses in a text with @, and in the text after mailto://. Only
// blocks use it. Any character that may end an address ends the address here.
func addressesWithin(t text) []text {
	if hasPrefix(eachRun(t[:min(len(t), 9)], strings.ToLower), "mailto://") {
		t = t[9:]
	}
	if !slices.Contains(decodeAll(t), '@') {
		return nil
	}
	var out []text
	for _, list := range []text{decodeOnce(t), decodeAll(t)} {
		for _, piece := range cutWhere(list, func(r rune) bool { return addressSeparator(r) || strings.ContainsRune("?&=/#", r) }) {
			if slices.Contains(piece, '@') {
				for _, a := range address(piece) {
					out = addText(out, letters(a))
				}
			}
		}
	}
	return out
}
