package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// FormatFile returns a file of Rego as `opa fmt` writes it, with its comments. Formatting a formatted
// file changes nothing. The error is a *[condition.Error] with the place of each mistake. A file of
// which a comment would be lost, or a rule would change, is an error, too.
func FormatFile(name, source string) (string, error) {
	opts := ast.ParserOptions{RegoVersion: ast.RegoV1, ProcessAnnotation: true}
	m, err := ast.ParseModuleWithOpts(name, source, opts)
	if err != nil {
		return "", explain(err)
	}
	if m == nil {
		return "", refuse(ast.NewLocation(nil, name, 1, 1), "the file is empty")
	}
	refused := refuse(ast.NewLocation(nil, name, 1, 1),
		"cannot be formatted: OPA's formatter would change what it says, or lose a comment")
	out := source
	for range maxFormats {
		next, err := formatted(name, out)
		if err != nil {
			return "", refused
		}
		if next.Source == out {
			after, err := ast.ParseModuleWithOpts(name, out, opts)
			if err != nil || after == nil || !sameRules(after, m) || !slices.Equal(commentsIn(m), commentsIn(after)) {
				return "", refused
			}
			return out, nil
		}
		out = next.Source
	}
	return "", refused
}

// maxFormats bounds how often a file is formatted until nothing changes. Comments can move once.
const maxFormats = 4

// sameRules reports whether two modules are equal. OPA writes `match if true` as `match := true`, which
// says the same.
func sameRules(a, b *ast.Module) bool {
	for _, m := range []*ast.Module{a, b} {
		for _, r := range m.Rules {
			for ; r != nil; r = r.Else {
				r.Head.Assign = false
			}
		}
	}
	return a.Equal(b)
}

// commentsIn returns the texts of a module's comments, sorted.
func commentsIn(m *ast.Module) (texts []string) {
	for _, c := range m.Comments {
		texts = append(texts, strings.TrimSpace(string(c.Text)))
	}
	slices.Sort(texts)
	return texts
}

// A body is formatted within a module. The last line keeps the rule in braces.
const (
	bodyBegins = "package p\n\nmatch if {\n"
	bodyEnds   = "\nbody_ends\n}\n"
)

// FormatCondition returns a condition in Rego as `opa fmt` writes it: a module as [FormatFile] does, or
// the body of a rule. A text without a newline at its end gets none. A body that cannot be formatted
// stays as it is.
func FormatCondition(source string) (string, error) {
	m, err := parseCondition(source)
	if err != nil {
		return "", err
	}
	trimmed := strings.TrimRight(source, " \t\r\n")
	end := ""
	if strings.HasSuffix(source, "\n") {
		end = "\n"
	}
	if packageClause.MatchString(source) {
		out, err := FormatFile("", source)
		return strings.TrimRight(out, "\n") + end, err
	}
	if out, ok := formattedBody(trimmed); ok {
		after, err := parseCondition(out)
		if err == nil && after.Rules[0].Body.Equal(m.Rules[0].Body) {
			return out + end, nil
		}
	}
	return source, nil
}

// formattedBody formats the body of a rule. It reports false if that is not possible.
func formattedBody(source string) (string, bool) {
	out, err := FormatFile("", bodyBegins+strings.TrimLeft(source, "\n")+bodyEnds)
	out, begins := strings.CutPrefix(out, bodyBegins)
	out, ends := strings.CutSuffix(out, "\t"+strings.TrimLeft(bodyEnds, "\n"))
	lines := strings.Split(strings.Trim(out, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\t")
	}
	return strings.Join(lines, "\n"), err == nil && begins && ends
}
