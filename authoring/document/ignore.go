package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ignores matches the comment that silences a warning: # writ:ignore RULE reason.
var ignores = regexp.MustCompile(`(?:^|\s)#\s*writ:ignore\b[ \t]*(\S*)[ \t]*(.*)$`)

// Ignores reports whether a comment in a YAML file silences the named rule of package lint for a
// field of d. The comment is "# writ:ignore RULE reason". It stands at the end of the line of the
// field or of its value, or right above that line.
func (d *Document) Ignores(field, rule string) bool {
	if !d.file.yaml {
		return false
	}
	n := d.find(field)
	return slices.ContainsFunc([]int{n.at.Line, n.keyAt.Line}, func(line int) bool {
		return line > 0 && d.file.ignoresAt(line, rule)
	})
}

func (f *file) ignoresAt(line int, rule string) bool {
	said := func(text string) bool {
		m := ignores.FindStringSubmatch(text)
		return m != nil && m[1] == rule && m[2] != ""
	}
	if said(f.line(line)) {
		return true
	}
	for line--; strings.HasPrefix(strings.TrimSpace(f.line(line)), "#"); line-- {
		if said(f.line(line)) {
			return true
		}
	}
	return false
}

// BadIgnores returns a problem for each writ:ignore comment that has no effect. Such a comment has
// no reason, or its rule is not in known.
func BadIgnores(name string, data []byte, known []string) (bad []Problem) {
	f := newFile(name, data)
	for i, line := range strings.Split(string(data), "\n") {
		m := ignores.FindStringSubmatch(strings.TrimSuffix(line, "\r"))
		if m == nil {
			continue
		}
		before, _, _ := strings.Cut(line, "writ:ignore")
		at := Place{i + 1, 1 + len([]rune(before))}
		switch {
		case m[1] == "" || !slices.Contains(known, m[1]):
			bad = append(bad,
				f.problem(at, "",
					fmt.Sprintf("silences nothing: want the name of a warning, one of %s", strings.Join(known, ", "))))
		case m[2] == "":
			bad = append(bad, f.problem(at, "", "silences nothing: say the reason behind "+m[1]))
		}
	}
	return bad
}
