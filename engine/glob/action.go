package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"writ.example/writ/engine/resource"
)

// Actions is a compiled list of action types. An entry is compared exactly, including its case.
// Only a * is special: it matches any characters, including dots:
//
//	sql.write   matches sql.write alone
//	sql.*       matches sql.write and sql.write.bulk, but not sql or sqlite.x
//	*.delete    matches sql.delete and s3.object.delete
//	*           matches every action type
//
// A * matches dots because a deeper name must not escape a denied sql.*. An entry of a list of
// denied types also matches every type that equals the entry after folding:
//
//	sql.drop    denies SQL.Drop, sql..drop, sql_drop and sql-drop too
//	sql.*       denies SQL.drop and sql..drop, but not sql_drop
//
// An Actions is immutable and safe for concurrent use.
type Actions struct {
	// list has each entry in each form in which action types are compared.
	list   List
	denied bool
	folds  bool // folding changes the entry, so it may match folded names, too
}

// The forms of an action type are the readers of list.
const (
	asWritten resource.Reader = 1 << iota
	asWords                   // folded, and _ and - count as dots: for entries without *
	asPattern                 // folded, for entries with *
)

// CompileActions compiles allowed action types. The error is a *[PatternError].
func CompileActions(types []string) (*Actions, error) { return compileActions(types, false) }

// CompileDenied compiles denied action types. The error is a *[PatternError].
func CompileDenied(types []string) (*Actions, error) { return compileActions(types, true) }

func compileActions(types []string, denied bool) (*Actions, error) {
	a := &Actions{denied: denied}
	b := newBuilder(types)
	b.actions = true
	for i, t := range types {
		if problem := checkActionType(t); problem != "" {
			return nil, &PatternError{Index: i, Problem: problem}
		}
		readers := asWritten
		if denied {
			way, wild := asWords, strings.Contains(t, "*")
			if wild {
				way = asPattern
			}
			var buffer [256]byte
			if folded := FoldAction(buffer[:0], t, !wild); string(folded) == t {
				readers |= way
			} else {
				b.addAction(i, way, string(folded))
				a.folds = true
			}
		}
		b.addAction(i, readers, t)
	}
	a.list = *b.finish()
	return a, nil
}

func actionUnits(t string) []unit {
	units := make([]unit, 0, len(t))
	for _, r := range t {
		switch r {
		case '*':
			units = append(units, unit{star: superStar})
		case '%': // in an action type % is an ordinary character
			units = append(units, unit{lit: escaped | '%'})
		default:
			units = append(units, unit{lit: r})
		}
	}
	return coalesce(units)
}

func checkActionType(t string) string {
	switch {
	case t == "":
		return "is empty"
	case len(t) > MaxLength:
		return "is longer than 1024 bytes"
	case !utf8.ValidString(t):
		return "is not valid UTF-8"
	}
	unseen := false
	for _, r := range t {
		switch {
		case r == '?' || r == '[' || r == ']' || r == '{' || r == '}' || r == '\\':
			return "has a wildcard other than *, which is the only one of action types"
		case ' ' < r && r <= '~':
		case unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r):
			unseen = true
		}
	}
	if unseen {
		return "has white space or a character that is not seen"
	}
	return ""
}

// FoldAction appends s in lower case, with each run of dots as one dot. If the last argument is
// true, underscores and hyphens count as dots.
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

// Match returns the index of the first entry that matches action as written. If a list of denied
// types has no such entry, it returns the first entry that matches after folding. If nothing
// matches, it returns -1. It does not allocate.
func (a *Actions) Match(action string) int {
	i := a.match(action, asWritten, nil)
	if i >= 0 || !a.denied {
		return i
	}
	return a.matchFolded(action, nil)
}

// Each yields the index of every entry that matches action. It may yield an index more than once.
func (a *Actions) Each(action string, yield func(index int)) {
	if a.match(action, asWritten, yield); a.denied {
		a.matchFolded(action, yield)
	}
}

func (a *Actions) matchFolded(action string, each func(index int)) int {
	var buffer [256]byte
	for _, way := range [...]resource.Reader{asWords, asPattern} {
		name := FoldAction(buffer[:0], action, way == asWords)
		if !a.folds && string(name) == action {
			continue
		}
		// match must not keep name or a part of it.
		if i := a.match(unsafe.String(unsafe.SliceData(name), len(name)), way, each); i >= 0 {
			return i
		}
	}
	return -1
}

func (a *Actions) match(s string, way resource.Reader, each func(index int)) int {
	if strings.IndexByte(s, '%') >= 0 { // the entries have another form of %: see actionUnits
		s = strings.ReplaceAll(s, "%", "%25")
	}
	i, _ := a.list.search(s, way, resource.StopsAtSlash, each)
	return i
}

// List returns the compiled list, which [Pack] needs.
func (a *Actions) List() *List { return &a.list }

// Steps bounds the work of matching s, which a list of denied types reads in three ways.
func (a *Actions) Steps(s string) int {
	if a.denied {
		return 3 * a.list.Steps(s)
	}
	return a.list.Steps(s)
}

// Size returns the approximate size of a on the heap, in bytes.
func (a *Actions) Size() int { return int(unsafe.Sizeof(*a)-unsafe.Sizeof(a.list)) + a.list.Size() }
