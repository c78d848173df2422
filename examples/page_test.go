package examples_test

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/authoring/suite"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

// pages are the pages for authors, whose tables these tests check.
var pages = []string{"policies", "globs", "conditions", "limits-over-time", "cel-and-rego", "missing"}

// page returns the text of the pages for authors.
func page(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range pages {
		all.Write(must.Get(os.ReadFile("../docs/" + name + ".md"))(t))
		all.WriteByte('\n')
	}
	return all.String()
}

// table is a table of the pages. Each row has its cells in the order of header.
type table struct {
	header []string
	rows   [][]string
}

// code matches a text in backquotes.
var code = regexp.MustCompile("`[^`]*`")

// tables returns the tables of the pages. The key of a table begins with the header of its first
// column.
func tables(t *testing.T) map[string]table {
	t.Helper()
	text := page(t)
	all := make(map[string]table)
	var rows [][]string
	for line := range strings.Lines(text + "\n") {
		if strings.HasPrefix(line, "|") {
			rows = append(rows, cellsOf(line))
			continue
		}
		if len(rows) > 2 {
			name := strings.Join(rows[0][:2], " | ")
			if _, twice := all[name]; twice && name != "member | is" && name != "intent | " {
				t.Errorf("two tables begin with %s", name)
			}
			all[name] = table{rows[0], rows[2:]}
		}
		rows = nil
	}
	return all
}

// cellsOf returns the cells of a line of a table.
func cellsOf(line string) []string {
	hidden := code.ReplaceAllStringFunc(line, func(s string) string { return strings.ReplaceAll(s, "|", "\x00") })
	cells := strings.Split(strings.Trim(strings.TrimSpace(hidden), "|"), "|")
	for i := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
	}
	return cells
}

// named returns the table called name, and fails the test if it has fewer than the given rows.
func named(t *testing.T, name string, rows int) table {
	t.Helper()
	found := tables(t)[name]
	if len(found.rows) < rows {
		t.Fatalf("the table %q has %d rows, want at least %d", name, len(found.rows), rows)
	}
	return found
}

// codes returns the texts of a cell that are in backquotes.
func codes(cell string) (all []string) {
	for _, s := range code.FindAllString(cell, -1) {
		all = append(all, strings.Trim(s, "`"))
	}
	return all
}

func anyPolicy() *engine.ActionPolicy {
	return &engine.ActionPolicy{
		PolicyID: "0c0ffee0-0000-4000-8000-000000000099", Version: 1, OrganizationID: "demo", AgentID: "*",
		AllowedActionTypes: []string{"*"}, Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
	}
}

func anyIntent() map[string]any {
	return map[string]any{
		"intent_id": "5eed0000-0000-4000-8000-000000000099", "policy_id": anyPolicy().PolicyID, "agent_id": "bot",
		"action_type": "sql.read", "resource": "warehouse/sales/orders", "issued_at": "2026-11-02T10:00:00Z",
	}
}

// with returns an intent that has the given value at path.
func with(path string, value any) map[string]any {
	all := anyIntent()
	set(all, path, value)
	return all
}

// set sets the member of an intent at a path. Nil removes the member. In a path that begins with
// "metadata.", the rest is one key.
func set(all map[string]any, path string, value any) {
	member, key, nested := strings.Cut(path, ".")
	switch {
	case !nested && value == nil:
		delete(all, member)
		return
	case !nested:
		all[member] = value
		return
	}
	object, _ := all[member].(map[string]any)
	if object == nil {
		object = make(map[string]any)
	}
	if object[key], all[member] = value, object; value == nil {
		delete(object, key)
	}
}

func evaluate(t *testing.T, doc *engine.ActionPolicy, rules []engine.Rule, members map[string]any) engine.Result {
	t.Helper()
	p := must.Get(engine.CompilePolicy(doc))(t)
	var at time.Time
	if text, ok := members["decided_at"].(string); ok { // no member of the intent
		at = must.Get(condition.ParseTime(text))(t)
		members = maps.Clone(members)
		delete(members, "decided_at")
	}
	data := must.Get(json.Marshal(members))(t)
	in, err := engine.DecodeIntent(data, "intent")
	if err == nil {
		err = in.Validate()
	}
	if err != nil {
		t.Fatalf("%v: %v", members, err)
	}
	set := engine.CompileRules(rules, engine.Options{CompileRego: rego.CompileCondition})
	for _, broken := range set.Broken() {
		t.Fatalf("%s: %v", rules[0].Condition, broken.Err)
	}
	return engine.Evaluate(p, set, &engine.Input{Intent: in, DecidedAt: at})
}

// rule returns an active rule with the given condition, decision and priority.
func rule(condition string, decision engine.Decision, priority int64) engine.Rule {
	return engine.Rule{
		ID: decision.String() + condition, Name: "r", Condition: condition, IsActive: true, Priority: priority,
		Action: `{"decision":"` + decision.String() + `"}`,
	}
}

// says returns the verdict of a condition on an intent: match, no match or error. It checks that
// the verdict is the same for rules that deny, ask for approval and allow.
func says(t *testing.T, condition string, members map[string]any) string {
	t.Helper()
	var all []string
	for _, decision := range []engine.Decision{engine.Deny, engine.ApprovalRequired, engine.Allow} {
		res := evaluate(t, anyPolicy(), []engine.Rule{rule(condition, decision, 100)}, members)
		decided := slices.ContainsFunc(res.Findings, func(f engine.Finding) bool { return f.RuleID != "" })
		verdict := "no match"
		switch {
		case res.ConditionErrors.Total() > 0:
			verdict = "error"
			if decided != (decision != engine.Allow) {
				t.Errorf("%s is an error, with which a rule that says %v decides: %v", condition, decision, decided)
			}
		case decided:
			verdict = "match"
		}
		all = append(all, verdict)
	}
	if len(slices.Compact(all)) != 1 {
		t.Errorf("%s: deny, approval_required and allow say %q", condition, all)
	}
	return all[0]
}

// TestPage_Globs checks each cell in the tables of globs against a decision.
func TestPage_Globs(t *testing.T) {
	decide := func(where, pattern, text string) bool {
		doc, path := anyPolicy(), "resource"
		switch where {
		case "allowed_resource_patterns":
			doc.AllowedResourcePatterns = []string{pattern}
		case "blocked_resource_patterns":
			doc.BlockedResourcePatterns = []string{pattern}
		case "allowed_action_types":
			doc.AllowedActionTypes, path = []string{pattern}, "action_type"
		case "denied_action_types":
			doc.DeniedActionTypes, path = []string{pattern}, "action_type"
		case "agent_id":
			doc.AgentID, path = pattern, "agent_id"
		default:
			return says(t, `{"`+where+`":"`+pattern+`"}`, with(where, text)) == "match"
		}
		// The page shows one pattern as a mistake.
		if warned := doc.Warnings(); (len(warned) > 0) != (pattern == "mailto:*") {
			t.Errorf("%s earns the warnings %v", pattern, warned)
		}
		allowed := evaluate(t, doc, nil, with(path, text)).Decision == engine.Allow
		return allowed != (strings.HasPrefix(where, "blocked") || strings.HasPrefix(where, "denied"))
	}
	check := func(where, pattern, matches, not string) {
		for _, text := range codes(matches) {
			if !decide(where, pattern, text) {
				t.Errorf("%s %s does not match %s", where, pattern, text)
			}
		}
		for _, text := range codes(not) {
			if decide(where, pattern, text) {
				t.Errorf("%s %s matches %s", where, pattern, text)
			}
		}
	}
	for _, r := range named(t, "`allowed_resource_patterns` | allows", 10).rows {
		check("allowed_resource_patterns", codes(r[0])[0], r[1], r[2])
	}
	for _, r := range named(t, "`blocked_resource_patterns` | blocks", 10).rows {
		check("blocked_resource_patterns", codes(r[0])[0], r[1], r[2])
	}
	for _, r := range named(t, "pattern | where", 8).rows {
		check(codes(r[1])[0], codes(r[0])[0], r[2], r[3])
	}
}

// TestDecision_Rules_MissingKeys checks the table of verdicts for each form: on an intent without
// the key, and on a value that is not a number.
func TestDecision_Rules_MissingKeys(t *testing.T) {
	many := anyIntent()
	many["metadata"] = map[string]any{"env": "many", "n": "many"}
	for _, r := range named(t, "condition | without the key or the cost", 20).rows {
		condition := codes(r[0])[0]
		if got := says(t, condition, anyIntent()); got != r[1] {
			t.Errorf("%s without the key: %s, the page says %s", condition, got, r[1])
		}
		if got := says(t, condition, with("metadata.other", "x")); got != r[1] {
			t.Errorf("%s with another key: %s, the page says %s", condition, got, r[1])
		}
		if r[2] == "" {
			continue // the condition is about a cost, whose type is never wrong
		}
		if got := says(t, condition, many); got != r[2] {
			t.Errorf("%s of many: %s, the page says %s", condition, got, r[2])
		}
	}
}

// TestPage_ErrorsTighten checks the table of the effects of a match, no match and an error.
func TestPage_ErrorsTighten(t *testing.T) {
	conditions := []string{`{}`, `{"action_type":"none"}`, `{"cel":"intent.metadata.env == 'prod'"}`}
	decisions := map[string]engine.Decision{"denies": engine.Deny, "asks for approval": engine.ApprovalRequired, "allows": engine.Allow}
	shown := named(t, "the condition of a rule that | is a match", 3)
	for _, r := range shown.rows {
		for i, condition := range conditions {
			first := rule(condition, decisions[r[0]], 200)
			got := "the next rule"
			for _, f := range evaluate(t, anyPolicy(), []engine.Rule{first}, anyIntent()).Findings {
				if f.RuleID != "" {
					got = f.Outcome.String()
				}
			}
			below := evaluate(t, anyPolicy(), []engine.Rule{first, rule(`{}`, engine.Deny, 100)}, anyIntent())
			if got == "approval_required" && below.Decision == engine.Deny {
				got += ", and a rule below it can still deny"
			}
			if got != r[i+1] {
				t.Errorf("a rule that %s, whose condition %s: %s, the page says %s", r[0], shown.header[i+1], got, r[i+1])
			}
		}
	}
}

// TestPage_FourForms checks that the four forms of a condition have the same verdicts.
func TestPage_FourForms(t *testing.T) {
	deploy := anyIntent()
	deploy["action_type"], deploy["resource"] = "deploy.apply", "k8s/prod/api"
	deploy["cost"] = map[string]any{"amount_minor": 5001, "currency": "EUR"}
	other := map[string]any{"cost.amount_minor": 5000, "resource": "k8s/staging/api", "action_type": "sql.read", "cost": nil}
	for _, r := range named(t, "form | condition", 4).rows {
		condition := codes(r[1])[0]
		if got := says(t, condition, deploy); got != "match" {
			t.Errorf("%s = %s, want match", condition, got)
		}
		for path, value := range other {
			in := map[string]any{}
			for k, v := range deploy {
				in[k] = v
			}
			in["cost"] = map[string]any{"amount_minor": 5001, "currency": "EUR"}
			set(in, path, value)
			if got := says(t, condition, in); got != "no match" {
				t.Errorf("%s with %s = %v: %s, want no match", condition, path, value, got)
			}
		}
	}
}

// metadataKey finds the metadata key in a condition.
var metadataKey = regexp.MustCompile(`metadata\.\w+`)

// TestPage_Values checks the table of values for which conditions on a metadata key hold.
func TestPage_Values(t *testing.T) {
	for _, r := range named(t, "condition | holds for", 6).rows {
		condition := codes(r[0])[0]
		for i, want := range []string{"match", "no match"} {
			for _, value := range codes(r[i+1]) {
				if got := says(t, condition, with(metadataKey.FindString(condition), value)); got != want {
					t.Errorf("%s of %s = %s, want %s", condition, value, got, want)
				}
			}
		}
	}
	for _, r := range named(t, "CEL condition | matches", 4).rows {
		condition := codes(r[0])[0]
		for i, want := range []string{"match", "no match"} {
			for _, assignment := range codes(r[i+1]) {
				path, value, ok := strings.Cut(assignment, "=")
				if !ok {
					continue
				}
				if got := says(t, condition, with(path, value)); got != want {
					t.Errorf("%s with %s = %s, want %s", condition, assignment, got, want)
				}
			}
		}
	}
}

// TestPage_Absence checks the conditions that say what happens to an intent without the key.
func TestPage_Absence(t *testing.T) {
	for _, r := range named(t, "so that an intent without `env` | match object", 2).rows {
		want := map[string]string{"matches": "match", "does not": "no match"}[r[0]]
		for _, cell := range r[1:3] {
			condition := codes(cell)[0]
			for value, want := range map[any]string{nil: want, "prod": "match", "dev": "no match"} {
				in := anyIntent()
				if value != nil {
					in = with("metadata.env", value)
				}
				if got := says(t, condition, in); got != want {
					t.Errorf("%s of env %v = %s, want %s", condition, value, got, want)
				}
			}
		}
	}
	// The last column shows lines that are added to a condition in Rego.
	const prod = "package r\nmatch if input.intent.metadata.env == \"prod\"\n"
	if got := says(t, `{"rego":`+quote(prod+"match if not input.intent.metadata.env")+`}`, anyIntent()); got != "match" {
		t.Errorf("with a second match = %s", got)
	}
	if got := says(t, `{"rego":`+quote("input.intent.metadata.env\ninput.intent.metadata.env != \"dev\"")+`}`, anyIntent()); got != "no match" {
		t.Errorf("with a line of its own = %s", got)
	}
}

// TestDecision_Rules_OneSurelyFalsePartIsFalse checks this decision for the four forms: "where
// several parts must hold, one that is surely false makes the whole false, whatever another would
// have failed at, in every form".
func TestDecision_Rules_OneSurelyFalsePartIsFalse(t *testing.T) {
	for _, r := range named(t, "several parts | `env` is `dev`, `n` is `many`", 4).rows {
		for i, env := range []string{"dev", "prod"} {
			in := with("metadata.env", env)
			set(in, "metadata.n", "many")
			if got := says(t, codes(r[0])[0], in); got != r[i+1] {
				t.Errorf("%s with env %s = %s, want %s", r[0], env, got, r[i+1])
			}
		}
	}
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestPage_ConditionsCompile checks that every condition on the page is valid.
func TestPage_ConditionsCompile(t *testing.T) {
	text := page(t)
	count := 0
	for _, span := range code.FindAllString(text, -1) {
		if condition := strings.Trim(span, "`"); condition == "{}" || strings.HasPrefix(condition, `{"`) {
			count++
			if err := engine.ValidateRule(rule(condition, engine.Deny, 1), engine.Options{CompileRego: rego.CompileCondition}); err != nil {
				t.Errorf("%s: %v", condition, err)
			}
		}
	}
	if count < 40 {
		t.Errorf("found %d conditions", count)
	}
}

// TestPage_Members checks that the tables of intents, policies and rules have every member.
func TestPage_Members(t *testing.T) {
	found := memberTables(t)
	for i, want := range [][]string{
		engine.MemberNames(reflect.TypeFor[engine.Intent]()),
		engine.MemberNames(reflect.TypeFor[engine.ActionPolicy]()),
		engine.MemberNames(reflect.TypeFor[engine.Rule]()),
	} {
		if !slices.Equal(slices.Sorted(slices.Values(found[i])), slices.Sorted(slices.Values(want))) {
			t.Errorf("the page has the members %v, want %v", found[i], want)
		}
	}
}

// memberTables returns the members that are named in each table of members.
func memberTables(t *testing.T) (all [][]string) {
	t.Helper()
	text := page(t)
	for _, part := range strings.Split(text, "\n| member | is |\n")[1:] {
		var members []string
		for line := range strings.Lines(part) {
			if !strings.HasPrefix(line, "|") {
				break
			}
			members = append(members, codes(cellsOf(line)[0])...)
		}
		all = append(all, members)
	}
	if len(all) != 3 {
		t.Fatalf("found %d tables of members, want 3", len(all))
	}
	return all
}

// TestPage_Module checks that the module on the page compiles, and decides as the page says.
func TestPage_Module(t *testing.T) {
	text := page(t)
	_, rule, ok := strings.Cut(text, "\n```yaml\nname: Nobody mails")
	rule, _, closed := strings.Cut("name: Nobody mails"+rule, "```")
	if !ok || !closed {
		t.Fatal("the page shows no module")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"rules.yaml": rule, "policy.yaml": modulePolicy, "suite_test.yaml": moduleSuite} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := loadSuite(t, filepath.Join(dir, "suite_test.yaml"))
	report, err := suite.Run(t.Context(), []*suite.Suite{s}, suite.Options{Rego: true})
	if err != nil || len(report.Results) != 5 {
		t.Fatalf("there are %+v, %v, want 5 results", report, err)
	}
	for _, r := range report.Failed() {
		t.Error(r)
	}
}

const modulePolicy = `policy_id: 0c0ffee0-0000-4000-8000-000000000018
version: 1
organization_id: demo
agent_id: "*"
allowed_action_types: ["email.*"]
status: active
updated_at: 2026-11-01T09:00:00Z
`

const moduleSuite = `policy: policy.yaml
rules: rules.yaml
now: 2026-11-02T10:00:00Z
intents: {mail: {agent_id: a, action_type: email.send, resource: outbox, metadata: {to: "a@x.example, b@x.example, c@OURS.example"}}}
tests:
  - {name: two outsiders, intent: mail, want: allow}
  - {name: three outsiders, intent: mail, set: {metadata.to: "a@x.example,b@x.example,c@x.example"}, want: deny}
  - {name: three outsiders in another spelling, intent: mail, set: {metadata.to: "a@x.example;Bob <b@x.example>\nc@x.example;d@ours.example"}, want: deny}
  - {name: nobody, intent: mail, set: {metadata: null}, want: deny}
  - {name: a draft, intent: mail, set: {metadata: null, action_type: email.draft}, want: allow}
`
