package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecision_Plans_Defaults(t *testing.T) {
	want := map[string]Plan{
		"free":     {Name: "free", Evaluations: 10_000, Agents: 5, Policies: 10, Rules: 100, Tokens: 100, RetentionDays: 7},
		"pro":      {Name: "pro", Evaluations: 1_000_000, Agents: 100, Policies: 500, Rules: 1000, Tokens: 1000, RetentionDays: 90},
		"business": {Name: "business", Evaluations: 50_000_000, Agents: 10_000, Policies: 50_000, Rules: 10_000, Tokens: 10_000, RetentionDays: 400, CSVExport: true},
	}
	if diff := cmp.Diff(want, DefaultPlans()); diff != "" {
		t.Errorf("DefaultPlans() (-want +got):\n%s", diff)
	}
}
