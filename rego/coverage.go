package rego

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// LineCoverage says which lines of a rule's own Rego were evaluated, and which were not. Lines
// count from 1 in the author's source. A line without an expression is in neither list.
type LineCoverage struct {
	RuleID              string
	Covered, NotCovered []int
}

// Coverage returns OPA's line coverage of each active rule whose condition is in Rego. It evaluates
// each condition under p, for every input, every reading of the input's resource and every name of the
// agent. An expression is covered once it is evaluated.
func Coverage(
	p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, inputs []*engine.Input,
	libraries ...engine.Library,
) ([]LineCoverage, error) {
	set, err := compileRules(rules, lists, libraries)
	if err != nil {
		return nil, err
	}
	var all []LineCoverage
	for _, r := range set.Rules() {
		if _, ok := r.RegoSource(); !ok {
			continue
		}
		lines, err := coverageOf(r, p, lists, inputs, librariesOf(set))
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Rule().ID, err)
		}
		lines.RuleID = r.Rule().ID
		all = append(all, lines)
	}
	return all, nil
}

func coverageOf(
	r *engine.CompiledRule, p *engine.ActionPolicy, lists condition.Lists, inputs []*engine.Input, l *Libraries,
) (LineCoverage, error) {
	source, _ := r.RegoSource()
	module, err := parseCondition(source)
	if err != nil {
		return LineCoverage{}, err
	}
	nameFile(module, packageClause.MatchString(source))
	modules := map[string]*ast.Module{entry: module}
	question, err := l.questionOf(newCompiler(sandbox(), conditionSchema()), source, module)
	if err != nil {
		return LineCoverage{}, err
	}
	covered := cover.New()
	question.tracer = covered
	for _, in := range inputs {
		texts, err := readingsAsked(in.Intent, r.Outcome())
		if err != nil {
			return LineCoverage{}, err
		}
		asked, err := inputsAsked(r, p, lists, in, texts)
		if err != nil {
			return LineCoverage{}, err
		}
		for _, input := range asked {
			// After an error, the expressions before the failing one count as covered.
			left := inSteps(new(condition.Work))
			left.lists, left.root = lists, listed
			_, _ = question.ask(input, left)
		}
	}
	report := covered.Report(modules).Files[entry]
	return LineCoverage{Covered: rows(report.Covered, nil), NotCovered: rows(report.NotCovered, report.Covered)}, nil
}

// nameFile gives expressions a file name, because OPA's coverage skips expressions without one. If
// heads is true, the author also wrote the heads of rules, and they get the name, too.
func nameFile(m *ast.Module, heads bool) {
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Head:
			if heads && x.Location != nil {
				x.Location.File = entry
			}
		case *ast.Expr:
			if x.Location != nil {
				x.Location.File = entry
			}
		}
		return false
	}).Walk(m)
}

// questionOf compiles the module of a condition once more, for a tool, with a compiler of its own.
func (l *Libraries) questionOf(c *ast.Compiler, source string, module *ast.Module) (*prepared, error) {
	imports, err := l.importedBy(module)
	if err != nil {
		return nil, err
	}
	if c, err = l.compileWith(c, module, imports); err != nil {
		return nil, err
	}
	question, err := prepare(c, module.Package.Path.Append(ast.StringTerm(entryOf(module))), patternsKept(len(source)))
	if err != nil {
		return nil, err
	}
	question.functions = newMeters(c, l.imports(imports), module).functions
	return question, nil
}

// inputsAsked returns the documents that r is asked about: one for each text of the resource and each
// name of the agent.
func inputsAsked(
	r *engine.CompiledRule, p *engine.ActionPolicy, lists condition.Lists, in *engine.Input, texts []string,
) (inputs []ast.Value, err error) {
	if err := checkListed(lists, r.Documents()); err != nil {
		return nil, err
	}
	for _, text := range texts {
		for _, name := range namesAsked(r, in) {
			input, err := conditionInput(&engine.RegoInput{Intent: in.Intent, DecidedAt: in.DecidedAt, AgentID: name,
				Agent: in.Agent, Resource: text, Policy: p, Lists: lists}, r.Texts())
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, input)
		}
	}
	return inputs, nil
}

// namesAsked returns the names of the agent that r is asked for.
func namesAsked(r *engine.CompiledRule, in *engine.Input) []string {
	if !r.AsksEachName() {
		return []string{in.Intent.AgentID}
	}
	names := in.ConditionNames()
	return names.Called()
}

// readingsAsked returns the readings of the resource that a rule with the given outcome looks at.
func readingsAsked(in *engine.Intent, outcome engine.Decision) (texts []string, err error) {
	readings, err := in.Readings()
	if err != nil {
		return nil, fmt.Errorf("reading the resource: %w", err)
	}
	for i := range readings.Len(outcome.Side()) {
		texts = append(texts, readings.At(outcome.Side(), i).Text)
	}
	return texts, nil
}

// rows returns the lines at which a range begins. It leaves out lines at which one of other begins.
func rows(ranges, other []cover.Range) (lines []int) {
	for _, r := range ranges {
		begins := func(o cover.Range) bool { return o.Start.Row == r.Start.Row }
		if !slices.ContainsFunc(other, begins) && !slices.Contains(lines, r.Start.Row) {
			lines = append(lines, r.Start.Row)
		}
	}
	slices.Sort(lines)
	return lines
}
