package rego

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// rule adds the definitions of a rule. If the rule matches, [place, code, reason] is a member of
// matching_rules. place is the rule's place in deciding order, counted from 1.
func (l *lowering) rule(place int, r *engine.CompiledRule) error {
	doc := r.Rule()
	name := fmt.Sprintf("rule_%d", place)
	head := ruleComment(r) + fmt.Sprintf("matching_rules contains [%d, %s, %s]",
		place, condition.Quote(string(r.Finding().Code)), condition.Quote(r.Finding().Reason))
	source, inRego := r.RegoSource()
	l.timed = l.timed || strings.Contains(source, decidedAt) || r.Matches().Reads(condition.DecidedAt) ||
		r.Certain().Reads(condition.DecidedAt)
	if inRego {
		name, err := l.moduleName(&doc)
		if err != nil {
			return err
		}
		library, items := "", ""
		if usesItems(source, l.libraries) {
			library = l.pkg + libraryPackage
		}
		if library != "" || l.libraries.callItems(r.Libraries()) {
			items = inputOfItems
			l.readsItems, l.readsValues = true, true
		}
		l.timed = l.timed || l.libraries.readTime(r.Libraries())
		said, all, err := l.libraries.exported(source, l.left)
		if err != nil {
			return fmt.Errorf("rule %s: %w", doc.ID, err)
		}
		pkg, set := l.pkg+".conditions."+name, reasonEntry
		file, err := l.embed(pkg, name+".rego", source, library, func(m *ast.Module) {
			if len(said) > 0 && !all {
				set = keep(m, source, said)
			}
		})
		if err != nil {
			return fmt.Errorf("rule %s: %w", doc.ID, err)
		}
		l.files = append(l.files, file)
		intent, agent := `"resource": reading.text`, `object.filter(input.agent, ["id", "status"])`
		if r.AsksEachName() {
			intent += `, "agent_id": reading.agent`
			agent = `{"id": reading.agent, "status": input.agent.status}`
		}
		intent = "intent := object.union(input.intent, {" + intent + "})"
		input := fmt.Sprintf("{\"intent\": intent, \"agent\": %s, "+
			"\"policy\": %s, \"decided_at\": input.decided_at%s%s}",
			agent, conditionPolicy, inputOfLists(r.Texts()), items)
		asks := asksEntry(pkg, source) + " with input as "
		l.rules = append(l.rules, head+inline([]line{
			{text: intent, param: true},
			{text: asks + input, param: true},
		}, l.asked(r)))
		if len(said) > 0 {
			l.messages(place, r, []string{intent, "asked := " + input, asks + "asked"}, "data."+pkg+"."+set)
		}
		return nil
	}
	f := render(r.Matches(), name, r.Outcome().Side())
	l.readsNames = l.readsNames || f.readsNames
	l.readsValues = l.readsValues || f.readsValues
	if r.Outcome() == engine.Allow && f.readsResource() && len(f.bodies) > 1 {
		asked := []line{{text: name + "(reading)", param: true}}
		l.rules = append(l.rules, head+inline(asked, everyAllowed), f.String())
		return nil
	}
	for i, b := range f.bodies {
		if i > 0 {
			_, rest, _ := strings.Cut(head, "matching_rules")
			head = "matching_rules" + rest
		}
		l.rules = append(l.rules, head+inline(b, l.asked(r)))
	}
	l.rules = append(l.rules, f.helpers...)
	return nil
}

// asksEntry returns an expression that the condition in package pkg matches.
func asksEntry(pkg, source string) string {
	m, err := parseCondition(source)
	if err != nil {
		return "false" // cannot happen: the source has compiled
	}
	name := entryOf(m)
	if isSet(rulesNamed(m, name)[0]) {
		return fmt.Sprintf("count(data.%s.%s) > 0", pkg, name)
	}
	return fmt.Sprintf("data.%s.%s", pkg, name)
}

func deniesAny(rules []*engine.CompiledRule) bool {
	return slices.ContainsFunc(rules, func(r *engine.CompiledRule) bool { return r.Outcome() == engine.Deny })
}

// certainty adds a definition of certain_rules for a rule whose condition can be an error: its
// place is a member if the rule matches without an error.
func (l *lowering) certainty(place int, r *engine.CompiledRule) {
	if _, ok := r.RegoSource(); ok || r.Outcome() != engine.ApprovalRequired {
		return
	}
	name := fmt.Sprintf("rule_%d_certain", place)
	f := render(r.Certain(), name, r.Outcome().Side())
	l.readsNames = l.readsNames || f.readsNames
	if f.String() == render(r.Matches(), name, r.Outcome().Side()).String() {
		return
	}
	l.errable = append(l.errable, strconv.Itoa(place))
	for _, b := range f.bodies {
		l.rules = append(l.rules, fmt.Sprintf("certain_rules contains %d", place)+inline(b, l.asked(r)))
	}
	l.rules = append(l.rules, f.helpers...)
}

// conditionPolicy is an expression for the policy with the members that conditions see. The input's
// policy may have more members.
const conditionPolicy = `object.filter(input.policy, ["agent_id", "organization_id", "policy_id", "status", "version"])`

// decidedAt is the input's member with the time of the decision.
var decidedAt = condition.FieldOf(condition.DecidedAt).Path()

// ruleComment returns the annotation of a rule.
func ruleComment(r *engine.CompiledRule) string {
	doc := r.Rule()
	var b strings.Builder
	fmt.Fprintf(&b, "# METADATA\n# title: %s\n", condition.Quote(doc.Name))
	if doc.Description != "" {
		fmt.Fprintf(&b, "# description: %s\n", condition.Quote(doc.Description))
	}
	fmt.Fprintf(&b, "# custom:\n#   rule_id: %s\n#   priority: %d\n#   decision: %s\n", condition.Quote(doc.ID),
		doc.Priority, r.Outcome())
	return b.String()
}

// asked returns the first expression about the readings that a rule asks. An allow holds if it holds
// for every normalised reading. Any other rule holds if it holds for one reading, for one name of the
// agent if it is asked for each.
func (l *lowering) asked(r *engine.CompiledRule) string {
	switch {
	case r.Outcome() == engine.Allow:
		return everyAllowed
	case r.AsksEachName():
		l.readsNames, l.asksNames = true, true
		return someNamed
	}
	return someBlocked
}

// inline returns the body of a rule that asks the readings of the resource. Expressions that do not
// depend on readings come first, because OPA's index of rules looks at them there.
func inline(lines []line, asked string) string {
	var general, resource []string
	for _, l := range lines {
		if l.param {
			resource = append(resource, l.text)
		} else {
			general = append(general, l.text)
		}
	}
	var out strings.Builder
	out.WriteString(" if {\n")
	for _, text := range general {
		out.WriteString("\t" + text + "\n")
	}
	switch {
	case len(resource) == 0:
	case asked == everyAllowed:
		out.WriteString("\t" + asked + "\n\t\t" + strings.Join(resource, "\n\t\t") + "\n\t}\n")
	default:
		out.WriteString("\t" + asked + "\n\t" + strings.Join(resource, "\n\t") + "\n")
	}
	return out.String() + "}"
}

// embed writes a condition's source as a module of package pkg. It imports library unless that is "".
// change may add rules to the module.
func (l *lowering) embed(pkg, name, source, library string, change func(*ast.Module)) (File, error) {
	m, err := parseCondition(source)
	if err != nil {
		return File{}, err
	}
	if !packageClause.MatchString(source) {
		imports := ""
		if library != "" {
			imports = "import data." + library + " as " + libraryAlias + "\n\n"
		}
		file, err := formatted(name, "package "+pkg+"\n\n"+imports+entry+" if {\n"+source+"\n}\n")
		names, _, _ := refersTo(m)
		if err != nil || len(names) == 0 && !strings.Contains(source, ast.Print.Name) && !readsDocuments(m) {
			return file, err
		}
		if m, err = ast.ParseModuleWithOpts("", file.Source, parserOptions()); err != nil {
			return File{}, explain(err)
		}
	} else if library != "" {
		importItems(m, library)
	}
	change(m)
	if !isLibrary(m) {
		redirect(m, libraries, l.librariesAt())
	}
	if !ownsDataLists(m) {
		nameLists(m)
		redirect(m, dataLists, documentsAt(l.pkg))
	}
	out, err := move(m, ast.MustParseRef("data."+pkg))
	if err != nil {
		return File{}, fmt.Errorf("moving %s: %w", name, err)
	}
	return File{Name: name, Source: string(out)}, nil
}

// importItems makes m import library, in which writ.items is.
func importItems(m *ast.Module, library string) {
	m.Imports = append(m.Imports, &ast.Import{
		Path: ast.NewTerm(ast.MustParseRef("data." + library)), Alias: libraryAlias, Location: m.Package.Location,
	})
}

// move changes the package of m to the package at to. It also changes m's references to itself, and
// removes its prints.
func move(m *ast.Module, to ast.Ref) ([]byte, error) {
	stripPrints(m)
	redirect(m, m.Package.Path.Copy(), to)
	m.Package.Path = to
	return format.Ast(m)
}

// redirect changes the references of m to from and below into references to to and below.
func redirect(m *ast.Module, from, to ast.Ref) {
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if ref, ok := t.Value.(ast.Ref); ok && ref.HasPrefix(from) {
			t.Value = append(to.Copy(), ref[len(from):]...)
		}
		return false
	})
}
