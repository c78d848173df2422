package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/format"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// File is one Rego file of a lowered policy.
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

// nameIn returns s with every character that a Rego name cannot contain replaced by _.
func nameIn(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, s)
}

// Lower writes a policy version and the active rules among rules as Rego v1. `opa fmt` leaves the
// files unchanged. The first file is the policy's module. Each rule whose condition is written in
// Rego adds a file with a module of its own. If rules look in lists, the second file holds these
// lists, in the same package as the policy's module.
//
// The module's package is [PackageName]. Its entry points are
//
//	decision   "allow", "deny" or "approval_required"
//	allow      whether decision is "allow"
//	codes      the set of the codes of all findings
//	reasons    one sentence for each finding, in check order
//
// The input is the document that [Input] returns:
//
//	intent                      the ActionIntent
//	decided_at                  the time of the decision, in UTC and RFC 3339
//	agent                       {"id": …, "status": "active" | "disabled" | "unregistered",
//	                            "called": […], "names": […]}: called has the names of the agent as
//	                            sent and registered, names has these and their folded forms. Rules
//	                            need both that compare the agent and do not allow
//	organization                {"stopped": bool}
//	usage                       {"exceeded": bool}
//	require_registered_agents   bool
//	readings                    {"blocked": […], "allowed": […], "stops": "" | "list" | "address"}:
//	                            blocked has the readings that a block looks at, allowed those
//	                            that an allowance must cover. Each is {"text", "readers": […]}.
//	                            They count only if the reader raw has read intent.resource. The
//	                            module reads a plain resource itself then. For any other
//	                            resource the decision is deny: check.error, or
//	                            resource.unreadable if there are no readings
//	values                      what metadata values are read as, by their keys: see
//	                            [condition.Value]. Rules need it that compare addresses or lists.
//	                            The module reads plain values itself: see [condition.NotPlain]
//	policy                      {"policy_id", "version", "organization_id", "agent_id",
//	                            "status"}
//	counters                    the value of each counter of the rules, by its key. It is null
//	                            if the counter does not count the intent. The member is
//	                            present only if the rules have counters
//	derived_from                {"counters": {"action_type", "agent_id", "cost"}}, the members of the
//	                            intent from which counters are derived, null for an absent
//	                            one. It is present only if the rules have counters. Offline it
//	                            also has "decided_at": {"issued_at"}, if the intent is decided
//	                            at its issued_at
//
// If a member is absent, of another type, or derived from another intent, the decision is deny,
// check.error. Only the intent's cost and metadata may be absent, and the readings of a plain resource.
//
// The module decides as [engine.Evaluate] does, except after an error in a rule's own Rego. The
// engine treats such an error as a match if a match makes the decision stricter. [Query] has no
// decision then. In an OPA without its strict mode for errors, the failing value is undefined.
//
// If a condition in CEL has no rendering in Rego, the error is an [*UnrenderedError]. A missing list
// is an error.
//
// The libraries that rules import, directly and through others, are files of the packages
// [PackageName].lib.<name>. So they do not meet the author's own files, if both are in one OPA.
func Lower(
	p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries ...engine.Library,
) ([]File, error) {
	files, set, err := lower(PackageName(p.PolicyID), heldMetadata, p, rules, lists, libraries)
	if err != nil {
		return nil, err
	}
	documents, err := writeDocuments(PackageName(p.PolicyID), set)
	return append(files, documents...), err
}

// lower is [Lower] for the package pkg, without the documents that the rules read. No message of a rule may
// hold a member of left. It also returns the compiled rules.
func lower(
	pkg string, left held, p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists,
	libraries []engine.Library,
) ([]File, *engine.RuleSet, error) {
	set, err := compileRules(rules, lists, libraries)
	if err != nil {
		return nil, nil, err
	}
	if err := unrendered(rules, set); err != nil {
		return nil, nil, err
	}
	files, err := writeLists(pkg, set)
	if err != nil {
		return nil, nil, err
	}
	l := lowering{policy: p, pkg: pkg, left: left, counters: set.Counters(), files: files, libraries: librariesOf(set)}
	for i, r := range set.Rules() {
		if err := l.rule(i+1, r); err != nil {
			return nil, nil, err
		}
		if deniesAny(set.Rules()[i+1:]) {
			l.certainty(i+1, r)
		}
	}
	used, err := l.writeLibraries(set)
	if err != nil {
		return nil, nil, err
	}
	l.files = append(l.files, used...)
	if l.readsItems {
		library, err := writeLibrary(pkg)
		if err != nil {
			return nil, nil, err
		}
		l.files = append(l.files, library)
		l.rules = append(l.rules, itemsOfMetadata)
	}
	module, err := l.module()
	if err != nil {
		return nil, nil, err
	}
	file, err := formatted(mainFile, module)
	return append([]File{file}, l.files...), set, err
}

// compileRules compiles rules. An invalid one is an error, and so is an invalid library.
func compileRules(
	rules []engine.Rule, lists condition.Lists, libraries []engine.Library,
) (*engine.RuleSet, error) {
	o := engine.Options{CompileRego: CompileCondition, Lists: lists}
	if len(libraries) > 0 {
		var err error
		if o.Libraries, err = CompileLibraries(libraries); err != nil {
			return nil, err
		}
	}
	set := engine.CompileRules(rules, o)
	for _, broken := range set.Broken() {
		return nil, fmt.Errorf("rule %s: %w", broken.RuleID, broken.Err)
	}
	return set, nil
}

// formatted returns a file of Rego that `opa fmt` leaves unchanged.
func formatted(name, source string) (File, error) {
	out, err := format.Source(name, []byte(source))
	if err != nil {
		return File{}, fmt.Errorf("formatting %s: %w", name, err)
	}
	return File{Name: name, Source: string(out)}, nil
}

// lowering collects the parts of a policy's module.
type lowering struct {
	policy   *engine.ActionPolicy
	pkg      string
	counters []*condition.Counter
	// timed says that a rule may read the time of the decision.
	timed bool
	// rules has the definitions of the organization's rules. files has the lists, and the modules
	// of rules that are written in Rego.
	rules []string
	files []File
	// errable has the places of rules that ask for approval and may match because of an error. If
	// such a rule matches by an error, a later rule that denies still decides.
	errable []string
	// said has the definitions of the messages of rules. No message may hold a member of left.
	said []string
	left held
	// readsValues says that a rule reads how metadata values are read.
	readsValues bool
	// modules has the rules with a module of their own, by the names of the modules.
	modules map[string]string
	// libraries has the libraries of the organization.
	libraries *Libraries
	// readsItems says that a rule in Rego calls writ.items.
	readsItems bool
	// readsNames says that a rule reads the names of the agent. asksNames says that a rule is asked for
	// each of them.
	readsNames, asksNames bool
}

func (l *lowering) module() (string, error) {
	checks, err := l.checks()
	if err != nil {
		return "", err
	}
	if l.asksNames {
		checks = append(checks, namedReadings)
	}
	if len(l.said) > 0 {
		l.said = append(l.said, messagesOfRules)
	}
	parts := slices.Concat([]string{l.header(), l.entryPoints()}, checks, l.rules, l.said)
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

// entryPoints defines the documents that callers read.
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

// ruleFinding defines the finding of the deciding rule, and returns an expression for all reasons.
// The first matching rule in deciding order decides. There is one exception: that rule asks for
// approval only because of an error, and the first rule that matches without an error denies. Then
// both rules have a finding.
func (l *lowering) ruleFinding() (text, reasons string) {
	if len(l.errable) == 0 {
		reasons := "sentence := deciding_rule[2]"
		if len(l.said) > 0 {
			reasons = l.sentences("[deciding_rule]")
		}
		return `
findings contains deciding_rule[1]

deciding_rule := min(matching_rules) if input_read
`, "array.concat(check_reasons, [sentence | " + reasons + "])"
	}
	return fmt.Sprintf(`
findings contains rule[1] if {
	input_read
	some rule in deciding_rules
}

deciding_rules := {unsure, sure} if {
	unsure := min(matching_rules)
	unsure[0] in unsure_rules
	sure := min({rule | some rule in matching_rules; not rule[0] in unsure_rules})
	sure[1] == %s
}

else := {min(matching_rules)}

unsure_rules := {%s} - certain_rules
`, condition.Quote(string(engine.CodeRuleDeny)), strings.Join(l.errable, ", ")),
		"array.concat(check_reasons, [sentence | " + l.sentences("sort(deciding_rules)") + "])"
}

// sentences returns expressions for the reasons of the rules in an array.
func (l *lowering) sentences(rules string) string {
	if len(l.said) == 0 {
		return fmt.Sprintf("some [_, _, sentence] in %s", rules)
	}
	return fmt.Sprintf("\n\tsome rule in %s\n\tsome sentence in array.concat(\n\t\t[rule[2]],\n"+
		"\t\t[text | some text in rule_messages[rule[0]]; text != rule[2]],\n\t)\n", rules)
}
