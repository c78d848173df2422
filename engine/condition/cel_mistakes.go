package condition

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
)

// explain returns the mistakes that CEL found in expr. It words the messages for the author of a
// condition.
func (s *language) explain(expr string, issues *cel.Issues) error {
	e := new(Error)
	for _, issue := range issues.Errors() {
		if m, ok := foreign(expr); ok && strings.HasPrefix(issue.Message, syntaxError) {
			e.Add(m)
			break
		}
		m := s.mistake(expr, issue)
		m.Line = max(issue.Location.Line(), 0)
		if m.Column += issue.Location.Column() + 1; m.Line == 0 {
			m.Column = 0
		}
		e.Add(m)
		if strings.HasPrefix(issue.Message, syntaxError) {
			break // later mistakes only follow from this one
		}
	}
	if len(e.Mistakes) == 0 {
		e.add("", "%s", issues.String())
	}
	return e
}

const syntaxError = "Syntax error: "

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '([^']*)'`)
	overload   = regexp.MustCompile(`^found no matching overload for '([^']*)' applied to '([^']*)'`)
	unexpected = regexp.MustCompile(`^(?:mismatched|extraneous) input ('[^']*')`)
	unreadable = regexp.MustCompile(`(?s)^token recognition error at: '(.*)'$`)
)

func (s *language) mistake(expr string, issue *common.Error) Mistake {
	if m := undeclared.FindStringSubmatch(issue.Message); m != nil {
		return unknownName(m[1], lineAt(expr, issue.Location.Line()), issue.Location.Column())
	}
	if m := overload.FindStringSubmatch(issue.Message); m != nil {
		return Mistake{Message: s.mismatch(expr, issue, m[1], m[2])}
	}
	if text, ok := strings.CutPrefix(issue.Message, syntaxError); ok {
		return Mistake{Message: misread(text)}
	}
	return Mistake{Message: issue.Message}
}

func misread(text string) string {
	if m := unreadable.FindStringSubmatch(text); m != nil {
		if token := strings.TrimSpace(m[1]); token != "" && strings.ContainsAny(token[:1], `"'`) {
			return syntaxError + "the text that begins here has no closing " + token[:1]
		}
		return syntaxError + "CEL has no " + strings.TrimSpace(m[1])
	}
	m := unexpected.FindStringSubmatch(text)
	switch {
	case strings.HasPrefix(text, "missing "), m == nil:
		return syntaxError + strings.ReplaceAll(text, "'<EOF>'", "the end")
	case m[1] == "'<EOF>'":
		return syntaxError + "the expression ends here, where a value, a name or a closing bracket is missing"
	}
	return syntaxError + m[1] + " does not go here: expressions are joined by && and ||"
}

// unknownName explains a name that is neither a variable nor a function. CEL's column for an
// unknown function is after the name.
func unknownName(name string, line []rune, column int) Mistake {
	if column < len(line) && line[column] == '(' {
		before := strings.TrimRight(string(line[:column]), " \t")
		if rest, ok := strings.CutSuffix(before, name); ok {
			return Mistake{Column: len([]rune(rest)) - column, Message: unknownFunction(name)}
		}
	}
	end := column
	for end < len(line) && (line[end] == '.' || line[end] == '_' || isWord(line[end])) {
		end++
	}
	written := strings.TrimRight(string(line[min(column, end):end]), ".")
	if written == "" {
		written = name
	}
	return Mistake{Message: unknownVariable(written)}
}

func unknownVariable(name string) string {
	known := variableNames()
	if name == fields[Cost].path {
		return fmt.Sprintf("undeclared reference %s: ask has(%s), or compare %s", name, name, fields[CostAmount].path)
	}
	if meant := Meant(name, known); meant != "" {
		return fmt.Sprintf("undeclared reference %s: did you mean %s?", name, meant)
	}
	for _, f := range known {
		_, short, _ := strings.Cut(f, ".")
		if meant := Meant(name, []string{short}); meant != "" ||
			Meant(strings.TrimPrefix(name, "intent."), []string{short}) != "" {
			return fmt.Sprintf("undeclared reference %s: did you mean %s?", name, f)
		}
	}
	message := fmt.Sprintf("undeclared reference %s: known are %s", name, strings.Join(known, ", "))
	if root, _, dotted := strings.Cut(name, "."); !dotted && !roots[root] {
		return fmt.Sprintf(`undeclared reference %s: text is written in quotes, "%s"; known are %s`, name, name,
			strings.Join(known, ", "))
	}
	return message
}

// functionNames has the names that a message may suggest. CEL has a few more functions.
var functionNames = strings.Fields("startsWith endsWith contains matches size has int double string bool timestamp " +
	"duration " +
	"glob resource_glob action_matches list items decimal_compare lowerAscii upperAscii split trim replace exists " +
	"all " +
	"getHours getDayOfWeek getDate getMonth getFullYear")

func unknownFunction(name string) string {
	switch name {
	case "now", "time", "today":
		return name + " is no function: compare " + fields[DecidedAt].path + ", the time of the decision"
	case "not":
		return "not is written ! in CEL: !(…)"
	}
	list := "the functions are " + strings.Join(functionNames, ", ")
	if meant := Meant(name, functionNames); meant != "" {
		return fmt.Sprintf("there is no function %s: did you mean %s? %s", name, meant, list)
	}
	return fmt.Sprintf("there is no function %s; %s", name, list)
}

// mismatch explains an operator or a function whose arguments have the wrong types.
func (s *language) mismatch(expr string, issue *common.Error, function, types string) string {
	name := strings.Trim(function, "_@")
	message := fmt.Sprintf("no matching overload: %s does not take %s", name, types)
	call := s.callAt(expr, issue.Location)
	switch {
	case call == nil || len(call.Args()) != 2:
	case comparesNumber(types):
		for _, side := range call.Args() {
			if path, ok := dottedName(side); ok && strings.HasPrefix(path, fields[Metadata].path+".") {
				return fmt.Sprintf("%s: metadata values are strings, write int(%s)", message, path)
			}
		}
		if isMetadataIndex(call.Args()[0]) || isMetadataIndex(call.Args()[1]) {
			return message + `: metadata values are strings, write int(intent.metadata["…"])`
		}
		return message + ": write a number without quotes and text with them"
	case strings.Contains(types, "double") && strings.Contains(types, "int"):
		return message + ": amounts are whole numbers of minor units, 50.5 is 5050"
	case strings.Contains(types, "timestamp"):
		return message + `: write timestamp("2026-01-31T12:00:00Z")`
	}
	return message
}

// comparesNumber reports whether types, the types of two operands, has a string and a number.
func comparesNumber(types string) bool {
	return strings.Contains(types, "string") && (strings.Contains(types, "int") || strings.Contains(types, "double"))
}

func isMetadataIndex(e ast.Expr) bool {
	name, args := operandsOf(e)
	if name != operators.Index {
		return false
	}
	path, _ := dottedName(args[0])
	return path == fields[Metadata].path
}

// callAt returns the call at the location at in expr, or nil if expr does not parse.
func (s *language) callAt(expr string, at common.Location) ast.CallExpr {
	parsed, issues := s.cel.Parse(expr)
	if issues.Err() != nil {
		return nil
	}
	tree := parsed.NativeRep()
	for _, e := range ast.MatchDescendants(ast.NavigateAST(tree), ast.KindMatcher(ast.CallKind)) {
		if l := tree.SourceInfo().GetStartLocation(e.ID()); l.Line() == at.Line() && l.Column() == at.Column() {
			return e.AsCall()
		}
	}
	return nil
}

// token matches quoted texts, words and runs of operators. Because token matches quoted texts,
// foreign does not look for operators inside them.
var token = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[A-Za-z_][A-Za-z_0-9.]*|[=!<>&|]+`)

// foreign finds the first operator that belongs to another language. CEL cannot parse such an
// expression.
func foreign(expr string) (Mistake, bool) {
	instead := map[string]string{
		"=": "==", "===": "==", "!==": "!=", "<>": "!=", "=<": "<=", "=>": ">=", "&": "&&", "|": "||",
		"and": "&&", "or": "||", "like": "glob(pattern, text)", overloads.Matches: ".matches(…) after the text",
		"contains": ".contains(…) after the text",
	}
	for _, at := range token.FindAllStringIndex(expr, -1) {
		word := expr[at[0]:at[1]]
		behind := strings.TrimLeft(expr[at[1]:], " \t\n")
		use, found := instead[strings.ToLower(word)]
		if !found || strings.HasPrefix(behind, "(") && word != "and" && word != "or" && isWord(rune(word[0])) {
			continue
		}
		before := expr[:at[0]]
		column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:])) + 1
		return Mistake{Line: 1 + strings.Count(before, "\n"), Column: column,
			Message: fmt.Sprintf("%sCEL has no %s: use %s", syntaxError, word, use)}, true
	}
	return Mistake{}, false
}

func isWord(r rune) bool { return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' }

// lineAt returns a line of a source. Lines count from 1.
func lineAt(source string, line int) []rune {
	lines := slices.Collect(strings.SplitSeq(source, "\n"))
	if line < 1 || line > len(lines) {
		return nil
	}
	return []rune(lines[line-1])
}
