package rego

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

func patternArgument(function string) (int, bool) {
	switch function {
	case ast.RegexMatch.Name, ast.RegexSplit.Name, ast.RegexFind.Name, ast.RegexFindAllStringSubmatch.Name,
		ast.RegexIsValid.Name:
		return 0, true
	case ast.RegexReplace.Name:
		return 1, true
	}
	return 0, false
}

// regexps counts the instructions of all regular expressions of one condition.
type regexps struct{ instructions int }

// problem returns why the regular expression of a call cannot be used, or "".
func (r *regexps) problem(pattern *ast.Term) string {
	s, ok := pattern.Value.(ast.String)
	if !ok {
		return "the pattern must be a constant"
	}
	n, err := condition.Instructions(string(s))
	if err != nil {
		return err.Error()
	}
	if r.instructions += n; r.instructions > condition.MaxInstructions {
		return fmt.Sprintf("the regular expressions compile to more than %d instructions", condition.MaxInstructions)
	}
	return ""
}

// textGrowth bounds the growth by a function that writes a text into another text, once for each
// match. The growth depends on the length of the written text. It is unbounded if that text is not
// a constant.
func textGrowth(function string, args []*ast.Term) int {
	switch {
	case function == ast.Concat.Name && len(args) > 0:
		return 1 + textLength(args[0])
	case function == ast.Replace.Name && len(args) > 2, function == ast.RegexReplace.Name && len(args) > 2:
		return 1 + textLength(args[2])
	case function == ast.ReplaceN.Name && len(args) > 0:
		return replacements(args[0])
	}
	return 1
}

// replacements bounds the growth by a call of strings.replace_n.
func replacements(patterns *ast.Term) int {
	o, ok := patterns.Value.(ast.Object)
	if !ok {
		return maxGrowth + 1
	}
	longest := 1
	o.Foreach(func(_, v *ast.Term) { longest = max(longest, 1+textLength(v)) })
	return longest
}

func textLength(t *ast.Term) int {
	if s, ok := t.Value.(ast.String); ok {
		return min(len(s), maxGrowth)
	}
	return maxGrowth
}
