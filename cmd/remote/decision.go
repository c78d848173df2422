package remote

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// decision is a row of the history as a server shows it.
type decision struct {
	storage.Record
	Explanation *engine.Explanation `json:"explanation"`
	Unexplained string              `json:"unexplained"`
}

// DecisionPath returns the path of a decision.
func DecisionPath(id string) string { return "/v1/authorizations/" + url.PathEscape(id) }

// Decided returns err, or if it says that there is no such decision, how to find one.
func Decided(err error, id string) error {
	if !answered(err, http.StatusNotFound) {
		return err
	}
	return fmt.Errorf("there is no decision %s: writ history tail --intent %s has those about an intent", id, id)
}

// DecisionColumns names the columns of [DecisionLine].
func DecisionColumns() string {
	return fmt.Sprintf(decisionLine, "DECISION", "DECIDED", "OUTCOME", "AGENT", "ACTION", "WHY", "RESOURCE")
}

// The columns have a fixed width, so that lines that come later stand below earlier ones.
const decisionLine = "%-36s  %-20s  %-17s  %-20s  %-20s  %-22s  %s"

// DecisionLine returns a row of the history as a line.
func DecisionLine(row jsontext.Value) (string, error) {
	var d decision
	if err := decode(row, &d); err != nil {
		return "", err
	}
	return fmt.Sprintf(decisionLine, cell(d.DecisionID), Time(d.DecidedAt), d.Decision, cell(d.AgentID),
		cell(d.ActionType), cell(d.code()), cell(d.Resource)), nil
}

// code returns the code of the first finding that decides.
func (d *decision) code() string {
	for _, f := range d.Findings {
		if f.Decides {
			return f.Code
		}
	}
	if len(d.Reasons) == 0 {
		return ""
	}
	code, _, _ := strings.Cut(d.Reasons[0], ":")
	return code
}

// ShowDecision prints what a row of the history holds.
func ShowDecision(w io.Writer, row jsontext.Value) error {
	var d decision
	if err := decode(row, &d); err != nil {
		return err
	}
	pairs := []string{
		"decision", d.DecisionID, "outcome", d.Decision.String(), "decided", Time(d.DecidedAt),
		"agent", d.AgentID, "action", d.ActionType, "resource", d.Resource, "cost", Cost(d.Cost),
	}
	pairs = append(pairs, metadata(d.MetadataKeys, d.Metadata)...)
	for _, reason := range d.Reasons {
		pairs = append(pairs, "reason", reason)
	}
	pairs = append(pairs, "intent", d.IntentID, "intent digest", d.IntentDigest, "issued", d.IssuedAt,
		"session", d.SessionID, "approval", d.ApprovalID, "policy", d.policy(), "asked by", d.Credential,
		"settlement", d.settled(), "receipt", d.Receipt.Digest, "signed by", d.Receipt.KeyID)
	return Fields(w, pairs...)
}

func (d *decision) policy() string {
	return fmt.Sprintf("%s, version %d", d.PolicyID, d.PolicyVersion)
}

// settled says what became of the action.
func (d *decision) settled() string {
	s := d.Settlement
	if s == nil {
		return ""
	}
	text := s.Outcome + " at " + Time(s.RecordedAt)
	if s.AmountMinor != nil {
		text += ", " + Cost(&engine.Cost{AmountMinor: *s.AmountMinor, Currency: s.Currency})
	}
	if s.ExternalRef != "" {
		text += ", " + s.ExternalRef
	}
	if s.Unapproved {
		text += ": though the decision did not allow it"
	}
	return text
}

// Why prints why a decision is what it is: the outcome in words, each finding with the policy's value and
// the intent's, and what it was decided under.
func Why(w io.Writer, row jsontext.Value) error {
	var d decision
	if err := decode(row, &d); err != nil {
		return err
	}
	word := map[engine.Decision]string{engine.Allow: "Allowed", engine.Deny: "Denied"}[d.Decision]
	if word == "" {
		word = "Held for an approval"
	}
	what := d.ActionType + " on " + d.Resource
	if d.Cost != nil {
		what += " for " + Cost(d.Cost)
	}
	fmt.Fprintf(w, "%s: %s wanted %s\n", word, d.AgentID, what)
	for i, reason := range d.Reasons {
		mark := ""
		if i < len(d.Findings) && !d.Findings[i].Decides {
			mark = " (a stricter reason decided)"
		}
		fmt.Fprintf(w, "  %s%s\n", reason, mark)
		if detail := d.checked(reason); detail != "" {
			fmt.Fprintf(w, "    %s\n", detail)
		}
		if i < len(d.Findings) && d.Findings[i].RuleID != "" {
			fmt.Fprintf(w, "    rule %s %s\n", d.Findings[i].RuleID, revision(d.Findings[i].RuleRevision))
		}
	}
	fmt.Fprintln(w)
	err := Fields(w, "decided", Time(d.DecidedAt), "policy", d.policy(), "rules", revision(d.RulesRevision),
		"agent", revision(d.AgentRevision), "session", d.SessionID, "approval", d.ApprovalID, "asked by", d.Credential,
		"settlement", d.settled(), "decision", d.DecisionID)
	if err != nil || d.Explanation == nil {
		why := cmp.Or(d.Unexplained, "the credential may not read policies and rules (policy:read, rules:read)")
		fmt.Fprintf(w, "\nno more is explained: %s\n", why)
		return err
	}
	fmt.Fprintln(w)
	if len(d.Explanation.Unknown) > 0 {
		fmt.Fprintf(w, "not known any more: %s\n", strings.Join(d.Explanation.Unknown, ", "))
	}
	return d.Explanation.WriteText(w) //nolint:wrapcheck // of the standard output
}

// checked returns the values of the policy and of the intent because of which a check failed.
func (d *decision) checked(reason string) string {
	if d.Explanation == nil {
		return ""
	}
	code, _, _ := strings.Cut(reason, ":")
	for _, c := range d.Explanation.Checks {
		switch {
		case string(c.Code) != code || c.Result != "fail" || c.Field == "":
		case c.Value == "":
			return fmt.Sprintf("no entry of %s matches %s", c.Field, c.Got)
		case c.Got != "":
			return fmt.Sprintf("%s is %s, and the intent has %s", c.Field, c.Value, c.Got)
		}
	}
	return ""
}

func revision(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("revision %d", n)
}
