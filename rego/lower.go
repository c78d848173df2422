package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/format"

	"writ/engine"
	"writ/engine/condition"
)

// File is one Rego source of a lowered policy.
type File struct {
	// Name is a file name without a directory, such as "policy.rego".
	Name   string
	Source string
}

// mainFile is the name of the file that holds the policy's own module.
const mainFile = "policy.rego"

const policiesPackage = "writ.policies."

// PackageName returns the package of a policy's module.
func PackageName(policyID string) string {
	return policiesPackage + "p_" + nameIn(policyID)
}

// nameIn returns s as the end of a name in Rego.
func nameIn(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
}

// Lower writes a policy version and the active ones of rules as Rego v1, clean under `opa fmt`.
// The first file is the policy's module; A rule whose condition is written in Rego adds a file
// with its own module. If rules look in lists, the second file holds these lists, in the same
// package.
//
// The module's package is [PackageName]. Its entry points are
//
//	decision   "allow", "deny" or "approval_required"
//	allow      whether decision is "allow"
//	codes      the set of the codes of all findings
//	reasons    one sentence for each, in check order
//
// and its input is what [Input] makes:
//
//	intent                      the ActionIntent
//	agent                       {"id": …, "status": "active" | "disabled" | "unregistered"}
//	usage                       {"exceeded": bool}
//	require_registered_agents   bool
//	readings                    {"blocked": […], "allowed": […], "stops": "" | "list" | "address"}:
//	                            what an allowance has to cover and a block looks at,
//	                            each {"text", "readers": […]}; where it is absent or
//	                            empty the decision is deny, resource.unreadable
//	policy                      {"policy_id", "version", "organization_id", "agent_id",
//	                            "status"}
//	counters                    what each counter of the rules has come to, by its key; null
//	                            where it does not count the intent. Only where there are any
//
// If a member is absent or of another type, the decision is deny, check.error. Only the intent's
// cost and metadata may be absent.
//
// It decides as [engine.Evaluate] does, but for errors in a rule's own Rego. The engine takes
// such an error for a match if that tightens. [Query] has no decision then. An OPA without its
// strict mode for errors makes the value undefined.
//
// Conditions in CEL without a rendering in Rego are an [*UnrenderedError]. A missing list is an
// error.
func Lower(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) ([]File, error) {
	return lower(PackageName(p.PolicyID), p, rules, lists)
}

func lower(pkg string, p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) ([]File, error) {
	set, err := compileRules(rules, lists)
	if err != nil {
		return nil, err
	}
	if err := unrendered(rules, set); err != nil {
		return nil, err
	}
	files, err := writeLists(pkg, set)
	if err != nil {
		return nil, err
	}
	l := lowering{policy: p, pkg: pkg, counters: set.Counters(), files: files}
	for i, r := range set.Rules() {
		if err := l.rule(i+1, r); err != nil {
			return nil, err
		}
		if deniesAny(set.Rules()[i+1:]) {
			l.certainty(i+1, r)
		}
	}
	module, err := l.module()
	if err != nil {
		return nil, err
	}
	file, err := formatted(mainFile, module)
	return append([]File{file}, l.files...), err
}

// compileRules compiles rules. An invalid one is an error.
func compileRules(rules []engine.Rule, lists condition.Lists) (*engine.RuleSet, error) {
	set := engine.CompileRules(rules, engine.Options{CompileRego: CompileCondition, Lists: lists})
	for _, broken := range set.Broken() {
		return nil, fmt.Errorf("rule %s: %w", broken.RuleID, broken.Err)
	}
	return set, nil
}

// formatted returns a file of Rego, clean under `opa fmt`.
func formatted(name, source string) (File, error) {
	out, err := format.Source(name, []byte(source))
	if err != nil {
		return File{}, fmt.Errorf("formatting %s: %w", name, err)
	}
	return File{Name: name, Source: string(out)}, nil
}

// lowering is a policy's module in the making.
type lowering struct {
	policy   *engine.ActionPolicy
	pkg      string
	counters []*condition.Counter
	// rules are the definitions of the organization's rules. files are the lists and the modules
	// of rules in Rego.
	rules []string
	files []File
	// errable are the places of rules that ask for approval and may do so by an error. Such an
	// approval does not keep a deny below from deciding.
	errable []string
}

func (l *lowering) module() (string, error) {
	checks, err := l.checks()
	if err != nil {
		return "", err
	}
	parts := slices.Concat([]string{l.header(), l.entryPoints()}, checks, l.rules)
	return strings.Join(parts, "\n\n") + "\n", nil
}

func (l *lowering) header() string {
	p := l.policy
	return fmt.Sprintf(`# METADATA
# title: %s
# description: %s
# custom:
#   policy_id: %s
#   version: %d
#   organization_id: %s
#   status: %s
package %s`,
		condition.Quote(fmt.Sprintf("Policy %s, version %d", p.PolicyID, p.Version)),
		condition.Quote("Decides what an agent may do: every check is made, and the most restrictive finding decides."),
		condition.Quote(p.PolicyID), p.Version, condition.Quote(p.OrganizationID), condition.Quote(string(p.Status)),
		l.pkg)
}

// entryPoints defines the documents that callers ask for.
func (l *lowering) entryPoints() string {
	ruled, reasons := "", "check_reasons"
	if len(l.rules) > 0 {
		ruled, reasons = l.ruleFinding()
	}
	return fmt.Sprintf(`# METADATA
# description: The most restrictive outcome of all findings.
# entrypoint: true
decision := "allow" if count(codes - permitting) == 0

else := "approval_required" if count((codes - permitting) - asking) == 0

else := "deny"

# METADATA
# description: Whether the intent may proceed without anybody's approval.
# entrypoint: true
allow := decision == "allow"

# METADATA
# description: The codes of all findings.
# entrypoint: true
codes := findings if count(findings) > 0

else := {%[1]s}

# METADATA
# description: What was found, one sentence each, in check order.
# entrypoint: true
reasons := %[2]s

permitting := {%[1]s, %[3]s}

check_reasons := [sentence |
	some [code, sentence] in sentences
	code in codes
]
%[4]s`, condition.Quote(string(engine.CodePolicyAllowed)), reasons, condition.Quote(string(engine.CodeRuleAllow)), ruled)
}

// ruleFinding defines the finding of the rule that decides, and returns the expression of all
// reasons. The first matching rule in deciding order decides. If it asks for approval by an error
// alone and the first of the others denies, both are found.
func (l *lowering) ruleFinding() (text, reasons string) {
	if len(l.errable) == 0 {
		return `
findings contains deciding_rule[1]

deciding_rule := min(matching_rules)
`, "array.concat(check_reasons, [sentence | sentence := deciding_rule[2]])"
	}
	return fmt.Sprintf(`
findings contains rule[1] if some rule in deciding_rules

deciding_rules := {unsure, sure} if {
	unsure := min(matching_rules)
	unsure[0] in unsure_rules
	sure := min({rule | some rule in matching_rules; not rule[0] in unsure_rules})
	sure[1] == %s
}

else := {min(matching_rules)}

unsure_rules := {%s} - certain_rules
`, condition.Quote(string(engine.CodeRuleDeny)), strings.Join(l.errable, ", ")),
		"array.concat(check_reasons, [sentence | some [_, _, sentence] in sort(deciding_rules)])"
}
