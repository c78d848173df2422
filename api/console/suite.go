package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"writ.example/writ/internal/printable"
)

// suiteCase returns a case of a suite that wants the decision of a row, in YAML. A row may lack members of
// its intent, which a comment names.
func suiteCase(r *row) string {
	intent := map[string]any{
		"agent_id": r.AgentID, "action_type": r.ActionType, "resource": r.Resource, "issued_at": r.IssuedAt,
	}
	if r.Cost != nil {
		intent["cost"] = r.Cost
	}
	if len(r.Metadata) > 0 {
		intent["metadata"] = r.Metadata
	}
	codes := make([]string, len(r.Reasons))
	for i, reason := range r.Reasons {
		codes[i], _, _ = strings.Cut(reason, ":")
	}
	test := map[string]any{
		"name": "as decided in " + r.DecisionID, "intent": r.IntentID, "now": r.DecidedAt, "want": r.Decision,
		"codes": codes,
	}
	var b strings.Builder
	b.WriteString("# decided under version " + strconv.FormatInt(r.PolicyVersion, 10) +
		" of the policy; writ pull . writes both files\n" +
		"policy: " + inline("policies/"+r.PolicyID+".yaml") + "\nrules: rules.yaml\n")
	if len(r.LeftOut) > 0 {
		b.WriteString("# not kept in the history: " + printable.Text(strings.Join(r.LeftOut, ", ")) + "\n")
	}
	b.WriteString("intents:\n  " + inline(r.IntentID) + ": " + inline(intent) + "\ntests:\n  - " + inline(test) + "\n")
	return b.String()
}

// inline returns JSON, which is YAML on one line. Characters that cannot be seen are escapes.
func inline(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null" // cannot happen: v has texts and numbers
	}
	return printable.Text(string(data))
}
