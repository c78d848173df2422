package mongodb

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"writ.example/writ/storage"
)

// text returns b as a string with one character for each byte. The server orders these strings by
// their bytes. It would order binary data by length first.
func text(b []byte) string {
	s := make([]byte, 0, len(b)+8)
	for _, c := range b {
		s = utf8.AppendRune(s, rune(c))
	}
	return string(s)
}

// parseText returns the bytes of text(b).
func parseText(s string) ([]byte, error) {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return nil, fmt.Errorf("a stored key has the character %q", r)
		}
		b = append(b, byte(r))
	}
	return b, nil
}

// end returns the least key that is greater than every key that begins with b. It returns nil
// if no key is greater.
func end(b []byte) []byte {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			e := bytes.Clone(b[:i+1])
			e[i]++
			return e
		}
	}
	return nil
}

// documentsOf returns the prefix of the keys of org's documents in a collection. If the
// collection is global, it returns the prefix of all documents in it.
func documentsOf(c *storage.Collection, org string) []byte {
	k := []byte{byte(c.Kind)}
	if c.Global {
		return k
	}
	return append(k, storage.Text(org)...)
}

func documentKey(c *storage.Collection, org, id string) string {
	return text(append(documentsOf(c, org), id...))
}

// indexOf returns the prefix of org's keys in an index.
func indexOf(k storage.Kind, org string, i storage.Index) []byte {
	return append(append([]byte{byte(k)}, storage.Text(org)...), byte(i))
}

// checkOrg refuses an organization whose id can't be a string of the database.
func checkOrg(org string) error {
	if !utf8.ValidString(org) {
		return fmt.Errorf("the organization %.64q is not in UTF-8", org)
	}
	return nil
}
