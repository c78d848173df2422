package rego

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/format"

	"writ/engine"
	"writ/engine/condition"
)

// coreFile is the name of the main module that [LowerCore] writes.
const coreFile = "core.rego"

// LowerCore writes policies of one organization, with its rules, for an OPA that
// is writ's external evaluation core. Its one document, data.writ.core.result, is
//
//	{"decision": …, "reasons": […]}
//
// of the module that [Lower] writes of the policy in the input, whose version,
// content and active rules must be exactly these: input.digests.policy and
// input.digests.rules are [engine.Policy.Digest] and [engine.RuleSet.Digest].
// Of all else the document is undefined, so that an OPA that was not given the
// newest version decides nothing.
//
// Each module's package has these digests in its name. What an earlier export
// left in the same OPA, or one of another organization, changes nothing.
func LowerCore(policies []*engine.ActionPolicy, rules []engine.Rule) ([]File, error) {
	if len(policies) == 0 {
		return nil, errors.New("there is no policy")
	}
	set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition}).Digest()
	var files []File
	main := coreHeader
	for i, p := range policies {
		if err := fitsCore(p, policies[:i]); err != nil {
			return nil, err
		}
		digest := engine.DigestPolicy(p)
		pkg := corePackage(p.PolicyID, digest, set)
		modules, err := lower(pkg, p, rules)
		if err != nil {
			return nil, err
		}
		files = append(files, moduleFiles(p.PolicyID, modules)...)
		main += dispatch(p.PolicyID, digest, set, pkg)
	}
	source, err := format.Source(coreFile, []byte(main))
	if err != nil {
		return nil, fmt.Errorf("formatting the main module: %w", err)
	}
	files = slices.Insert(files, 0, File{Name: coreFile, Source: string(source)})
	if _, _, err := compileFiles(files, coreSchema()); err != nil {
		return nil, fmt.Errorf("compiling the modules: %w", err)
	}
	return files, nil
}

// fitsCore returns nil if p can be in a core beside earlier policies.
func fitsCore(p *engine.ActionPolicy, earlier []*engine.ActionPolicy) error {
	if err := p.Validate(); err != nil {
		return err
	}
	for _, other := range earlier {
		if other.PolicyID == p.PolicyID {
			return fmt.Errorf("policy %s is given twice", p.PolicyID)
		}
		if other.OrganizationID != p.OrganizationID {
			return fmt.Errorf("policies of the organizations %s and %s: rules are those of one", other.OrganizationID, p.OrganizationID)
		}
	}
	return nil
}

// moduleFiles names the modules of one policy, so that those of many fit into a
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

// corePackage returns the package of what is decided for a policy with rules.
func corePackage(policyID, policy, rules string) string {
	sum := sha256.Sum256([]byte(policy + " " + rules))
	return "writ.core." + strings.TrimPrefix(PackageName(policyID), policiesPackage) + "_" + hex.EncodeToString(sum[:16])
}

// coreHeader is no annotation, of which a package can have one: exports may stand
// beside each other in one OPA.
const coreHeader = `# writ's evaluation core: decides by the policies beside this module as writ would. Of an intent under any other
# version of a policy, or with other rules in force, it decides nothing.
package writ.core
`

// dispatch writes what the document is under one policy.
func dispatch(policyID, policy, rules, pkg string) string {
	return fmt.Sprintf(`
result := {"decision": data.%[4]s.decision, "reasons": data.%[4]s.reasons} if {
	input.policy.policy_id == %[1]s
	input.intent.policy_id == %[1]s
	input.digests.policy == %[2]s
	input.digests.rules == %[3]s
}
`, condition.Quote(policyID), condition.Quote(policy), condition.Quote(rules), pkg)
}

// coreSchema is the schema of the input of what [LowerCore] writes, as far as
// its modules may use it.
func coreSchema() map[string]any {
	s := querySchema()
	members, _ := s["properties"].(map[string]any)
	members["digests"] = closed(texts("policy", "rules"))
	return s
}
