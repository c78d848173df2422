package rego

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opa "github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Tests may call functions that conditions may not. OPA ends a test after testTimeout, but not within
// the call of a function. So a function that makes a large value of a short argument refuses that
// argument, and a run of tests ends if a call of any other function does not.

// maxTestDigits bounds the numbers that say how large the result of a function is: the widths of
// sprintf together, an exponent, and the bits of a shift.
const maxTestDigits = 100_000

// testPatience is how long a run waits for the next result. Every test ends after testTimeout unless a
// call does not end.
const testPatience = 3 * testTimeout

// boundedPrefix begins the names of bounded functions in compiled tests.
const boundedPrefix = "bounded."

// testBounds has the functions that are bounded. Each returns how large a result the arguments ask for.
var testBounds = map[string]func(args []*ast.Term) int{
	ast.Sprintf.Name:         widthsOf,
	ast.UnitsParse.Name:      exponentOf,
	ast.UnitsParseBytes.Name: exponentOf,
	ast.BitsShiftLeft.Name:   func(args []*ast.Term) int { return intOf(args[1]) },
}

// widthDigits matches a width or a precision in a format of sprintf, and a star that stands for one.
// exponentDigits matches the exponent of a number.
var (
	widthDigits    = regexp.MustCompile(`[0-9]+|\*`)
	exponentDigits = regexp.MustCompile(`[eE][+-]?([0-9]+)`)
)

func widthsOf(args []*ast.Term) (total int) {
	format, _ := args[0].Value.(ast.String)
	stars := 0
	if values, ok := args[1].Value.(*ast.Array); ok {
		values.Foreach(func(t *ast.Term) { stars = max(stars, intOf(t)) })
	}
	for _, width := range widthDigits.FindAllString(string(format), -1) {
		n := stars
		if width != "*" {
			n = number(width)
		}
		total = min(total+n, maxTestDigits+1)
	}
	return total
}

func exponentOf(args []*ast.Term) (largest int) {
	text, _ := args[0].Value.(ast.String)
	for _, found := range exponentDigits.FindAllStringSubmatch(string(text), -1) {
		largest = max(largest, number(found[1]))
	}
	return largest
}

// intOf returns a whole number, 0 for any other value.
func intOf(t *ast.Term) int {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return 0
	}
	return number(n.String())
}

// number returns a number in digits. A number above the bound counts as one more than the bound.
func number(s string) int {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || n > maxTestDigits {
		return maxTestDigits + 1
	}
	return max(int(n), 0)
}

// boundedFunctions returns the functions of testBounds, by their bounded names.
func boundedFunctions() (all []*tester.Builtin) {
	for name, bound := range testBounds {
		decl := *ast.BuiltinMap[name]
		decl.Name = boundedPrefix + name
		call := func(bctx opa.BuiltinContext, args []*ast.Term) (result *ast.Term, err error) {
			if bound(args) > maxTestDigits {
				return nil, fmt.Errorf("%s: the result would have more than %d characters", name, maxTestDigits)
			}
			err = topdown.GetBuiltin(name)(bctx, args, func(t *ast.Term) error {
				result = t
				return nil
			})
			return result, err
		}
		all = append(all, &tester.Builtin{
			Decl: &decl, Func: opa.FunctionDyn(&opa.Function{Name: decl.Name, Decl: decl.Decl}, call),
		})
	}
	return all
}

// callBounded makes compiled tests call the bounded functions.
func callBounded(c *ast.Compiler) *ast.Error {
	bounded := func(t *ast.Term) *ast.Term {
		if _, ok := testBounds[t.Value.String()]; !ok {
			return t
		}
		return ast.NewTerm(ast.Ref{ast.VarTerm(boundedPrefix + t.Value.String())}).SetLocation(t.Location)
	}
	for _, m := range c.Modules {
		ast.WalkExprs(m, func(e *ast.Expr) bool {
			for _, w := range e.With {
				w.Target = bounded(w.Target)
			}
			if terms, ok := e.Terms.([]*ast.Term); ok {
				terms[0] = bounded(terms[0])
			}
			return false
		})
	}
	return nil
}

// collect returns the results of tests. If a call does not end, it returns an error with the call's
// place, and the call is left alone.
func (p *progress) collect(ctx context.Context, ran <-chan *tester.Result) (results []TestResult, err error) {
	timer := time.NewTimer(testPatience)
	defer timer.Stop()
	for {
		select {
		case r, ok := <-ran:
			if !ok {
				return results, nil
			}
			results = append(results, p.result(r))
			timer.Reset(testPatience)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, p.endless()
		}
	}
}

// endless returns the error of a call that does not end.
func (p *progress) endless() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return refuse(ast.NewLocation(nil, p.latest.file, p.latest.row, p.latest.col),
		"a function that is called here, or below, does not end within %v: give it smaller arguments", testTimeout)
}
