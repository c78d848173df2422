package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
)

// held is what a file holds of a decision: a receipt and what stands beside it.
type held struct {
	receipt receipt.Receipt
	result  *receipt.Result // nil beside a bare receipt
	row     *storage.Record // of the history, if it is one
}

// parseHeld reads a receipt, an evaluation result, or a row of the history.
func parseHeld(data []byte) (held, error) {
	r, err := receipt.Parse(data)
	if err == nil {
		return held{receipt: r}, nil
	}
	res, resErr := receipt.ParseResult(data)
	if resErr == nil {
		return held{receipt: res.Receipt, result: &res}, nil
	}
	switch text := string(data); {
	case strings.Contains(text, `"intent_digest"`):
		return parseRow(data)
	case strings.Contains(text, `"receipt"`):
		return held{}, resErr
	}
	return held{}, err
}

// parseRow reads a row, which must be the one of its receipt.
func parseRow(data []byte) (held, error) {
	row := new(storage.Record)
	if err := json.Unmarshal(data, row, json.RejectUnknownMembers(true)); err != nil {
		return held{}, fmt.Errorf("no row of the history: %w", err)
	}
	return held{receipt: row.Receipt, result: &receipt.Result{Reasons: row.Reasons, AuditDigest: row.AuditDigest},
		row: row}, nil
}

// evidence is the intent and the policy that a decision is checked against; either may
// be nil.
type evidence struct {
	intent *engine.Intent
	policy *engine.Policy
}

func (c *verifyCmd) evidence(s streams) (g evidence, err error) {
	if c.Intent != "" {
		intents, err := readIntents(s, c.Intent)
		if err != nil {
			return g, err
		}
		if len(intents) > 1 {
			return g, &inputError{name: c.Intent, err: fmt.Errorf("has %d intents: want one", len(intents))}
		}
		g.intent = intents[0]
		g.intent.SessionID = c.SessionID
	}
	if c.Policy != "" {
		doc, err := readPolicy(s, c.Policy)
		if err != nil {
			return g, err
		}
		if g.policy, err = engine.CompilePolicy(doc); err != nil {
			return g, &inputError{name: c.Policy, err: err}
		}
	}
	return g, nil
}

// check says what was checked of d and what was not, or returns why d does not follow
// from e.
func (e evidence) check(d held) (said []string, err error) {
	if d.row != nil {
		if err := ledger.VerifyRow(d.row); err != nil {
			return nil, err
		}
		line := "the row is the one that was signed"
		if d.row.AuditDigest == "" {
			line += ", but for its agent, action, resource, cost, metadata and times"
		}
		said = append(said, line)
	}
	switch {
	case d.result == nil:
		return append(said, "not checked: the intent and the reasons, which a bare receipt does not name"), nil
	case e.intent == nil || e.policy == nil && d.row == nil:
		return append(said,
			"not checked: the intent and whether the reasons follow from the policy: give --intent and --policy"), nil
	}
	if d.row != nil {
		e.intent.SessionID = d.row.SessionID
	}
	if d.row != nil && ledger.IntentDigest(e.intent) != d.row.IntentDigest {
		return nil, fmt.Errorf("it is of another intent: the digest of this one is %s", ledger.IntentDigest(e.intent))
	}
	if e.policy == nil {
		return append(said, "the intent is the one that was decided",
			"not checked: whether the reasons follow from the policy: give --policy"), nil
	}
	return e.follows(said, d)
}

// follows checks d against the intent and the policy.
func (e evidence) follows(said []string, d held) ([]string, error) {
	doc := e.policy.Document()
	if e.intent.PolicyID != doc.PolicyID {
		return nil, fmt.Errorf("the intent is for policy %s, and the policy is %s", e.intent.PolicyID, doc.PolicyID)
	}
	alone := engine.Evaluate(e.policy, nil, &engine.Input{Intent: e.intent})
	p := receipt.Payload{
		OrganizationID: doc.OrganizationID, IntentID: e.intent.IntentID, IntentDigest: ledger.IntentDigest(e.intent),
		PolicyID: doc.PolicyID, PolicyVersion: doc.Version, Decision: d.receipt.Decision,
		DecisionID: d.receipt.DecisionID,
		Reasons:    d.result.Reasons, Exp: d.receipt.Exp, AuditDigest: d.result.AuditDigest,
	}
	if err := receipt.VerifyPayload(d.receipt, p); err != nil {
		return nil, fmt.Errorf(
			"%w: it is not of this intent, version %d of this policy and these reasons", err, doc.Version,
		)
	}
	said = append(said, "the intent, the policy's version and the reasons are those of the digest")
	rest, err := following(d.result.Reasons, alone)
	if err != nil {
		return nil, fmt.Errorf("the reasons do not follow from version %d of the policy: %w", doc.Version, err)
	}
	if len(rest) > 0 {
		return append(said, "not checked: what rules, the agent's state, the plan or an external core have found: "+
			strings.Join(rest, ", ")), nil
	}
	if d.receipt.Decision != alone.Decision.String() {
		return nil, fmt.Errorf("the policy decides %s", alone.Decision)
	}
	return append(said, "the reasons follow from the policy"), nil
}

// following holds reasons to what a policy finds alone, and returns the codes of
// those that need more than the policy to follow.
func following(reasons []string, alone engine.Result) (rest []string, err error) {
	var own, want []string
	for _, reason := range reasons {
		code, _, _ := strings.Cut(reason, ":")
		switch c := engine.Code(code); {
		case !slices.Contains(engine.Codes(), c):
			return []string{condition.Quote(code)}, nil // an external core has decided
		case needsMore(c):
			rest = append(rest, code)
		default:
			own = append(own, reason)
		}
	}
	for _, f := range alone.Findings {
		if f.Code != engine.CodePolicyAllowed || len(rest) == 0 {
			want = append(want, f.Reason)
		}
	}
	if !slices.Equal(own, want) {
		return nil, fmt.Errorf("it gives %q", want)
	}
	return rest, nil
}

// needsMore reports whether a finding of c rests on more than policy and intent.
func needsMore(c engine.Code) bool {
	switch c {
	case engine.CodeAgentDisabled, engine.CodeAgentUnregistered, engine.CodeUsageLimit, engine.CodeBatchRefused,
		engine.CodeSessionClosed, engine.CodeSessionExpired, engine.CodeSessionNotAllowed,
		engine.CodeRuleAllow, engine.CodeRuleApprovalRequired, engine.CodeRuleDeny, engine.CodePolicyMissing,
		engine.CodePolicyUnreadable:
		return true
	}
	return false
}
