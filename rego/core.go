package rego

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"writ/engine"
	"writ/engine/condition"
)

// coreFile is the name of the main module that [LowerCore] writes.
const coreFile = "core.rego"

// LowerCore writes policies and rules of one organization as modules for an OPA that is writ's
// external evaluation core. They define one document, data.writ.core.result:
//
//	{"decision": …, "reasons": […], "policy_version": …, "rules_revision": …}
//
// Its decision and reasons come from the module that [Lower] writes for the policy of the intent.
// input.policy and input.rules must equal the exported policy and rules, member by member. An OPA
// that holds an older or another export decides nothing, even if its version numbers are the same.
// Only members without an effect on a decision may differ: the policy's updated_at, and all members
// of a rule except name, condition, action, priority and its place in the order. input.semantics
// must be [engine.Semantics].
//
// A rule that looks in a list or imports a library is an error, because the input does not say which
// lists and libraries are in force.
//
// The names of packages contain a SHA-256 of the export. So an earlier export in the same OPA, or an
// export of another organization, has no effect.
func LowerCore(policies []*engine.ActionPolicy, rules []engine.Rule) ([]File, error) {
	if len(policies) == 0 {
		return nil, errors.New("there is no policy")
	}
	ruled, err := rulesHeld(rules)
	if err != nil {
		return nil, err
	}
	var files []File
	set := "rules_" + nameOf(ruled)
	main := coreHeader + fmt.Sprintf(coreRules, set, ruled)
	for i, p := range policies {
		if err := fitsCore(p, policies[:i]); err != nil {
			return nil, err
		}
		held, err := literal(p)
		if err != nil {
			return nil, err
		}
		pkg := "writ.core." + strings.TrimPrefix(PackageName(p.PolicyID), policiesPackage) + "_" + nameOf(held, ruled)
		modules, err := lower(pkg, p, rules, nil, nil)
		if err != nil {
			return nil, err
		}
		files = append(files, moduleFiles(p.PolicyID, modules)...)
		main += fmt.Sprintf(coreResult, pkg, condition.Quote(p.PolicyID), engine.Semantics, held, set)
	}
	file, err := formatted(coreFile, main)
	if err != nil {
		return nil, err
	}
	files = slices.Insert(files, 0, file)
	if _, _, err := compileFiles(files, coreSchema()); err != nil {
		return nil, fmt.Errorf("compiling the modules: %w", err)
	}
	return files, nil
}

// fitsCore returns an error if p cannot be in one core with the earlier policies.
func fitsCore(p *engine.ActionPolicy, earlier []*engine.ActionPolicy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for _, other := range earlier {
		if other.PolicyID == p.PolicyID {
			return fmt.Errorf("policy %s is given twice", p.PolicyID)
		}
		if other.OrganizationID != p.OrganizationID {
			return fmt.Errorf("policies of the organizations %s and %s: rules are those of one", other.OrganizationID,
				p.OrganizationID)
		}
	}
	return nil
}

// moduleFiles puts the policy's ID into the names of its files. So the files of many policies fit
// into one directory.
func moduleFiles(policyID string, modules []File) []File {
	files := make([]File, len(modules))
	for i, m := range modules {
		files[i] = File{Name: policyID + "." + m.Name, Source: m.Source}
		if m.Name == mainFile {
			files[i].Name = policyID + ".rego"
		}
	}
	return files
}

// rulesHeld returns the active rules in deciding order, with only the members that affect a
// decision.
func rulesHeld(rules []engine.Rule) (string, error) {
	list := [][]any{}
	for _, compiled := range engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition}).Rules() {
		r := compiled.Rule()
		list = append(list, []any{r.Name, r.Condition, r.Action, r.Priority})
	}
	return literal(list)
}

// literal returns v in Rego: as JSON in which byte order marks are escaped.
func literal(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encoding what is exported: %w", err)
	}
	return strings.ReplaceAll(string(text), "\ufeff", `\ufeff`), nil
}

// nameOf returns the end of a package name, a hash that identifies an export.
func nameOf(literals ...string) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(engine.Semantics, literals)))
	return hex.EncodeToString(sum[:16])
}

// The main module consists of coreHeader, coreRules, and one coreResult for each policy. coreHeader
// begins with a plain comment, not an annotation. A package can have only one annotation, and one
// OPA may hold several exports.
const (
	coreHeader = `# writ's evaluation core: decides by the policies beside this module as writ would. Of an intent under any other
# version of a policy, or with other rules in force, it decides nothing.
package writ.core

decides(policy) := {name: value | some name, value in policy; name != "updated_at"; value != []}
`
	coreRules = `
%[1]s if [[r.name, r.condition, r.action, r.priority] | some r in input.rules] == %[2]s
`
	coreResult = `
result := {
	"decision": data.%[1]s.decision, "reasons": data.%[1]s.reasons,
	"policy_version": input.policy.version, "rules_revision": input.rules_revision,
} if {
	input.intent.policy_id == %[2]s
	input.semantics == %[3]d
	decides(input.policy) == decides(%[4]s)
	%[5]s
}
`
)

// coreSchema is the schema of the input of the modules that [LowerCore] writes. It has the members
// that these modules may use.
func coreSchema() map[string]any {
	s := querySchema()
	members, _ := s["properties"].(map[string]any)
	members["policy"], members["rules"] = map[string]any{}, map[string]any{}
	members["rules_revision"], members["semantics"] = typed("integer"), typed("integer")
	return s
}
