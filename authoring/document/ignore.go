package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ignores matches the comment that silences a warning: # writ:ignore RULE reason. Each match has the
// ignoreWord.
var ignores = regexp.MustCompile(`(?:^|\s)#\s*writ:ignore\b[ \t]*(\S*)[ \t]*(.*)$`)

const ignoreWord = "writ:ignore"

// ignoreIn returns the match of ignores in a line, or nil. Looking for the word first matters: the
// expression would take seconds on 100 MB of comments.
func ignoreIn(line string) []string {
	if !strings.Contains(line, ignoreWord) {
		return nil
	}
	return ignores.FindStringSubmatch(line)
}

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
		m := ignoreIn(text)
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
	f, text := newFile(name, data), string(data)
	if !strings.Contains(text, ignoreWord) {
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		m := ignoreIn(strings.TrimSuffix(line, "\r"))
		if m == nil {
			continue
		}
		before, _, _ := strings.Cut(line, ignoreWord)
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
