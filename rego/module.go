package rego

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// NameOf returns a name as the part of a Rego name: in lower case, and each run of other characters
// than letters and digits of ASCII as one underscore.
func NameOf(s string) string { return notNames.ReplaceAllString(strings.ToLower(s), "_") }

var notNames = regexp.MustCompile(`[^a-z0-9]+`)

// PackageOf returns the package of a module, such as "team.payments". It reports false if source
// is no module: it is the body of a rule, or it has a syntax error.
func PackageOf(source string) (name string, ok bool) {
	if !packageClause.MatchString(source) {
		return "", false
	}
	m, err := ast.ParseModuleWithOpts("", source, parserOptions())
	if err != nil || m == nil {
		return "", false
	}
	return packageOf(m), true
}

// packageOf returns the package of a module, such as "team.payments".
func packageOf(m *ast.Module) string {
	return strings.TrimPrefix(m.Package.Path.String(), ast.DefaultRootDocument.String()+".")
}

// moduleName returns the name of the module of a rule in Rego. It is made of the rule's id, or of its
// name if it has no id. So it stays if the rule's priority or another rule changes. Two rules with
// one name are an error.
func (l *lowering) moduleName(r *engine.Rule) (string, error) {
	name := "rule_" + NameOf(cmp.Or(r.ID, r.Name))
	if other, taken := l.modules[name]; taken {
		return "", fmt.Errorf("the rules %q and %q would both be the module %s: give each an id, or another name",
			other,
			r.Name, name)
	}
	if l.modules == nil {
		l.modules = make(map[string]string)
	}
	l.modules[name] = r.Name
	return name, nil
}

// The packages of the aliases that tests can use. They stay, while the package of a policy has its
// id, and the place of a rule in deciding order changes with priorities.
const (
	policyAlias = "writ.policy"
	rulesAlias  = "writ.rules"
	inputAlias  = "writ.input"
)

// aliasPrefix begins the names of their files.
const aliasPrefix = "alias_"

// ruleAlias is the module of a rule. If the input is not what writ makes of the intent, nobody knows
// whether the rule matches. So match has two values then, which is an error in every OPA: a test that
// wants a match fails, and so does a test that wants none.
const ruleAlias = `package %[1]s[%[2]s]

match if {
	data.%[3]s.intent_read
	some rule in data.%[3]s.matching_rules
	rule[0] == %[4]d
}

# The input is not what writ makes of the intent: two values are an error.
match := unknown if {
	not data.%[3]s.intent_read
	some unknown in ["check.error", "resource.unreadable"]
}
`

// aliases returns modules that give a policy and its active rules names for tests. The document
// data.writ.policy has the entry points of [Lower]. The document data.writ.rules.<name>.match says
// whether a rule matches, whether it decides or not. It is an error if the module cannot know. name is
// [NameOf] the rule's name. Two rules with one such name are an error.
func aliases(p *engine.ActionPolicy, set *engine.RuleSet) ([]File, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", policyAlias)
	for _, name := range []string{"decision", "allow", "codes", "reasons"} {
		fmt.Fprintf(&b, "\n%s := data.%s.%s\n", name, PackageName(p.PolicyID), name)
	}
	file, err := formatted(aliasPrefix+"policy.rego", b.String())
	if err != nil {
		return nil, err
	}
	files, taken := []File{file}, make(map[string]string)
	for i, r := range set.Rules() {
		name, title := NameOf(r.Rule().Name), r.Rule().Name
		if other, found := taken[name]; found {
			return nil, fmt.Errorf("the rules %q and %q would both be data.%s.%s: give one of them another name", other,
				title, rulesAlias, name)
		}
		taken[name] = title
		file, err := formatted(aliasPrefix+"rule_"+name+".rego", fmt.Sprintf(
			ruleAlias, rulesAlias, condition.Quote(name), PackageName(p.PolicyID), i+1))
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
