package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
	"writ.example/writ/storage/ledger"
)

const (
	// speaking is a rule with messages: two hold what a row keeps, and the others metadata.
	speaking = `package team.reasons

match if input.intent.action_type == "deploy"

reason contains sprintf("%s is frozen for %s", [input.intent.resource, input.agent.id])

reason contains "the ticket is none" if startswith(input.intent.metadata.ticket, "CANARY")

reason contains sprintf("ticket %s", [input.intent.metadata.ticket])

reason contains msg if {
	some letter in ["C", "A", "N"]
	contains(input.intent.metadata.ticket, letter)
	msg := letter
}

reason contains crypto.sha256(json.marshal(input.intent))

reason contains sprintf("%d", [to_number(input.intent.resource)])
`
	secretOfCanary = "CANARY-4711"
)

// TestDecision_Rules_ReasonsHoldWhatTheRowKeeps checks the messages of a rule in the answer, the row, a
// simulation, an export and the log. They hold the resource as the row has it, and nothing of the metadata.
func TestDecision_Rules_ReasonsHoldWhatTheRowKeeps(t *testing.T) {
	for _, mode := range []ledger.Mode{ledger.Minimal, ledger.Full} {
		t.Run(string(mode), func(t *testing.T) {
			h := start(t, func(c *setup) { c.Audit = mode })
			h.register(acme)
			token := h.operator(acme)
			h.do("POST", "/v1/rules", token, obj{"name": "n", "condition": `{"rego":` + condition.Quote(speaking) + `}`,
				"action": `{"decision":"deny","reason":"no"}`}).wantStatus(http.StatusCreated)
			in := intent(obj{"action_type": "deploy", "resource": "https://ana:CANARY-pw@example.com/a?key=CANARY-query#CANARY-part",
				"metadata": obj{"ticket": secretOfCanary, "other": "CANARY-other"}})
			r := h.evaluate(acme, in)
			row := h.history(acme)[0]
			want := []string{`rule.deny: no (rule "n")`, `rule.deny: ` + row.Resource + ` is frozen for ` + row.AgentID + ` (rule "n")`,
				`rule.deny: the ticket is none (rule "n")`}
			slices.Sort(want[1:])
			var got result
			r.into(&got)
			if diff := cmp.Diff(want, got.Reasons); diff != "" {
				t.Errorf("the reasons (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, row.Reasons); diff != "" {
				t.Errorf("the row's reasons (-want +got):\n%s", diff)
			}
			if len(row.Findings) != len(want) || row.Findings[2].RuleID != row.Findings[0].RuleID {
				t.Errorf("the row's findings = %+v", row.Findings)
			}
			trial := h.simulate(token, obj{"intent": in["intent"]}).wantStatus(http.StatusOK)
			if diff := cmp.Diff(want, read[simulated](trial).Reasons); diff != "" {
				t.Errorf("a simulation's reasons (-want +got):\n%s", diff)
			}
			h.explain(token, got.DecisionID)
			for where, text := range map[string]string{"the answer": string(r.body), "the log": h.log.String()} {
				if strings.Contains(text, "CANARY") {
					t.Errorf("%s has a canary:\n%s", where, text)
				}
			}
			if text := strings.Join(append(row.Reasons, row.Resource), "\n"); strings.Contains(text, "CANARY") {
				t.Errorf("the row's reasons have a canary:\n%s", text)
			}
			again := read[result](h.evaluate(acme, in))
			if diff := cmp.Diff(got, again, cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Replayed" }, cmp.Ignore())); diff != "" {
				t.Errorf("a repetition (-first +again):\n%s", diff)
			}
		})
	}
}
