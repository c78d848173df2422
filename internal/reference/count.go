package reference

import "fmt"

// Named lists the events that must occur in at least 2 % of the generated cases. Among them are
// each check that can fail, each form, missing keys, errors and folded ids. Each reader must also
// be the only one that objects in 2 % of the cases.
var Named = []string{
	"organization.stopped", "policy.inactive", "agent.disabled", "agent.unregistered", "agent.mismatch", "action.denied", "action.not_allowed",
	"resource.blocked", "resource.not_allowed", "cost.exceeded", "cost.currency", "usage.limit",
	"rule.deny", "rule.approval_required", "rule.allow", "policy.allowed",
	"form 1", "form 2", "form 3", "form 4", "missing key", "no number", "undecided", "folded id", "folded type",
	"reader client", "reader browser", "reader server", "reader literal", "reader POSIX", "reader Windows", "reader addresses",
	"decision allow", "decision approval_required", "decision deny",
}

// Count counts the events of a case in counts. The keys are the names in Named.
func Count(counts map[string]int, o Outcome) {
	once := map[string]bool{"decision " + o.Decision: true}
	for _, code := range o.Codes {
		once[code] = true
	}
	for f, asked := range o.Notes.Asked {
		once[fmt.Sprintf("form %d", f+1)] = asked
	}
	once["missing key"] = o.Notes.Missing
	once["no number"] = o.Notes.Erred
	once["undecided"] = o.Notes.Undecided
	once["folded id"] = o.Notes.FoldedID
	once["folded type"] = o.Notes.FoldedOp
	for _, by := range [][]string{o.Notes.BlockedBy, o.Notes.OutsideOf} {
		if len(by) == 1 {
			once["reader "+by[0]] = true
		}
	}
	for k, v := range once {
		if v {
			counts[k]++
		}
	}
}
