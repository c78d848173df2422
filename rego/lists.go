package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// listsFile is the name of the file that holds the lists of a policy.
const listsFile = "lists.rego"

// listsRule is the name of the rule that holds the lists of a policy. The rule maps names to sets.
const listsRule = "lists"

// addressesRule is the name of the rule that has the texts of lists with an @, their domains folded.
const addressesRule = "list_addresses"

// namesRule is the name of the rule that has the texts of lists, folded as names of agents are.
const namesRule = "list_names"

var (
	keyLists = ast.StringTerm("lists")
	// inputLists is the reference to the lists of a condition.
	inputLists = ast.InputRootRef.Append(keyLists)
)

// listsOf returns the names of the lists that compiled modules read below root, sorted. The names must be
// constants, because the lists of a rule are checked when the rule is stored.
func listsOf(c *ast.Compiler, root ast.Ref) ([]string, error) {
	var names []string
	var found condition.Error
	for _, m := range c.Modules {
		ast.WalkRefs(m, func(ref ast.Ref) bool {
			if !ref.HasPrefix(root) {
				return false
			}
			name, ok := ast.String(""), false
			if len(ref) > len(root) {
				name, ok = ref[len(root)].Value.(ast.String)
			}
			if err := condition.CheckListName(string(name)); !ok {
				found.Add(mistake(ref[0].Location, `%v must name one list, such as %[1]v.payees or %[1]v["payees"]`, root))
			} else if err != nil {
				found.Add(mistake(ref[0].Location, "%v", err))
			}
			names = append(names, string(name))
			return false
		})
	}
	slices.Sort(names)
	return slices.Compact(names), found.Err()
}

func listsTerm(lists condition.Lists, names []string) (*ast.Term, error) {
	members := make([][2]*ast.Term, 0, len(names))
	for _, name := range names {
		l := lists[name]
		if l == nil {
			return nil, fmt.Errorf("there is no list %s", name)
		}
		if !l.IsTexts() {
			return nil, fmt.Errorf("the list %s is a document, not texts: read %v.%[1]s", name, dataLists)
		}
		set, _ := l.Rendered(renderSet).(*ast.Term)
		members = append(members, ast.Item(ast.StringTerm(name), set))
	}
	return ast.ObjectTerm(members...), nil
}

func renderSet(items []string) any {
	terms := make([]*ast.Term, len(items))
	for i, s := range items {
		terms[i] = ast.StringTerm(s)
	}
	set := ast.SetTerm(terms...)
	set.Value.Hash() // compute the hash once: evaluations share the set
	return set
}

// inputOfLists writes the input's member lists for a condition in Rego that reads the named lists.
func inputOfLists(names []string) string {
	if len(names) == 0 {
		return ""
	}
	members := make([]string, len(names))
	for i, name := range names {
		members[i] = condition.Quote(name) + ": " + listsRule + "[" + condition.Quote(name) + "]"
	}
	return `, "lists": {` + strings.Join(members, ", ") + "}"
}

// writeLists writes the lists that the rules use as one file of package pkg. It returns no file if
// the rules use no list.
func writeLists(pkg string, set *engine.RuleSet) ([]File, error) {
	names := engine.ListNames((*engine.CompiledRule).Texts, set.Rules()...)
	if len(names) == 0 {
		return nil, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", pkg)
	for _, rule := range [...]struct {
		name string
		of   func(*condition.List) []string
	}{
		{listsRule, (*condition.List).Items}, {addressesRule, (*condition.List).Addresses},
		{namesRule, (*condition.List).Names},
	} {
		fmt.Fprintf(&b, "\n%s := {\n", rule.name)
		for _, name := range names {
			l := set.Lists()[name]
			if l == nil {
				return nil, fmt.Errorf("a rule looks in the list %s, which is not there", name)
			}
			if !l.IsTexts() {
				return nil, fmt.Errorf("a rule looks in the list %s, which is a document, not texts", name)
			}
			fmt.Fprintf(&b, "\t%s: %s,\n", condition.Quote(name), setOf(rule.of(l)))
		}
		b.WriteString("}\n")
	}
	file, err := formatted(listsFile, b.String())
	return []File{file}, err
}

// setOf writes a set of texts.
func setOf(texts []string) string {
	if len(texts) == 0 {
		return "set()"
	}
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = condition.Quote(s)
	}
	return "{" + strings.Join(quoted, ", ") + "}"
}
