package rego

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"writ/engine"
)

// rule adds the rule that is asked in the given place, counting from 1: a
// member [place, code, reason] of matching_rules, where it matches.
func (l *lowering) rule(place int, r *engine.CompiledRule) error {
	doc := r.Rule()
	name := fmt.Sprintf("rule_%d", place)
	head := ruleComment(r) + fmt.Sprintf("matching_rules contains [%d, %s, %s]",
		place, engine.Quote(string(r.Finding().Code)), engine.Quote(r.Finding().Reason))
	if source, ok := r.RegoSource(); ok {
		file, err := embed(l.pkg+".conditions."+name, name+".rego", source)
		if err != nil {
			return fmt.Errorf("rule %s: %w", doc.ID, err)
		}
		l.files = append(l.files, file)
		l.rules = append(l.rules, head+ask(r.Outcome(), "intent := object.union(input.intent, {\"resource\": reading.text})",
			fmt.Sprintf("data.%s.conditions.%s.%s with input as {\"intent\": intent, \"agent\": input.agent, \"policy\": %s}",
				l.pkg, name, entry, conditionPolicy)))
		return nil
	}
	text, err := r.Rego(name)
	if err != nil {
		return err
	}
	f, err := parseFunctions(name, text)
	if err != nil {
		return fmt.Errorf("rule %s: %w", doc.ID, err)
	}
	if r.Outcome() == engine.Allow && f.readsResource() && len(f.bodies) > 1 {
		l.rules = append(l.rules, head+ask(engine.Allow, name+"(reading)"), text)
		return nil
	}
	for i, b := range f.bodies {
		if i > 0 {
			_, rest, _ := strings.Cut(head, "matching_rules")
			head = "matching_rules" + rest
		}
		l.rules = append(l.rules, head+b.inline(r.Outcome()))
	}
	if f.helpers != "" {
		l.rules = append(l.rules, f.helpers)
	}
	return nil
}

// deniesAny reports whether one of rules denies.
func deniesAny(rules []*engine.CompiledRule) bool {
	return slices.ContainsFunc(rules, func(r *engine.CompiledRule) bool { return r.Outcome() == engine.Deny })
}

// certainty adds the place of a rule to certain_rules where the rule matches
// without an error, if its condition can be one.
func (l *lowering) certainty(place int, r *engine.CompiledRule) error {
	name := fmt.Sprintf("rule_%d_certain", place)
	text, err := r.RegoCertain(name)
	if text == "" || err != nil {
		return err
	}
	f, err := parseFunctions(name, text)
	if err != nil {
		return fmt.Errorf("rule %s: %w", r.Rule().ID, err)
	}
	l.errable = append(l.errable, strconv.Itoa(place))
	for _, b := range f.bodies {
		l.rules = append(l.rules, fmt.Sprintf("certain_rules contains %d", place)+b.inline(r.Outcome()))
	}
	if f.helpers != "" {
		l.rules = append(l.rules, f.helpers)
	}
	return nil
}

// conditionPolicy is the policy as conditions see it, of which an input may say
// more.
const conditionPolicy = `object.filter(input.policy, ["agent_id", "organization_id", "policy_id", "status", "version"])`

// ask is the body that asks exprs of the readings of the resource: of every
// normalised one where the rule allows, else of any.
func ask(outcome engine.Decision, exprs ...string) string {
	return body{resource: exprs}.inline(outcome)
}

// ruleComment says which rule it is, for readers.
func ruleComment(r *engine.CompiledRule) string {
	doc := r.Rule()
	var b strings.Builder
	fmt.Fprintf(&b, "# METADATA\n# title: %s\n", engine.Quote(doc.Name))
	if doc.Description != "" {
		fmt.Fprintf(&b, "# description: %s\n", engine.Quote(doc.Description))
	}
	fmt.Fprintf(&b, "# custom:\n#   rule_id: %s\n#   priority: %d\n#   decision: %s\n", engine.Quote(doc.ID), doc.Priority, r.Outcome())
	return b.String()
}

// functions are a rendered condition, taken apart.
type functions struct {
	bodies []body
	// helpers are the functions that the bodies call.
	helpers string
}

// body is one body of a condition's function, by lines.
type body struct {
	// general are the expressions that do not read the resource.
	general, resource []string
}

func (f functions) readsResource() bool {
	for _, b := range f.bodies {
		if len(b.resource) > 0 {
			return true
		}
	}
	return false
}

// parseFunctions takes apart what [engine.CompiledRule.Rego] wrote: bodies
// "name(reading) if {", one expression a line, "}", or "name(_) := true".
func parseFunctions(name, text string) (functions, error) {
	var f functions
	var helpers []string
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		head, last := lines[0], len(lines)-1
		switch {
		case !strings.HasPrefix(head, name+"("):
			helpers = append(helpers, part)
		case head == name+"(_) := true" && last == 0:
			f.bodies = append(f.bodies, body{general: []string{"true"}})
		case strings.HasSuffix(head, ") if {") && lines[last] == "}":
			f.bodies = append(f.bodies, parseBody(lines[1:last]))
		default:
			return f, fmt.Errorf("the function %s is not understood: %s", name, head)
		}
	}
	f.helpers = strings.Join(helpers, "\n\n")
	return f, nil
}

func parseBody(lines []string) body {
	var b body
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if mentionsResource(line) {
			b.resource = append(b.resource, line)
		} else {
			b.general = append(b.general, line)
		}
	}
	return b
}

// mentionsResource reports whether the expression has the variable reading.
func mentionsResource(expr string) bool {
	found := false
	// The parser of bodies takes `not contains(x, y)` for the head of a rule.
	parsed, err := ast.ParseModuleWithOpts("", "package p\n\nr if {\n"+expr+"\n}", parserOptions())
	if err != nil {
		return true
	}
	ast.WalkVars(parsed, func(v ast.Var) bool {
		found = found || v == "reading"
		return false
	})
	return found
}

// inline is the body with the readings of the resource in it. What does not
// depend on them comes first, where OPA's index of rules sees it.
func (b body) inline(outcome engine.Decision) string {
	var out strings.Builder
	out.WriteString(" if {\n")
	for _, line := range b.general {
		out.WriteString("\t" + line + "\n")
	}
	switch {
	case len(b.resource) == 0:
	case outcome == engine.Allow:
		out.WriteString("\tevery reading in allowed_readings {\n\t\t" + strings.Join(b.resource, "\n\t\t") + "\n\t}\n")
	default:
		out.WriteString("\tsome reading in blocked_readings\n\t" + strings.Join(b.resource, "\n\t") + "\n")
	}
	return out.String() + "}"
}

// embed writes the source of a condition as a module of package pkg.
func embed(pkg, name, source string) (File, error) {
	m, err := parseCondition(source)
	if err != nil {
		return File{}, err
	}
	if !packageClause.MatchString(source) {
		out, err := format.Source(name, []byte("package "+pkg+"\n\n"+entry+" if {\n"+source+"\n}\n"))
		if err != nil {
			return File{}, fmt.Errorf("formatting %s: %w", name, err)
		}
		return File{Name: name, Source: string(out)}, nil
	}
	to, err := ast.ParseRef("data." + pkg)
	if err != nil {
		return File{}, fmt.Errorf("naming the package of %s: %w", name, err)
	}
	out, err := move(m, to)
	if err != nil {
		return File{}, fmt.Errorf("moving %s: %w", name, err)
	}
	return File{Name: name, Source: string(out)}, nil
}

// move makes m the package at to, with its references to itself.
func move(m *ast.Module, to ast.Ref) ([]byte, error) {
	from := m.Package.Path.Copy()
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok && ref.HasPrefix(from) {
			t.Value = append(to.Copy(), ref[len(from):]...)
		}
		return false
	})
	m.Package.Path = to
	return format.Ast(m)
}
