// Package evidence verifies decisions offline. [Parse] and [Check] verify receipts, results and
// rows of the history in files. [Remote] reads a whole history from a server. [Report] writes a
// proof of package ledger for people.
package evidence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// Held is a receipt from a file. If the file also has the evaluation result or the row of the
// history, Held has it too.
type Held struct {
	Receipt receipt.Receipt
	result  *receipt.Result // nil if the file has only a receipt
	row     *storage.Record // nil unless the file has a row of the history
}

// Parse reads a receipt, an evaluation result, or a row of the history.
func Parse(data []byte) (Held, error) {
	r, err := receipt.Parse(data)
	if err == nil {
		return Held{Receipt: r}, nil
	}
	res, resErr := receipt.ParseResult(data)
	if resErr == nil {
		return Held{Receipt: res.Receipt, result: &res}, nil
	}
	switch text := string(data); {
	case strings.Contains(text, `"intent_digest"`):
		row := new(storage.Record)
		if err := json.Unmarshal(data, row, json.RejectUnknownMembers(true)); err != nil {
			return Held{}, fmt.Errorf("no row of the history: %w", err)
		}
		return Held{row.Receipt, &receipt.Result{Reasons: row.Reasons, AuditDigest: row.AuditDigest}, row}, nil
	case strings.Contains(text, `"receipt"`):
		return Held{}, resErr
	}
	return Held{}, err
}

// Check says what decisions are verified against, in addition to their signature.
type Check struct {
	Keys         receipt.Keys
	AllowExpired bool
	// Intent is the intent of the decision. Policy is the policy that decided the intent. A nil
	// field is not checked.
	Intent *engine.Intent
	Policy *engine.Policy
}

// Verify verifies h at the time now. It returns a line for each check that it made or omitted. The
// error says why h is not valid.
func (c Check) Verify(h Held, now time.Time) (said []string, err error) {
	r := h.Receipt
	err = receipt.Verify(r, c.Keys, now)
	if c.AllowExpired && errors.Is(err, receipt.ErrExpired) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	expiry := "expires "
	if now.Unix() >= r.Exp {
		expiry = "expired: at "
	}
	said = append(said, fmt.Sprintf("verified: %s, decision %s, %s%s, key %s", r.Decision, r.DecisionID, expiry,
		time.Unix(r.Exp, 0).UTC().Format(time.RFC3339), r.KeyID))
	if h.row != nil {
		if err := cmp.Or(ledger.VerifySettlement(h.row, c.Keys), ledger.VerifyRow(h.row)); err != nil {
			return nil, err
		}
		line := "the row is the one that was signed"
		if h.row.AuditDigest == "" {
			line += ", but for its agent, action, resource, cost, metadata and times"
		}
		said = append(said, line)
	}
	switch {
	case h.result == nil:
		return append(said, "not checked: the intent and the reasons, which a bare receipt does not name"), nil
	case c.Intent == nil || c.Policy == nil && h.row == nil:
		return append(said,
			"not checked: the intent and whether the reasons follow from the policy: give --intent and --policy"), nil
	}
	if h.row != nil {
		c.Intent.SessionID = h.row.SessionID
		if digest := ledger.IntentDigest(c.Intent); digest != h.row.IntentDigest {
			return nil, fmt.Errorf("it is of another intent: the digest of this one is %s", digest)
		}
	}
	if c.Policy == nil {
		return append(said, "the intent is the one that was decided",
			"not checked: whether the reasons follow from the policy: give --policy"), nil
	}
	more, err := c.follows(h)
	return append(said, more...), err
}

// follows checks whether h follows from the intent and the policy.
func (c Check) follows(h Held) (said []string, err error) {
	doc := c.Policy.Document()
	if c.Intent.PolicyID != doc.PolicyID {
		return nil, fmt.Errorf("the intent is for policy %s, and the policy is %s", c.Intent.PolicyID, doc.PolicyID)
	}
	p := receipt.Payload{
		OrganizationID: doc.OrganizationID, IntentID: c.Intent.IntentID, IntentDigest: ledger.IntentDigest(c.Intent),
		PolicyID: doc.PolicyID, PolicyVersion: doc.Version, Decision: h.Receipt.Decision,
		DecisionID: h.Receipt.DecisionID,
		Reasons:    h.result.Reasons, Exp: h.Receipt.Exp, AuditDigest: h.result.AuditDigest,
	}
	if err := receipt.VerifyPayload(h.Receipt, p); err != nil {
		return nil, fmt.Errorf(
			"%w: it is not of this intent, version %d of this policy and these reasons", err, doc.Version,
		)
	}
	said = append(said, "the intent, the policy's version and the reasons are those of the digest")
	alone := engine.Evaluate(c.Policy, nil, &engine.Input{Intent: c.Intent})
	rest, err := following(h.result.Reasons, alone)
	if err != nil {
		return nil, fmt.Errorf("the reasons do not follow from version %d of the policy: %w", doc.Version, err)
	}
	if len(rest) > 0 {
		return append(said, "not checked: what rules, the agent's state, the plan or an external core have found: "+
			strings.Join(rest, ", ")), nil
	}
	if h.Receipt.Decision != alone.Decision.String() {
		return nil, fmt.Errorf("the policy decides %s", alone.Decision)
	}
	return append(said, "the reasons follow from the policy"), nil
}

// needMore has the codes of findings that depend on more than the policy and the intent.
var needMore = []engine.Code{
	engine.CodeOrganizationStopped, engine.CodeAgentDisabled, engine.CodeAgentUnregistered, engine.CodeUsageLimit,
	engine.CodeBatchRefused,
	engine.CodeSessionClosed, engine.CodeSessionExpired, engine.CodeSessionNotAllowed,
	engine.CodeRuleAllow, engine.CodeRuleApprovalRequired, engine.CodeRuleDeny, engine.CodePolicyMissing,
	engine.CodePolicyUnreadable,
}

// following compares reasons with the findings of the policy. It returns the codes of the reasons
// that do not follow from the policy alone.
func following(reasons []string, alone engine.Result) (rest []string, err error) {
	var own, want []string
	for _, reason := range reasons {
		code, _, _ := strings.Cut(reason, ":")
		switch c := engine.Code(code); {
		case !slices.Contains(engine.Codes(), c):
			return []string{condition.Quote(code)}, nil // an external core made this decision
		case slices.Contains(needMore, c):
			if !slices.Contains(rest, code) { // a rule may have several reasons
				rest = append(rest, code)
			}
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
