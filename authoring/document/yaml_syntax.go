package document

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// yamlSyntax returns the error for a file that is not YAML.
func (f *file) yamlSyntax(err error) error {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return f.refuse(Place{1, 1}, "is not valid YAML: %v", err)
	}
	line, _ := strconv.Atoi(m[1]) // line is 0 if the error has no line
	if strings.HasPrefix(m[2], "did not find expected") && strings.HasSuffix(m[2], "key") {
		line++ // the library's parser counts lines from 0, its scanner from 1
	}
	line = max(line, 1)
	for _, s := range slips {
		for _, at := range []int{line, line + 1, line - 1} {
			if column := s.find(f.line(at)); column > 0 {
				return f.refuse(Place{at, column}, "is not valid YAML: %s", s.message)
			}
		}
	}
	text := f.line(line)
	column := 1 + len(text) - len(strings.TrimLeft(text, " "))
	if strings.HasSuffix(m[2], "expected key") {
		return f.refuse(Place{line, column},
			"is not valid YAML: this line is not indented like those above, or one above is not closed (%s)", m[2])
	}
	return f.refuse(Place{line, column}, "is not valid YAML: %s", m[2])
}

// slip is a common mistake in YAML. The YAML library explains it badly, or reports it for the next
// line.
type slip struct {
	pattern *regexp.Regexp
	message string
}

// slips has the mistakes to look for near the line that the library names. The first one that fits
// is reported.
var slips = []slip{
	{regexp.MustCompile(`^ *(\t)`), "lines are indented by spaces, not by tabs"},
	{regexp.MustCompile(`^[^"#]*("(?:[^"\\]|\\.)*)$`), "the text that begins here has no closing quote"},
	{regexp.MustCompile(`(?:: |^ *- |[\[{,] ?)([*@%` + "`" + `][^"']*)$`),
		"a text that begins with this character stands in quotes"},
	{regexp.MustCompile(`^ *(?:- )?\w+(:[^\s/].*)$`), "a space is missing behind the colon"},
	{regexp.MustCompile(`^ *(?:- )?[\w.]+: +[^"'{\[#|>].*?(: .*)$`),
		"a text with a colon and a space stands in quotes"},
}

// find returns the column of the slip in a line, counted from 1. It returns 0 if it finds no slip.
func (s slip) find(line string) int {
	m := s.pattern.FindStringSubmatchIndex(line)
	if m == nil {
		return 0
	}
	return 1 + utf8.RuneCountInString(line[:m[2]])
}
