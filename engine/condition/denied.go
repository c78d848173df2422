package condition

import "strings"

// deniedActions is a compiled list of denied action types. An entry matches as
// one of an [ActionSet] does, and also what is equal to it after folding:
//
//	sql.drop    denies SQL.Drop, sql..drop, sql_drop and sql-drop too
//	sql.*       denies SQL.drop and sql..drop, but not sql_drop
type deniedActions struct {
	exact, folded *ActionSet
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
	set, err := CompileActions(folded)
	if err != nil {
		return nil, err
	}
	return &deniedActions{exact: exact, folded: set}, nil
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
	if i := d.exact.Match(action); i >= 0 {
		return i
	}
	var buffer [MaxName]byte
	if i, ok := d.folded.exact[string(FoldAction(buffer[:0], action, true))]; ok {
		return i
	}
	if len(d.folded.wildcards) == 0 {
		return -1
	}
	if folded := FoldAction(buffer[:0], action, false); string(folded) != action {
		action = string(folded)
	}
	return d.folded.matchWildcard(action)
}

// each yields the index of every entry that matches action, some more than once.
func (d *deniedActions) each(action string, yield func(index int)) {
	d.exact.each(action, yield)
	if i, ok := d.folded.exact[string(FoldAction(nil, action, true))]; ok {
		yield(i)
	}
	folded := string(FoldAction(nil, action, false))
	for i := range d.folded.wildcards {
		if d.folded.wildcards[i].match(folded) {
			yield(d.folded.wildcards[i].index)
		}
	}
}

func (d *deniedActions) Steps(string) int { return 0 }
