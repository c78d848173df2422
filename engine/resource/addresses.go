package resource

import (
	"regexp"
	"strings"
	"unicode"
)

// readAddresses reads a list of addresses: mailto: by RFC 6068, sms: by RFC 5724, tel: by RFC
// 3966, or a plain list of mail addresses. Each address has its own reading. Telephone numbers
// keep their scheme in it.
func (t *text) readAddresses() {
	prefix, reader := "", Address
	if t.scheme == "sms" || t.scheme == "tel" {
		prefix, reader = t.scheme+":", Number
	}
	for _, list := range t.addressLists() {
		for _, address := range t.addressesIn(list, prefix != "") {
			t.add(reader, letters(prefix+address))
		}
	}
	if len(t.readings.list) == 0 {
		t.add(reader, prefix)
	}
}

// addressLists returns the decoded lists of a text: what stands before the query, and each to, cc
// and bcc of a mailto:.
func (t *text) addressLists() []string {
	list, query, _ := strings.Cut(t.rest, "?")
	if t.scheme == "" {
		list, query = t.rest, ""
	}
	lists := []string{Decode(list)}
	for field := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(field, "=")
		switch asciiLower(Decode(name)) {
		case "to", "cc", "bcc":
			if t.scheme == "mailto" {
				lists = append(lists, Decode(value))
			}
		}
	}
	return lists
}

// addressesIn returns the addresses, or telephone numbers, of a decoded list. An entry that has
// none is returned unchanged.
func (t *text) addressesIn(list string, numbers bool) []string {
	var all []string
	for entry := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
		before, pieces := len(all), strings.FieldsFunc(entry, cutsAddress)
		if numbers && number.MatchString(ungrouped.Replace(entry)) {
			pieces = []string{entry}
		}
		for _, piece := range pieces {
			switch bare := ungrouped.Replace(piece); {
			case strings.IndexByte(piece, '@') >= 0:
				all = append(all, t.address(piece)...)
			case numbers && number.MatchString(bare):
				all = append(all, bare)
			}
		}
		if entry = strings.TrimSpace(entry); len(all) == before && entry != "" {
			all = append(all, entry)
		}
	}
	return all
}

// cutsAddress reports whether r ends an address.
func cutsAddress(r rune) bool {
	return strings.ContainsRune(`<>"():[]\`, r) || unicode.IsSpace(r)
}

// address returns all readings of a mail address. Each has the domain as the DNS has it.
func (t *text) address(s string) []string {
	at := strings.LastIndexByte(s, '@') + 1
	names := t.domains(s[at:])
	for i := range names {
		names[i] = s[:at] + names[i]
	}
	return names
}

// domains returns the names that clients look up for a domain. If they look up none, it returns the
// domain in lower case.
func (t *text) domains(domain string) []string {
	names, _ := t.hostNames(domain)
	if len(names) == 0 {
		names = []string{strings.TrimSuffix(strings.ToLower(domain), ".")}
	}
	return names
}

// ungrouped drops the characters that only group the digits of a telephone number.
var ungrouped = strings.NewReplacer("-", "", ".", "", "(", "", ")", "", " ", "")

// number matches a telephone number, which may have wildcards.
var number = regexp.MustCompile(`^\+?[*#]*[0-9\x{F0000}-\x{F0FFF}][0-9*#\x{F0000}-\x{F0FFF}]*$`)
