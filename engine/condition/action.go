package condition

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"writ/engine/glob"
)

// ActionSet is a compiled list of action types. An entry is compared exactly,
// case and all, except that each * stands for any characters, dots too:
//
//	sql.write   matches sql.write alone
//	sql.*       matches sql.write and sql.write.bulk, but not sql or sqlite.x
//	*.delete    matches sql.delete and s3.object.delete
//	*           matches every action type
//
// A * spans dots because a denied sql.* must not be escaped by a deeper name.
//
// ActionSet is safe for concurrent use.
type ActionSet struct {
	exact     map[string]int
	wildcards []actionPattern
}

type actionPattern struct {
	index int
	// parts are the literals between the asterisks, at least two.
	parts []string
}

// CompileActions compiles action types. Its error is a *[glob.PatternError].
func CompileActions(types []string) (*ActionSet, error) {
	a := &ActionSet{exact: make(map[string]int, len(types))}
	for i, t := range types {
		if problem := checkActionType(t); problem != "" {
			return nil, &glob.PatternError{Index: i, Problem: problem}
		}
		if strings.Contains(t, "*") {
			a.wildcards = append(a.wildcards, actionPattern{index: i, parts: strings.Split(t, "*")})
		} else if _, ok := a.exact[t]; !ok {
			a.exact[t] = i
		}
	}
	return a, nil
}

func checkActionType(t string) string {
	switch {
	case t == "":
		return "is empty"
	case len(t) > glob.MaxLength:
		return "is longer than 1024 bytes"
	case !utf8.ValidString(t):
		return "is not valid UTF-8"
	case strings.ContainsAny(t, `?[]{}\`):
		return "has a wildcard other than *, which is the only one of action types"
	}
	for _, r := range t {
		if unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return "has white space or a character that is not seen"
		}
	}
	return ""
}

// Match returns the index of the first entry that matches action, -1 when none
// does. It does not allocate.
func (a *ActionSet) Match(action string) int {
	first, ok := a.exact[action]
	if !ok {
		first = -1
	}
	for i := range a.wildcards {
		w := &a.wildcards[i]
		if ok && w.index > first {
			break
		}
		if w.match(action) {
			return w.index
		}
	}
	return first
}

// each yields the index of every entry that matches action, but for repeated ones.
func (a *ActionSet) each(action string, yield func(index int)) {
	if i, ok := a.exact[action]; ok {
		yield(i)
	}
	for i := range a.wildcards {
		if a.wildcards[i].match(action) {
			yield(a.wildcards[i].index)
		}
	}
}

func (a *ActionSet) matchWildcard(action string) int {
	for i := range a.wildcards {
		if a.wildcards[i].match(action) {
			return a.wildcards[i].index
		}
	}
	return -1
}

// Steps is nothing: action types are short, and so are their patterns.
func (a *ActionSet) Steps(string) int { return 0 }

func (w *actionPattern) match(action string) bool {
	last := len(w.parts) - 1
	rest, ok := strings.CutPrefix(action, w.parts[0])
	if !ok {
		return false
	}
	for _, part := range w.parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, w.parts[last])
}
