package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

func TestReadPlans_RulesAndTokensAreOptional(t *testing.T) {
	const rest = `"evaluations":1,"agents":2,"policies":3,"retention_days":4`
	plans, err := readPlans([]byte(`{"free":{"name":"free",` + rest + `},"pro":{"name":"pro","rules":7,"tokens":8,` + rest +
		`},"business":{"name":"business","rules":0,"tokens":0,` + rest + `},"own":{"name":"own",` + rest + `}}`))
	must(t, err)
	for plan, want := range map[string][2]int{"free": {100, 100}, "pro": {7, 8}, "business": {0, 0}, "own": {10_000, 10_000}} {
		want := engine.Plan{Name: plan, Evaluations: 1, Agents: 2, Policies: 3, Rules: want[0], Tokens: want[1], RetentionDays: 4}
		if diff := cmp.Diff(want, plans[plan]); diff != "" {
			t.Errorf("readPlans()[%s] (-want +got):\n%s", plan, diff)
		}
	}
}

func TestReadPlans_RefusesWhatIsMissingOrOutOfRange(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want string // each text must be in an error, in this order
	}{
		"missing limits":  {`{"free":{"name":"free"}}`, "plans.free.evaluations: is required; plans.free.agents: is required; plans.free.policies: is required; plans.free.retention_days: is required"},
		"negative":        {`{"free":{"name":"free","evaluations":-1,"agents":1,"policies":1,"rules":-2,"retention_days":-7}}`, "plans.free.evaluations: want an integer from 0 to 9007199254740991; plans.free.rules: want an integer from 0 to 9007199254740991; plans.free.retention_days: want an integer from 0 to 53375"},
		"of another name": {`{"free":{"name":"gratis","evaluations":1,"agents":1,"policies":1,"retention_days":7}}`, `plans.free.name: got "gratis", want the plan's key, "free"`},
		"without a name":  {`{"free":{"evaluations":1,"agents":1,"policies":1,"retention_days":7}}`, `plans.free.name: is required: want the plan's key, "free"`},
		"without free":    {`{}`, `plans: no plan "free": it is that of organizations without a subscription`},
		"an array":        {`[]`, "plans: want an object, got an array"},
		"a text":          {`{"free":{"csv_export":"yes"}}`, "plans.free.csv_export: want true or false, got a string"},
		"misspelt":        {`{"free":{"retention":7}}`, "plans.free.retention: unknown field"},
		"not JSON":        {`{`, "plans: is not valid JSON"},
	} {
		_, err := readPlans([]byte(tt.file))
		if invalid := (*engine.InvalidError)(nil); !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "invalid: "+tt.want) {
			t.Errorf("%s: readPlans(%s) = %v, want %s", name, tt.file, err, tt.want)
		}
	}
}

// TestReadPlans_Docs checks that the file of plans in docs/plans.md has the built-in plans.
func TestReadPlans_Docs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "plans.md"))
	must(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	plans, err := readPlans([]byte(example))
	must(t, err)
	if diff := cmp.Diff(engine.DefaultPlans(), plans); diff != "" {
		t.Errorf("the plans of docs/plans.md (-built in +shown):\n%s", diff)
	}
}
