package core

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// body is the body of an answer.
type body struct {
	Result     *verdict `json:"result"`
	DecisionID string   `json:"decision_id"` // the id in OPA's own decision log
}

type verdict struct {
	Decision      string   `json:"decision"`
	Reasons       []string `json:"reasons"`
	PolicyVersion *int64   `json:"policy_version"`
	RulesRevision *int64   `json:"rules_revision"`
}

// decision reads the body of a 200. It returns an error unless the body is a decision under the
// versions that the question named.
func decision(answer []byte, asked question) (engine.Result, error) {
	var b body
	// The decoder rejects unknown members, repeated members, wrong types and text that is not
	// UTF-8. Its error may quote the answer, so the error is dropped.
	if err := json.Unmarshal(answer, &b, json.RejectUnknownMembers(true)); err != nil {
		return engine.Result{}, failure(Answer, "it is not the documented JSON")
	}
	switch r := b.Result; {
	case r == nil:
		return engine.Result{},
			failure(Undefined, "the core holds no export with the digest %s: export again with writ rego --core",
				asked.digest)
	case r.PolicyVersion == nil || r.RulesRevision == nil:
		return engine.Result{}, failure(Answer, "it does not say which policy_version and rules_revision it is of")
	case versions{*r.PolicyVersion, *r.RulesRevision} != asked.under:
		return engine.Result{},
			failure(Undefined, "the core decided under another version of the policy or other rules")
	}
	outcome, err := engine.ParseDecision(b.Result.Decision)
	if err != nil {
		return engine.Result{}, failure(Answer, "its decision is none of the three")
	}
	return outcomeOf(outcome, b.Result.Reasons)
}

// outcomeOf returns the result of a decision with its reasons. It fails if they do not agree.
func outcomeOf(decided engine.Decision, reasons []string) (engine.Result, error) {
	if len(reasons) == 0 {
		return engine.Result{}, failure(Answer, "it has no reason")
	}
	result := engine.Result{Decision: decided, Findings: make([]engine.Finding, len(reasons))}
	known, implied := true, engine.Allow
	for i, reason := range reasons {
		finding, ok := findingOf(reason)
		if !ok {
			return engine.Result{}, failure(Answer, "a reason is not a code, a colon and a sentence")
		}
		if finding.Code == engine.CodeCoreFinding {
			known, finding.Outcome = false, decided
		}
		implied = max(implied, finding.Outcome)
		result.Findings[i] = finding
	}
	if implied > decided || known && implied != decided {
		return engine.Result{}, failure(Answer, "its decision and its reasons disagree")
	}
	return result, nil
}

var reasonForm = regexp.MustCompile(`^([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*): \S`)

// findingOf parses a reason. It reports whether the reason has the right form.
func findingOf(reason string) (engine.Finding, bool) {
	m := reasonForm.FindStringSubmatch(reason)
	if m == nil || len(reason) > condition.MaxText || !utf8.ValidString(reason) ||
		strings.ContainsFunc(reason, unicode.IsControl) {
		return engine.Finding{}, false
	}
	code := engine.Code(m[1])
	outcome, known := code.Outcome()
	if !known {
		code = engine.CodeCoreFinding
	}
	return engine.Finding{Code: code, Outcome: outcome, Reason: reason}, true
}
