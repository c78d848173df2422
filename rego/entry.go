package rego

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// entries are the names of the rules that can decide a condition. A module defines one of them:
//
//	match if { … }             a boolean
//	deny if { … }              a boolean, in a rule whose action denies
//	deny contains msg if { … } texts, in a rule whose action denies: it matches if there is one
//	allow if { … }             a boolean, in a rule whose action allows
//
// If a stored module defines several, the first of this list decides.
var entries = []string{entry, denyEntry, allowEntry}

const (
	denyEntry  = "deny"
	allowEntry = "allow"
)

// rulesNamed returns the rules of m that are called name, or that begin with it, such as name.x.
func rulesNamed(m *ast.Module, name string) (rules []*ast.Rule) {
	for _, r := range m.Rules {
		if r.Head.Ref()[0].Value.Compare(ast.Var(name)) == 0 {
			rules = append(rules, r)
		}
	}
	return rules
}

// entryOf returns the name of the rule that decides a condition.
func entryOf(m *ast.Module) string {
	for _, name := range entries {
		if len(rulesNamed(m, name)) > 0 {
			return name
		}
	}
	return entry
}

// isSet reports whether r is one of the rules of a set, such as `deny contains msg`.
func isSet(r *ast.Rule) bool { return r.Head.RuleKind() == ast.MultiValue && len(r.Head.Ref()) == 1 }

// checkEntry refuses a module that does not define the rule called name, or whose rule may be neither a
// boolean nor, if it is called deny, a set of texts.
func checkEntry(c *ast.Compiler, m *ast.Module, name string, ref ast.Ref) error {
	rules := c.GetRulesExact(ref)
	if len(rules) == 0 {
		at := m.Package.Loc()
		if len(m.Rules) > 0 {
			at = m.Rules[0].Loc()
		}
		return refuse(at, "the module defines no %s: write `%s if { … }`", strings.Join(entries, ", "), name)
	}
	head, tpe := rules[0].Head, c.TypeEnv.GetByRef(ref)
	switch set, ok := tpe.(*types.Set); {
	case len(head.Args) == 0 && ok && name == denyEntry:
		if !isText(set.Of()) {
			return refuse(rules[0].Loc(), "%s holds %s, not texts: write `%[1]s contains sprintf(\"…\", […]) if { … }`", name,
				types.Sprint(set.Of()))
		}
	case len(head.Args) > 0 || types.Compare(tpe, types.B) != 0:
		return refuse(rules[0].Loc(), "%s must be a boolean, it is %s: write %s", name, describe(head, tpe),
			written(name))
	}
	return nil
}

// isText reports whether a value of type t is a text, or of a type that only its value shows.
func isText(t types.Type) bool {
	return types.Compare(t, types.S) == 0 || types.Compare(t, types.A) == 0
}

// written says how to write an entry.
func written(name string) string {
	if name == denyEntry {
		return "`deny if { … }`, or `deny contains msg if { … }` with texts"
	}
	return "`" + name + " if { … }`"
}

func describe(head *ast.Head, tpe types.Type) string {
	if len(head.Args) > 0 {
		return "a function"
	}
	return types.Sprint(tpe)
}

// severalEntries returns the mistake of a module that defines several entries.
func severalEntries(m *ast.Module, found *condition.Error) {
	decides := entryOf(m)
	for _, name := range entries[slices.Index(entries, decides)+1:] {
		if rules := rulesNamed(m, name); len(rules) > 0 {
			found.Add(mistake(rules[0].Loc(), "the module defines %s beside %s, and only one can decide: give "+
				"%[1]s another name, or make it a rule of its own", name, decides))
		}
	}
}

// Fits implements [engine.RegoCondition].
func (c *sandboxed) Fits(outcome engine.Decision) error {
	name := c.entry()
	var want engine.Decision
	switch name {
	case denyEntry:
		want = engine.Deny
	case allowEntry:
		want = engine.Allow
	}
	if want == 0 || want == outcome {
		return nil
	}
	m, err := parseCondition(c.source)
	if err != nil {
		return err // cannot happen: the source has compiled
	}
	r, instead := rulesNamed(m, name)[0], "write `match if { … }`"
	if isSet(r) {
		instead += ", and `reason contains msg if { … }` for the texts"
	}
	return refuse(r.Loc(), "%s is for a rule whose action is %v, and this one's is %v: %s", name, want, outcome,
		instead)
}

// entry returns the name of the rule that decides.
func (c *sandboxed) entry() string {
	name, _ := c.ref[len(c.ref)-1].Value.(ast.String)
	return string(name)
}
