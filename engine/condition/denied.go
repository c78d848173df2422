package condition

import (
	"slices"
	"strings"
	"unsafe"

	"writ/engine/flat"
)

// deniedActions is a compiled list of denied action types. An entry matches as
// one of an [ActionSet] does, and also what is equal to it after folding:
//
//	sql.drop    denies SQL.Drop, sql..drop, sql_drop and sql-drop too
//	sql.*       denies SQL.drop and sql..drop, but not sql_drop
type deniedActions struct {
	// flat is the length of the [ActionSet] of the entries, that set, and the one of the
	// folded entries, which is left out where it is the same.
	flat string
}

func compileDenied(types []string) (*deniedActions, error) {
	exact, err := CompileActions(types)
	if err != nil {
		return nil, err
	}
	folded := make([]string, len(types))
	for i, t := range types {
		folded[i] = string(FoldAction(nil, t, !strings.Contains(t, "*")))
	}
	b := append(appendNumbers(nil, len(exact.flat)), exact.flat...)
	if !slices.Equal(folded, types) {
		b = appendActions(b, folded)
	}
	return &deniedActions{string(b)}, nil
}

// sets returns the sets of the entries and of the folded ones, and whether they are the
// same.
func (d *deniedActions) sets() (exact, folded ActionSet, same bool) {
	end := 4 + flat.Int(d.flat, 0)
	exact.flat, folded.flat = d.flat[4:end], d.flat[end:]
	if folded.flat == "" {
		return exact, exact, true
	}
	return exact, folded, false
}

// FoldAction appends s in lower case, with runs of dots as one and, where words
// is set, with underscores and hyphens as dots.
func FoldAction(b []byte, s string, words bool) []byte {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case words && (c == '_' || c == '-'):
			c = '.'
		}
		if c != '.' || len(b) == 0 || b[len(b)-1] != '.' {
			b = append(b, c)
		}
	}
	return b
}

// Match implements [matcher]. It allocates only where folding changes an action
// that is compared with a wildcard.
func (d *deniedActions) Match(action string) int {
	exact, folded, same := d.sets()
	if i := exact.Match(action); i >= 0 {
		return i
	}
	var buffer [MaxName]byte
	if name := FoldAction(buffer[:0], action, true); !same || string(name) != action {
		if i := folded.exactBytes(name); i >= 0 {
			return i
		}
	}
	if w := folded.wildcards(); w.left == 0 {
		return -1
	}
	if name := FoldAction(buffer[:0], action, false); string(name) != action {
		action = string(name)
	} else if same {
		return -1
	}
	return folded.matchWildcard(action)
}

// each yields the index of every entry that matches action, some more than once.
func (d *deniedActions) each(action string, yield func(index int)) {
	exact, folded, _ := d.sets()
	exact.each(action, yield)
	if i := folded.exactBytes(FoldAction(nil, action, true)); i >= 0 {
		yield(i)
	}
	name := string(FoldAction(nil, action, false))
	for w := folded.wildcards(); w.next(); {
		if w.match(name) {
			yield(w.index)
		}
	}
}

// Steps is nothing, as an [ActionSet]'s.
func (d *deniedActions) Steps(string) int { return 0 }

// Flat returns the list in one piece of memory.
func (d *deniedActions) Flat() string { return d.flat }

// Size returns about how many bytes d keeps on the heap.
func (d *deniedActions) Size() int { return len(d.flat) + int(unsafe.Sizeof(*d)) }
