package engine

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

type problems struct{ fields []FieldError }

func (p *problems) add(field, format string, args ...any) {
	p.fields = append(p.fields, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (p *problems) addIn(field string, m condition.Mistake) {
	p.fields = append(p.fields, FieldError{Field: field, Message: m.String(), In: m})
}

func (p *problems) err() error {
	if len(p.fields) == 0 {
		return nil
	}
	return &InvalidError{Fields: p.fields}
}

// text checks a required string of one line, which is a name. It refuses characters that make two
// different names look the same.
func (p *problems) text(field, s string, limit int) {
	if s == "" {
		p.add(field, "is required")
		return
	}
	switch {
	case len(s) <= limit && isPrintable(s) && s[0] != ' ' && s[len(s)-1] != ' ':
	case !p.optionalText(field, s, limit):
	case strings.TrimSpace(s) != s:
		p.add(field, "must not start or end with white space")
	case strings.ContainsAny(s, "\t\n\r"):
		p.add(field, "must not contain control characters")
	default:
		if r, found := resource.FindInvisible(s); found {
			p.add(field, "must not contain the invisible character %U", r)
		}
	}
}

// optionalText checks a string that may be empty and may have several lines. It reports whether
// the string is valid.
func (p *problems) optionalText(field, s string, limit int) bool {
	problem := textProblem(s, limit)
	if problem != "" {
		p.add(field, "%s", problem)
	}
	return problem == ""
}

// textProblem returns the mistake of a text, or "".
func textProblem(s string, limit int) string {
	switch {
	case len(s) > limit:
		return fmt.Sprintf("is longer than %d bytes", limit)
	case isPrintable(s):
		return ""
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case hasControl(s):
		return "must not contain control characters"
	}
	return ""
}

// document checks the presence and the length of a string that holds a JSON document.
func (p *problems) document(field, s, example string, limit int) {
	switch {
	case s == "":
		p.add(field, "is required: want a JSON document such as %s", example)
	case len(s) > limit:
		p.add(field, "is longer than %d bytes", limit)
	}
}

// isPrintable reports whether s is printable ASCII. Nearly every text is, and such a text has no
// invalid character.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// hasControl reports whether s has a control character other than tab, line feed and carriage
// return.
func hasControl(s string) bool {
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7F && unicode.IsControl(r) {
			return true
		}
	}
	return false
}

// uuid checks for the form 8-4-4-4-12 of lower-case hexadecimal digits.
func (p *problems) uuid(field, s string) {
	if s == "" {
		p.add(field, "is required")
		return
	}
	if !condition.IsUUID(s) {
		p.add(field, `want a UUID such as "123e4567-e89b-12d3-a456-426614174000"`)
	}
}

// actionType checks a name of the action taxonomy. The characters in extra are allowed too.
func (p *problems) actionType(field, s, extra string) {
	switch {
	case s == "":
		p.add(field, "is required")
	case len(s) > condition.MaxName:
		p.add(field, "is longer than %d bytes", condition.MaxName)
	case !isActionType(s, extra):
		p.add(field, "want letters, digits and . _ - : / + @%s, such as sql.write", extra)
	}
}

func isActionType(s, extra string) bool {
	for i := range len(s) {
		if c := s[i]; !isAlpha(c) && !isDigit(c) && strings.IndexByte("._-:/+@", c) < 0 &&
			strings.IndexByte(extra, c) < 0 {
			return false
		}
	}
	return true
}

func (p *problems) resource(field, s string) resource.Readings {
	switch {
	case s == "":
		p.add(field, "is required")
	case len(s) > condition.MaxText:
		p.add(field, "is longer than %d bytes", condition.MaxText)
	default:
		readings, err := resource.Read(s)
		if err != nil {
			p.add(field, "has no single meaning: %s", strings.TrimPrefix(err.Error(), "resource: "))
		}
		return readings
	}
	return resource.Readings{}
}

func (p *problems) amount(field string, n int64) {
	if n < 0 || n > condition.MaxInteger {
		p.add(field, "want an integer from 0 to %d", int64(condition.MaxInteger))
	}
}

func (p *problems) currency(field, s string) {
	if !condition.IsCurrency(s) {
		p.add(field, "want an ISO 4217 code of three upper-case letters such as EUR")
	}
}

func (p *problems) metadata(field string, m map[string]string) {
	if len(m) > condition.MaxMetadataKeys {
		p.add(field, "has more than %d keys", condition.MaxMetadataKeys)
		return
	}
	for k, v := range m {
		switch {
		case k == "":
			p.add(field, "has an empty key")
		case len(k) > condition.MaxName:
			p.add(field, "has a key longer than %d bytes", condition.MaxName)
		case !isPrintable(k) && (!utf8.ValidString(k) || hasControl(k) || strings.ContainsAny(k, "\t\n\r")):
			p.add(field, "has a key with control characters or invalid UTF-8")
		default:
			if problem := textProblem(v, condition.MaxText); problem != "" {
				p.add(field+"."+k, "%s", problem)
			}
		}
	}
}

func (p *problems) timestamp(field, s string) {
	if s == "" {
		p.add(field, "is required: want an RFC 3339 time")
		return
	}
	if _, err := condition.ParseTime(s); err != nil {
		p.add(field, `want an RFC 3339 time such as "2026-01-31T09:30:00Z", between the years 1678 and 2261`)
	}
}

// agentPattern checks the agent id of a policy, which may be a glob over ids.
func (p *problems) agentPattern(field, s string) {
	before := len(p.fields)
	p.text(field, s, condition.MaxLabel)
	if len(p.fields) > before || !glob.HasMeta(s) {
		return
	}
	if _, err := glob.CompileSet([]string{s}); err != nil {
		p.add(field, "is not a valid pattern: it %s", problemOf(err))
	}
}

// length checks the length of a list and reports whether it is valid.
func (p *problems) length(field string, n int) bool {
	if n > condition.MaxEntries {
		p.add(field, "has more than %d entries", condition.MaxEntries)
	}
	return n <= condition.MaxEntries
}

func (p *problems) actionTypes(field string, types []string) {
	if !p.length(field, len(types)) {
		return
	}
	for i, t := range types {
		if t == "" || len(t) > condition.MaxName || !isActionType(t, "*") {
			p.actionType(fmt.Sprintf("%s[%d]", field, i), t, "*")
		}
	}
}

// patterns checks resource patterns and names every mistake. It does not check the patterns of a
// list that is too long.
func (p *problems) patterns(field string, patterns []string, side resource.Side) {
	if len(patterns) > condition.MaxEntries {
		return
	}
	for _, e := range glob.Check(patterns, side, condition.MaxMistakes) {
		p.add(fmt.Sprintf("%s[%d]", field, e.Index), "is not a valid pattern: it %s", problemOf(e))
	}
}

// problemOf returns the mistake of a pattern without the pattern's index.
func problemOf(err error) string {
	var e *glob.PatternError
	switch {
	case !errors.As(err, &e):
		return "does not compile"
	case strings.HasPrefix(e.Problem, "syntax error"):
		return "has a " + e.Problem
	}
	return e.Problem
}
