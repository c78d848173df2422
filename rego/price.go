package rego

import (
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ/engine/condition"
)

// size estimates the bytes of v. It stops counting soon after the total exceeds most.
func size(v ast.Value, most int) int {
	total := termBytes
	more := func(t *ast.Term) bool {
		total += size(t.Value, most-total)
		return total > most
	}
	switch v := v.(type) {
	case ast.String:
		return total + len(v)
	case ast.Number:
		return total + len(v)
	case *ast.Array:
		v.Until(more)
	case ast.Set:
		v.Until(more)
	case ast.Object:
		v.Until(func(k, v *ast.Term) bool { return more(k) || more(v) })
	}
	return total
}

// price returns the least number of steps of a call: the bytes that it reads. If the call can make
// a much larger value, price adds the bytes of that value. A price above most need not be exact.
func (m *meters) price(function string, args []*ast.Term, most int) int {
	if function == ast.Member.Name {
		if _, ok := args[1].Value.(ast.Set); ok {
			args = args[:1] // the function does not read all of a set
		}
	}
	total := 0
	for _, a := range args {
		if total += size(a.Value, most-total); total > most {
			return total
		}
	}
	if i, ok := patternArgument(function); ok {
		return total + m.matching(args[i], total)
	}
	return total + growthOf(function, args, most)
}

// matching returns the price of matching a regular expression with a text. text is its length in
// bytes. For each byte the price counts the expression's instructions and one value for a match.
func (m *meters) matching(pattern *ast.Term, text int) int {
	instructions := condition.MaxEntries
	if s, ok := pattern.Value.(ast.String); ok {
		if n, ok := m.programs[string(s)]; ok {
			instructions = n
		}
	}
	return text * (instructions + termBytes)
}

// growthOf bounds the bytes that a call makes, if its function can make much more than it reads.
func growthOf(function string, args []*ast.Term, most int) int {
	switch function {
	case ast.NumbersRange.Name, ast.NumbersRangeStep.Name:
		return rangeBytes(args, most)
	case ast.Split.Name:
		return termBytes * occurrences(args[0], args[1])
	case ast.Replace.Name:
		return occurrences(args[0], args[1]) * textBytes(args[2])
	case ast.Concat.Name:
		return textBytes(args[0]) * members(args[1])
	case ast.ReplaceN.Name:
		return (textBytes(args[1]) + 1) * longestValue(args[0])
	case ast.JSONUnmarshal.Name:
		return termBytes * textBytes(args[0])
	}
	return 0
}

// rangeBytes returns the bytes of the numbers from args[0] to args[1]. It stops above most.
func rangeBytes(args []*ast.Term, most int) int {
	from, to := wholeNumber(args[0]), wholeNumber(args[1])
	if from == nil || to == nil {
		return 0 // the function refuses it
	}
	count := new(big.Int).Sub(to, from)
	count.Abs(count)
	if len(args) > 2 {
		if step := wholeNumber(args[2]); step != nil && step.Sign() > 0 {
			count.Quo(count, step)
		}
	}
	if !count.IsInt64() || count.Int64() >= int64(most)/termBytes {
		return most + 1
	}
	return termBytes * int(count.Int64()+1)
}

// wholeNumber returns t as an integer, or nil if t is not an integer. The text of a number is short.
// It has no exponent, because OPA writes exponents out.
func wholeNumber(t *ast.Term) *big.Int {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return nil
	}
	i, ok := new(big.Int).SetString(string(n), 10)
	if !ok {
		return nil
	}
	return i
}

// occurrences bounds how often a function finds part in text.
func occurrences(text, part *ast.Term) int {
	s, ok1 := text.Value.(ast.String)
	p, ok2 := part.Value.(ast.String)
	switch {
	case !ok1 || !ok2:
		return 0 // the function refuses it
	case p == "":
		return utf8.RuneCountInString(string(s)) + 1
	}
	return strings.Count(string(s), string(p)) + 1
}

func textBytes(t *ast.Term) int {
	s, _ := t.Value.(ast.String)
	return len(s)
}

// members counts the elements of a list or a set.
func members(t *ast.Term) int {
	switch v := t.Value.(type) {
	case *ast.Array:
		return v.Len()
	case ast.Set:
		return v.Len()
	}
	return 0
}

// longestValue returns the length of the longest text in the values of an object.
func longestValue(t *ast.Term) int {
	longest := 0
	if o, ok := t.Value.(ast.Object); ok {
		o.Foreach(func(_, v *ast.Term) { longest = max(longest, textBytes(v)) })
	}
	return longest
}
