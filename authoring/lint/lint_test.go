package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
)

// has checks that the warnings are exactly the wanted ones, which are written as "rule@field".
func has(t *testing.T, got []lint.Warning, want ...string) {
	t.Helper()
	var names []string
	for _, w := range got {
		names = append(names, w.Rule+"@"+w.Field)
	}
	if !slices.Equal(names, want) {
		t.Errorf("warnings = %v, want %v\n%+v", names, want, got)
	}
}

func TestPolicy(t *testing.T) {
	type lists struct{ allowed, denied, allow, block []string }
	of := func(list ...string) []string { return list }
	for name, tc := range map[string]struct {
		lists
		want []string
	}{
		"nothing to say":                        {lists{of("sql.*"), of("sql.drop"), of("prod/**"), of("prod/[xX]/**")}, nil},
		"no action type":                        {lists{allowed: []string{}}, of("empty-allow@policy.allowed_action_types")},
		"a type twice":                          {lists{allowed: of("a", "b", "a")}, of("unreachable@policy.allowed_action_types[2]")},
		"a type in a wider one":                 {lists{allowed: of("sql.read", "sql.*")}, of("unreachable@policy.allowed_action_types[0]")},
		"case makes another type":               {lists{allowed: of("sql.*", "SQL.read")}, nil},
		"a type that is denied":                 {lists{allowed: of("sql.*", "sql_drop"), denied: of("Sql.Drop")}, of("unreachable@policy.allowed_action_types[1]")},
		"a denied type with other spellings":    {lists{allowed: of("a"), denied: of("sql.*", "sql.drop")}, nil},
		"a denied type in a wider one":          {lists{allowed: of("a"), denied: of("sql*", "sql.drop")}, of("unreachable@policy.denied_action_types[1]")},
		"all types denied":                      {lists{allowed: of("a"), denied: of("*", "b")}, of("match-all@policy.denied_action_types[0]")},
		"a pattern in a wider one":              {lists{allowed: of("a"), allow: of("x/**", "x/y")}, of("unreachable@policy.allowed_resource_patterns[1]")},
		"a comma ends an allowed star":          {lists{allowed: of("a"), allow: of("*", "x,y")}, nil},
		"a comma ends no blocked star":          {lists{allowed: of("a"), block: of("?", "*")}, of("unreachable@policy.blocked_resource_patterns[0]")},
		"a pattern that is blocked":             {lists{allowed: of("a"), allow: of("1/**", "1/2/*"), block: of("**/2/**")}, of("unreachable@policy.allowed_resource_patterns[1]")},
		"a pattern that is blocked in part":     {lists{allowed: of("a"), allow: of("1/**"), block: of("1/2/**")}, nil},
		"all resources blocked":                 {lists{allowed: of("a"), allow: of("1/**"), block: of("1/2", "**")}, of("match-all@policy.blocked_resource_patterns[1]")},
		"a star that blocks is no match-all":    {lists{allowed: of("a"), block: of("*")}, nil},
		"a regular expression of a type":        {lists{allowed: of(".*")}, of("regex-like@policy.allowed_action_types[0]")},
		"a regular expression":                  {lists{allowed: of("a"), allow: of(".*_pii$")}, of("regex-like@policy.allowed_resource_patterns[0]")},
		"alternatives of a regular expression":  {lists{allowed: of("a"), allow: of("db/(users|orders)")}, of("regex-like@policy.allowed_resource_patterns[0]")},
		"a digit of a regular expression":       {lists{allowed: of("a"), allow: of(`db/\d+`)}, of("regex-like@policy.allowed_resource_patterns[0]")},
		"names that are no regular expressions": {lists{allowed: of("sql.*"), allow: of("reports/q1.*", `C:\data\**`, `\\host\C$`, "a(b)/c++/*", "home/.*", "price$/x")}, nil},
		"letters of one case":                   {lists{allowed: of("a"), block: of("1/pii/**")}, of("case@policy.blocked_resource_patterns[0]")},
		"letters of both cases":                 {lists{allowed: of("a"), block: of("1/[pP][iI][iI]/**", "2/{[a-f],[A-F]}/[!a]")}, nil},
		"a class of one case":                   {lists{allowed: of("a"), block: of("1/[a-f]")}, of("case@policy.blocked_resource_patterns[0]")},
		"letters of URLs and addresses":         {lists{allowed: of("a"), block: of("https://x.example/**", "mailto:legal@*", "ceo@x.example", `C:\Users\**`, "s3://b/**")}, nil},
		"letters that are allowed in one case":  {lists{allowed: of("a"), allow: of("db/1*"), block: of("db/1/**")}, nil},
		"letters of alternatives":               {lists{allowed: of("a"), allow: of("db/{x,y}/1*"), block: of("db/x/1/**", "db/y/1")}, nil},
		"letters that are allowed in both":      {lists{allowed: of("a"), allow: of("db/**", "DB/**"), block: of("db/1/**")}, of("case@policy.blocked_resource_patterns[0]")},
		"next to nothing":                       {lists{allowed: of("a"), allow: of("https://x.example"), block: of("/1")}, of("matches-little@policy.allowed_resource_patterns[0]", "matches-little@policy.blocked_resource_patterns[0]")},
	} {
		t.Run(name, func(t *testing.T) {
			p := &engine.ActionPolicy{
				PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
				AllowedActionTypes: tc.allowed, DeniedActionTypes: tc.denied, AllowedResourcePatterns: tc.allow, BlockedResourcePatterns: tc.block,
			}
			compilePolicy(t, p)
			has(t, lint.Policy(p), tc.want...)
		})
	}
}

func docs(rules ...string) string {
	s := "["
	for i, r := range rules {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprintf(`{"name":"n%d","priority":%d,%s}`, i, 900-i, r)
	}
	return s + "]"
}

func rule(decision, condition string) string {
	return `"action":{"decision":"` + decision + `"},"condition":` + condition
}

func TestRules(t *testing.T) {
	deny := func(c string) string { return rule("deny", c) }
	wait := func(c string) string { return rule("approval_required", c) }
	allow := func(c string) string { return rule("allow", c) }
	for name, tc := range map[string]struct {
		rules string
		want  []string
	}{
		"unguarded cost":                      {docs(wait(`{"cost.amount_minor":{"$gt":5}}`)), []string{"unguarded-key@rules[0].condition"}},
		"unguarded cost in CEL":               {docs(wait(`{"cel":"intent.cost.amount_minor > 5"}`)), []string{"unguarded-key@rules[0].condition"}},
		"unguarded in Rego":                   {docs(wait(`{"rego":"input.intent.metadata.env == \"prod\""}`)), []string{"unguarded-key@rules[0].condition"}},
		"unguarded cost in Rego":              {docs(wait(`{"rego":"input.intent.cost.amount_minor > 5"}`)), []string{"unguarded-key@rules[0].condition"}},
		"guarded in CEL":                      {docs(deny(`{"cel":"has(intent.cost) && intent.cost.amount_minor > 5"}`)), nil},
		"guarded in Rego":                     {docs(deny(`{"rego":"input.intent.cost; input.intent.cost.amount_minor > 5"}`)), nil},
		"absence is denied by another":        {docs(deny(`{"action_type":"a","metadata.x":"1"}`), deny(`{"action_type":{"$in":["a","b"]},"metadata.x":{"$exists":false}}`)), nil},
		"absence is denied of another action": {docs(deny(`{"action_type":"a","metadata.x":"1"}`), deny(`{"action_type":"b","metadata.x":{"$exists":false}}`)), []string{"unguarded-key@rules[0].condition"}},
		"absence of a deny only waits":        {docs(deny(`{"action_type":"a","metadata.x":"1"}`), wait(`{"action_type":"a"}`)), []string{"unguarded-key@rules[0].condition"}},
		"an allow lifts what decides absence": {docs(deny(`{"action_type":"a","metadata.x":"1"}`), allow(`{"action_type":"a","resource":"r"}`), deny(`{"action_type":"a"}`)), []string{"unguarded-key@rules[0].condition"}},

		"metadata allows":             {docs(allow(`{"metadata.env":{"$ne":"prod"}}`)), []string{"caller-lifts@rules[0].condition"}},
		"metadata allows in CEL":      {docs(allow(`{"cel":"'t' in intent.metadata"}`)), []string{"caller-lifts@rules[0].condition"}},
		"any metadata allows in CEL":  {docs(allow(`{"cel":"intent.metadata.exists(k, k == 't')"}`)), []string{"caller-lifts@rules[0].condition", "no-rego@rules[0].condition"}},
		"two fields in CEL":           {docs(allow(`{"cel":"intent.resource == intent.agent_id"}`)), []string{"no-rego@rules[0].condition"}},
		"metadata allows in Rego":     {docs(allow(`{"rego":"m := input.intent.metadata; m.t == \"x\""}`)), []string{"caller-lifts@rules[0].condition"}},
		"facts allow":                 {docs(allow(`{"cel":"'fact.t' in intent.metadata"}`)), nil},
		"facts allow in Rego":         {docs(allow(`{"rego":"input.intent.metadata[\"fact.t\"] == \"x\""}`)), nil},
		"cost and resource may allow": {docs(allow(`{"cost.amount_minor":{"$lt":5},"resource":"r/**"}`)), nil},

		"an allow over another's approval":       {docs(allow(`{"resource":"r"}`), wait(`{"action_type":"a"}`)), []string{"lifts-unrelated@rules[0].condition"}},
		"an allow over an approval it knows":     {docs(allow(`{"resource":"r","action_type":"a*"}`), wait(`{"action_type":"a"}`)), nil},
		"an allow under another's approval":      {docs(wait(`{"action_type":"a"}`), allow(`{"resource":"r"}`)), nil},
		"an allow over another's deny":           {docs(allow(`{"resource":"r"}`), deny(`{"action_type":"a"}`)), nil},
		"the cost and its parts are one field":   {docs(allow(`{"cost":{"$exists":false}}`), wait(`{"cost.currency":{"$ne":"EUR"}}`)), nil},
		"an allow in Rego over an approval":      {docs(allow(`{"rego":"input.intent.resource == \"r\""}`), wait(`{"action_type":"a"}`)), []string{"lifts-unrelated@rules[0].condition"}},
		"the agent of the intent is the agent's": {docs(deny(`{"agent_id":"a"}`), wait(`{"agent.id":"a"}`)), []string{"shadowed@rules[1].condition"}},

		"never true":                                {docs(deny(`{"$and":[{"action_type":"a"},{"action_type":"b"}]}`)), []string{"shadowed@rules[0].condition"}},
		"no cost is negative":                       {docs(deny(`{"cost":{"$exists":true},"cost.amount_minor":{"$lt":0}}`)), []string{"shadowed@rules[0].condition"}},
		"never true of numbers":                     {docs(allow(`{"cel":"intent.cost.amount_minor > 5 && intent.cost.amount_minor < 4"}`)), []string{"shadowed@rules[0].condition"}},
		"an error may match":                        {docs(deny(`{"cel":"'n' in intent.metadata && int(intent.metadata.n) > 5 && int(intent.metadata.n) < 4"}`)), nil},
		"below what always matches":                 {docs(wait(`{}`), deny(`{"action_type":"a"}`), allow(`{"rego":"input.intent.action_type == \"a\""}`)), []string{"shadowed@rules[1].condition", "shadowed@rules[2].condition"}},
		"below an allow that covers it":             {docs(allow(`{"action_type":"a.*"}`), deny(`{"action_type":"a.b"}`)), []string{"shadowed@rules[1].condition"}},
		"in another form":                           {docs(deny(`{"cel":"intent.action_type in ['a', 'b']"}`), wait(`{"all":[{"field":"action_type","op":"eq","value":"a"}]}`)), []string{"shadowed@rules[1].condition"}},
		"covered by two":                            {docs(deny(`{"action_type":"a.*"}`), deny(`{"action_type":"b.*"}`), wait(`{"action_type":{"$in":["a.1","b.1"]}}`)), nil},
		"either part covered by another":            {docs(deny(`{"action_type":"a.*"}`), deny(`{"action_type":"b.*"}`), wait(`{"$or":[{"action_type":"a.1"},{"action_type":"b.*"}]}`)), []string{"shadowed@rules[2].condition"}},
		"a greater amount":                          {docs(deny(`{"cost":{"$exists":true},"cost.amount_minor":{"$gt":5}}`), wait(`{"cost":{"$exists":true},"cost.amount_minor":{"$gte":6},"agent_id":"x"}`)), []string{"shadowed@rules[1].condition"}},
		"a lesser amount":                           {docs(deny(`{"cost":{"$exists":true},"cost.amount_minor":{"$gt":5}}`), wait(`{"cost":{"$exists":true},"cost.amount_minor":{"$gte":5}}`)), nil},
		"an approval that may be an error":          {docs(wait(`{"metadata.n":{"$exists":true,"$gt":5}}`), deny(`{"metadata.n":{"$exists":true,"$gt":6}}`)), nil},
		"a resource in a wider one":                 {docs(deny(`{"resource":"r/**"}`), wait(`{"resource":"r/s/*"}`)), []string{"shadowed@rules[1].condition"}},
		"any reading of a block is no allowance's":  {docs(allow(`{"resource":"r/**"}`), deny(`{"resource":"r/s/*"}`)), nil},
		"each reading of an allowance is a block's": {docs(deny(`{"resource":"r/**"}`), allow(`{"resource":"r/s/*"}`)), []string{"shadowed@rules[1].condition"}},
		"in other words": {docs(deny(`{"cost":{"$exists":true},"cost.amount_minor":{"$not":{"$lte":5}}}`),
			wait(`{"cost":{"$exists":true},"cost.amount_minor":{"$gt":5},"agent_id":"x"}`)), []string{"shadowed@rules[1].condition"}},
		"each reading by another": {docs(allow(`{"cel":"intent.resource == 'a%2Fb'"}`), allow(`{"cel":"intent.resource == 'a/b'"}`),
			allow(`{"cel":"intent.resource == 'a%2Fb' || intent.resource == 'a/b'"}`)), nil},
		"more cases than are looked at": {docs(deny(`{"action_type":{"$in":["a0","a1"]}}`), wait(`{"$or":[`+strings.Repeat(`{"action_type":"a0","agent_id":"x"},`, 40)+`{"action_type":"a2"}]}`)), nil},
		"not active decides nothing":    {docs(`"isActive":false,`+wait(`{}`), deny(`{"action_type":"a"}`)), nil},
		"an order that is not known":    {`[{"name":"a","condition":{"action_type":"a.*"},"action":{"decision":"deny"}},{"name":"b","condition":{"action_type":"a.b"},"action":{"decision":"deny"}}]`, nil},
		"an order by age": {`[{"name":"a","id":"1","createdAt":"2026-01-01T00:00:00Z","condition":{"action_type":"a.*"},"action":{"decision":"deny"}},
			{"name":"b","id":"2","createdAt":"2026-01-02T00:00:00Z","condition":{"action_type":"a.b"},"action":{"decision":"deny"}}]`, []string{"shadowed@rules[1].condition"}},
		"the stricter on a tie": {`[{"name":"a","condition":{"action_type":"a.b"},"action":{"decision":"allow"}},{"name":"b","condition":{"action_type":"a.*"},"action":{"decision":"deny"}}]`, []string{"shadowed@rules[0].condition"}},

		"a regular expression as a glob": {docs(deny(`{"resource":{"$glob":"^prod/.*"}}`)), []string{"regex-like@rules[0].condition"}},
		"a regular expression":           {docs(deny(`{"resource":{"$regex":"^prod/.*"}}`)), nil},
		"texts ordered in CEL":           {docs(deny(`{"cel":"intent.agent_id > '5'"}`)), []string{"string-order@rules[0].condition"}},
		"texts ordered in Rego":          {docs(deny(`{"rego":"input.intent.agent_id > \"5\""}`)), []string{"string-order@rules[0].condition"}},
		"names ordered":                  {docs(deny(`{"cel":"intent.agent_id > 'm'"}`)), nil},
		"one id":                         {docs(`"id":"x",`+deny(`{"action_type":"a"}`), `"id":"x",`+deny(`{"action_type":"b"}`)), []string{"duplicate@rules[1].id"}},
		"the same in other words":        {`[{"name":"a","condition":{"action_type":"a","resource":"r"},"action":{"decision":"deny"}},{"name":"b","condition":{"resource":"r","action_type":"a"},"action":{"effect":"block"}}]`, []string{"duplicate@rules[1].condition"}},
		"one name":                       {`[{"name":"a","condition":{"action_type":"a"},"action":{"decision":"deny"}},{"name":"a","condition":{"action_type":"b"},"action":{"decision":"deny"}}]`, []string{"duplicate@rules[1].name"}},
		"one name and ids":               {`[{"id":"1","name":"a","condition":{"action_type":"a"},"action":{"decision":"deny"}},{"id":"2","name":"a","condition":{"action_type":"b"},"action":{"decision":"deny"}}]`, nil},
	} {
		t.Run(name, func(t *testing.T) { has(t, lint.Rules(compile(t, rulesOf(t, tc.rules))), tc.want...) })
	}
}

// TestRules_ThatDoNotCompile checks that a nil rule, which did not compile, gets no warning. The
// indexes of the other rules stay the same.
func TestRules_ThatDoNotCompile(t *testing.T) {
	rules := compile(t, rulesOf(t, docs(rule("deny", `{}`), rule("deny", `{"metadata.env":"x"}`))))
	has(t, lint.Rules([]*engine.CompiledRule{nil, rules[1]}), "unguarded-key@rules[1].condition")
}
