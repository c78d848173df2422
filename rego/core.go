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

// LowerCore writes policies of one organization, with its rules, for an OPA that
// is writ's external evaluation core. Its one document, data.writ.core.result, is
//
//	{"decision": …, "reasons": […], "policy_version": …, "rules_revision": …}
//
// of the module that [Lower] writes of the policy in the input. input.policy and input.rules must
// be what was exported, member by member: an OPA that holds an older or another export decides
// nothing, even if its version numbers are the same. Members that decide nothing may differ: the
// policy's updated_at, and of rules all but name, condition, action, priority and order.
// input.semantics must be [engine.Semantics].
//
// Rules that look in lists are an error: the input does not say which lists are in force.
//
// The names of packages contain a SHA-256 of the export, so that an earlier export, or one of
// another organization, has no effect in the same OPA.
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
		modules, err := lower(pkg, p, rules, nil)
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

// fitsCore returns an error unless p can be in a core beside earlier policies.
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

// moduleFiles names the modules of one policy, so that the files of many policies fit into a
// directory.
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

// rulesHeld returns the members that decide of the active rules, in deciding order.
func rulesHeld(rules []engine.Rule) (string, error) {
	list := [][]any{}
	for _, compiled := range engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition}).Rules() {
		r := compiled.Rule()
		list = append(list, []any{r.Name, r.Condition, r.Action, r.Priority})
	}
	return literal(list)
}

// literal returns a value in Rego: its JSON, with byte order marks escaped.
func literal(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encoding what is exported: %w", err)
	}
	return strings.ReplaceAll(string(text), "\ufeff", `\ufeff`), nil
}

// nameOf returns the part of a package name that identifies an export.
func nameOf(literals ...string) string {
	sum := sha256.Sum256([]byte(fmt.Sprint(engine.Semantics, literals)))
	return hex.EncodeToString(sum[:16])
}

// The main module is coreHeader, coreRules, and a coreResult for each policy. coreHeader is a
// plain comment. A package can have one annotation, and one OPA may hold several exports.
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

// coreSchema is the schema of the input of what [LowerCore] writes, as far as
// its modules may use it.
func coreSchema() map[string]any {
	s := querySchema()
	members, _ := s["properties"].(map[string]any)
	members["policy"], members["rules"] = map[string]any{}, map[string]any{}
	members["rules_revision"], members["semantics"] = typed("integer"), typed("integer")
	return s
}
