package rego

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// coreFile is the name of the main module that [LowerCore] writes.
const coreFile = "core.rego"

// LowerCore writes policies and rules of one organization as modules for an OPA that is writ's
// external evaluation core. They define one document, data.writ.core.result:
//
//	{"decision": …, "reasons": […], "policy_version": …, "rules_revision": …}
//
// Its decision and reasons come from the module that [Lower] writes for the policy of the intent.
// input.digest must be the digest of the exported policy, rules, lists and libraries: see [engine.Digest]. An OPA
// that holds an older or another export decides nothing, even if its version numbers are the same.
//
// The names of packages contain a part of the digest. So an earlier export in the same OPA, or an export
// of another organization, has no effect.
func LowerCore(
	policies []*engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries ...engine.Library,
) ([]File, error) {
	if len(policies) == 0 {
		return nil, errors.New("there is no policy")
	}
	set, err := compileRules(rules, lists, libraries)
	if err != nil {
		return nil, err
	}
	var files []File
	main := coreHeader
	for i, p := range policies {
		if err := fitsCore(p, policies[:i]); err != nil {
			return nil, err
		}
		digest, err := engine.Digest(p, set)
		if err != nil {
			return nil, fmt.Errorf("policy %s: %w", p.PolicyID, err)
		}
		name := strings.TrimPrefix(digest, "sha256:")[:32]
		pkg := "writ.core." + strings.TrimPrefix(PackageName(p.PolicyID), policiesPackage) + "_" + name
		modules, set, err := lower(pkg, heldAll, p, rules, lists, libraries)
		if err != nil {
			return nil, err
		}
		documents, err := writeDocuments(pkg, set)
		if err != nil {
			return nil, err
		}
		modules = append(modules, documents...)
		files = append(files, moduleFiles(p.PolicyID, modules)...)
		main += fmt.Sprintf(coreResult, pkg, condition.Quote(p.PolicyID), condition.Quote(digest))
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

// The main module consists of coreHeader and one coreResult for each policy. coreHeader begins with a
// plain comment, not an annotation. A package can have only one annotation, and one OPA may hold
// several exports.
const (
	coreHeader = `# writ's evaluation core: decides by the policies beside this module as writ would. Of an intent under any other
# version of a policy, or with other rules or lists in force, it decides nothing.
package writ.core
`
	coreResult = `
result := {
	"decision": data.%[1]s.decision, "reasons": data.%[1]s.reasons,
	"policy_version": input.policy.version, "rules_revision": input.rules_revision,
} if {
	input.intent.policy_id == %[2]s
	input.digest == %[3]s
}
`
)

// coreSchema is the schema of the input of the modules that [LowerCore] writes. It has the members
// that these modules may use.
func coreSchema() map[string]any {
	s := querySchema()
	members, _ := s["properties"].(map[string]any)
	members["policy"], members["rules_revision"], members["digest"] = map[string]any{}, typed("integer"),
		typed("string")
	return s
}
