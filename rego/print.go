package rego

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/print"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// The compiler of a condition removes print, so that a server prints nothing and pays nothing. Offline
// the conditions with a print are compiled once more, with it.

// Printed is what a condition printed.
type Printed struct {
	RuleID string `json:"rule_id,omitzero"`
	Rule   string `json:"rule"`
	// Line is the line of the print in the condition's source, from 1.
	Line int    `json:"line"`
	Text string `json:"text"`
}

// String returns p on one line.
func (p Printed) String() string {
	return fmt.Sprintf("print: rule %s, line %d: %s", condition.Quote(p.Rule), p.Line, p.Text)
}

// The most that the conditions of one rule print for one reading of a resource.
const (
	maxPrintedLines = 100
	maxPrintedBytes = 16 << 10
)

// Prints returns the lines that conditions in Rego print for an input. It looks at each rule that is
// asked, with each of its readings and names. Equal lines for different readings are there once.
// Libraries print nothing. Prints is for tools: no decision comes from it.
func Prints(p *engine.Policy, set *engine.RuleSet, in *engine.Input) (all []Printed, err error) {
	prints := func(r *engine.CompiledRule) bool {
		source, _ := r.RegoSource()
		return strings.Contains(source, ast.Print.Name)
	}
	if set == nil || !slices.ContainsFunc(set.Rules(), prints) {
		return nil, nil
	}
	traced := *in
	traced.Trace = &engine.Trace{}
	engine.Evaluate(p, set, &traced)
	for _, a := range traced.Trace.Rules {
		if a.Verdict == engine.NotAsked || !prints(a.Rule) {
			continue
		}
		printed, err := printsOf(a.Rule, p.Document(), set, in)
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", a.Rule.Rule().Name, err)
		}
		all = append(all, printed...)
	}
	return all, nil
}

func printsOf(
	r *engine.CompiledRule, p *engine.ActionPolicy, set *engine.RuleSet, in *engine.Input,
) (all []Printed, err error) {
	source, _ := r.RegoSource()
	module, err := parseCondition(source)
	if err != nil {
		return nil, err
	}
	question, err := librariesOf(set).printing(source, module)
	if err != nil {
		return nil, err
	}
	texts := []string{in.Intent.Resource}
	if r.AsksEachReading() {
		if texts, err = readingsAsked(in.Intent, r.Outcome()); err != nil {
			return nil, nil //nolint:nilerr // the rule is asked for no reading
		}
	}
	asked, err := inputsAsked(r, p, set.Lists(), in, texts)
	if err != nil {
		return nil, err
	}
	var seen [][]Printed
	for _, input := range asked {
		out := printer{rule: r.Rule()}
		question.print = &out
		left := inSteps(new(condition.Work))
		left.metadata, left.lists, left.root = in.Intent.Metadata, set.Lists(), listed
		_, _ = question.ask(input, left) // the decision says the error
		if !slices.ContainsFunc(seen, func(p []Printed) bool { return slices.Equal(p, out.all) }) {
			seen, all = append(seen, out.all), append(all, out.all...)
		}
	}
	return all, nil
}

// printing compiles the module of a condition with its prints.
func (l *Libraries) printing(source string, module *ast.Module) (*prepared, error) {
	functions := *sandbox()
	functions.Builtins = append(slices.Clip(functions.Builtins), ast.Print, ast.InternalPrint)
	return l.questionOf(newCompiler(&functions, conditionSchema()).WithEnablePrintStatements(true), source, module)
}

// printer collects what one condition prints. It implements OPA's print.Hook.
type printer struct {
	rule  engine.Rule
	all   []Printed
	bytes int
}

// Print implements OPA's print.Hook. Control characters are replaced, so that a value of an intent does
// not steer a terminal.
func (p *printer) Print(ctx print.Context, text string) error {
	p.bytes += len(text)
	if len(p.all) >= maxPrintedLines || p.bytes > maxPrintedBytes {
		return topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr, Message: "the condition prints too much"}}
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	line := Printed{RuleID: p.rule.ID, Rule: p.rule.Name, Text: text}
	if ctx.Location != nil {
		line.Line = ctx.Location.Row
	}
	p.all = append(p.all, line)
	return nil
}

// stripPrints removes the calls of print from a module.
func stripPrints(m *ast.Module) {
	strip := func(b ast.Body) ast.Body {
		at := b.Loc()
		kept := slices.DeleteFunc(b, isPrint)
		if len(kept) == 0 {
			kept = ast.NewBody(ast.NewExpr(ast.BooleanTerm(true).SetLocation(at)).SetLocation(at))
		}
		for i, e := range kept {
			e.Index = i
		}
		return kept
	}
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Rule:
			x.Body = strip(x.Body)
		case *ast.ArrayComprehension:
			x.Body = strip(x.Body)
		case *ast.SetComprehension:
			x.Body = strip(x.Body)
		case *ast.ObjectComprehension:
			x.Body = strip(x.Body)
		case *ast.Every:
			x.Body = strip(x.Body)
		case *ast.Not:
			x.Body = strip(x.Body)
		}
		return false
	}).Walk(m)
}
