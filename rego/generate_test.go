package rego

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// generator makes policies, rules and intents out of the same few words. So patterns match, costs
// equal their limits exactly, and rules tie.
type generator struct{ r *rand.Rand }

func newGenerator(seed uint64) *generator {
	return &generator{rand.New(rand.NewPCG(seed, 0x77726974))}
}

func (g *generator) one(words ...string) string { return words[g.r.IntN(len(words))] }

// chance returns true in n of 100 calls on average.
func (g *generator) chance(n int) bool { return g.r.IntN(100) < n }

// some returns at most most of words, in any order. The result may be empty.
func (g *generator) some(most int, words []string) []string {
	n := g.r.IntN(most + 1)
	list := make([]string, 0, n)
	for _, i := range g.r.Perm(len(words))[:min(n, len(words))] {
		list = append(list, words[i])
	}
	return list
}

var (
	actionTypes = []string{"deploy", "sql.read", "sql.write", "sql.write.bulk", "sql.drop", "sql", "sqlite.x", "http_post", "SQL.write", "s3.object.delete", "sql..drop", "Sql_Drop", "SQL..write"}
	actionGlobs = append([]string{"*", "sql.*", "*.delete", "s*.*.d*", "*q*.*r*", "sql.write*", "http_*", "*l.*", "**"}, actionTypes...)
	agents      = []string{"team-a/deployer", "team-a", "team-a/x/y", "team-b/deployer", "bot", "ops-1", "Bot", "a,b", "ＢＯＴ", "OPS-1"}
	agentGlobs  = append([]string{"*", "**", "team-a/*", "team-a/**", "team-?/*", "{team-a,team-b}/deployer", "ops-[0-9]", "[!a]ot", "[bB]ot", "team-{a/*,b}"}, agents...)

	resourceGlobs = []string{
		"prod/**", "prod/*", "prod/secrets/**", "prod/secrets/*", "*/secrets/**", "**/secrets/**", "**", "*", "?rod/*",
		"https://api.example.com/**", "https://API.example.com:443/v1/*", "https://*.example.com/**", "https://api.example.com/%7Ea/*",
		"https://api.example.com/v[12]/{users,orders}/*", "{prod,stage}/*/db", "prod/{a,b{c,d}}/**", "stage/[!a]*", "stage/[a-c]?", "[pP]rod/[sS]ecrets/**",
		"a\\*b", "x,y/*", "file:///etc/**", "/etc/**", "/etc/*", "db:prod:*", "arn:aws:s3:::bucket/*", "mailto:*@example.com", "**.exe", "a*b*c",
		"https://xn--bcher-kva.example/**", "prod/a.b+c(d)/*", "prod/[aA]*", "PROD/[pPx]*", "prod/a b", "*a*b/**", "**/*x*/**",
	}
	resources = []string{
		"prod/a", "prod/secrets/key", "prod/secrets", "prod/x/../secrets/key", "prod/x/..%2fsecrets/key", "prod%2Fsecrets%2Fkey", "prod\\secrets\\key",
		"prod//secrets/key", "prod/%73ecrets/key", "PROD/secrets/key", "../prod/a", "stage/eu/db", "prod/eu/db", "prod/bc/x/y", "stage/b1", "stage/ax", "stage/",
		"https://api.example.com/v1/users/7", "https://API.EXAMPLE.com:443/v1//orders/8", "https://api.example.com/v1/users%2F7", "http://api.example.com/v1/users/7",
		"https://user:pw@api.example.com/v1/x?q=1#frag", "https://api.example.com./~a/b", "https://api.example.com/%7Ea/b", "https://ap\u0456.example.com/x",
		"https://bücher.example/x", "https://www.example.com/", "file:///etc/passwd", "/etc/passwd", "/etc/./passwd", "/etc", "/ETC/passwd", "a*b", "a**b", "axbxc", "x,y/z",
		"db:prod:users", "arn:aws:s3:::bucket/key", "mailto:root@Example.com", "setup.exe", "c:/x/setup.exe", "ｐｒｏｄ/secrets/key", "prod/a.b+c(d)/e", "prod/a%20b", "日本/x",
	}
	metadataKeys = []string{"env", "region", "ticket id", "in", "n", "größe", "list"}
	items        = []string{"a", "b", "x@ours.example", "y@theirs.example", "5", "4.50", "é", "a,b", "X@OURS.example.", "y@ß.example"}
	lists        = []string{"", ",", " , ", "a", "a,b", " a , b ,", "a,,b", "x@ours.example, y@theirs.example", "x@ours.example", `["a","b"]`, `[ "a,b" , " b " ]`,
		`[]`, `[""]`, `["a",1]`, `["a",null]`, `["a"`, `["a"] b`, ` ["x@ours.example"]`, `["\ud800","\u00e9"]`, `[["a"]]`, `{"a":"b"}`, `"a"`, "5,4.5", "5,x", "\u00a0a\u00a0,b", "é,a", "['a','b']"}
	addressed = []string{"X <x@OURS.example>", `"y, a" <x@ours.example>; b`, `"y@theirs.example x"@ours.example`, "<y@theirs.example>@ours.example", "x@ours.example (y@theirs.example)",
		"x@ours.example y@theirs.example", "y@ß.example", "y@ss.example.", "mailto:x%40ours.example?cc=y@theirs.example", "mailto:x@ours.example?a=,&cc=y%40theirs.example&b=a@ours.example", "a@", "@ours.example",
		`["X <x@ours.example>", "a"]`, "x@ours.example\na", `"a"`, `"a;b"`, "a b <x@ours.example", "'y@theirs.example'", "x@y@ours.example"}
	metadataValues = []string{"prod", "dr", "", "5", "prod/eu", "Prod", "a,b", "é"}
	numbers        = []string{"0", "5", "-1", "+7", "005", "-0", "", "x", "1e3", " 5", "5\n", "5_0", "0x5", "5.0", "inf", "+", "--5", "٥",
		"4.5", "4.50", ".5", "5.", "-4.5", "0.1", "00.10", "9223372036854775807.50", "1.2.3", "1e400", "0000000000000000000000000000000000000005",
		"00000000000000000000000000000000000000005", "999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"00009223372036854775806", "10000000000000000000", "99999999999999999999999999999999"}
	instants = []string{"2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "2026-01-31T11:59:59.999999999Z", "2026-02-01T00:00:00Z", "1999-12-31T23:59:59Z", "2261-12-31T23:59:59Z", "1678-01-01T00:00:00Z", "2026-01-31T12:00:00.5+23:59"}
	amounts  = []int64{0, 1, 4999, 5000, 5001, condition.MaxInteger}
)

const policyID = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10"

func (g *generator) policy() *engine.ActionPolicy {
	p := &engine.ActionPolicy{
		PolicyID: policyID, Version: 1 + g.r.Int64N(3), OrganizationID: "acme", AgentID: g.one(agentGlobs...),
		AllowedActionTypes: g.some(5, actionGlobs), DeniedActionTypes: g.some(2, actionGlobs[1:]),
		AllowedResourcePatterns: g.some(5, resourceGlobs), BlockedResourcePatterns: g.some(4, resourceGlobs),
		Status: engine.StatusActive, UpdatedAt: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
	}
	g.relax(p)
	if g.chance(5) {
		p.Status = engine.Status(g.one("suspended", "revoked"))
	}
	if g.chance(40) {
		limit := amounts[g.r.IntN(len(amounts))]
		p.MaxCostMinor = &limit
	}
	if g.chance(30) {
		p.Currency = g.one("EUR", "USD")
	}
	return p
}

// relax changes p so that most of its checks pass. Then many intents reach the other checks and the
// rules, or are allowed.
func (g *generator) relax(p *engine.ActionPolicy) {
	if g.chance(75) {
		p.AllowedActionTypes = append(p.AllowedActionTypes, g.one("*", "*", "s*", "http_*"))
	}
	if g.chance(75) {
		p.AllowedResourcePatterns = append(p.AllowedResourcePatterns, "**")
	}
	if g.chance(75) {
		p.AgentID = g.one("**", "**", "team-a/**")
	}
	if g.chance(50) {
		p.DeniedActionTypes, p.BlockedResourcePatterns = p.DeniedActionTypes[:min(1, len(p.DeniedActionTypes))], nil
	}
}

// input returns a valid input for an evaluation.
func (g *generator) input() *engine.Input {
	for {
		in := &engine.Input{
			Intent: g.intent(), Agent: engine.AgentStatus(g.one("active", "active", "active", "active", "", "", "disabled")),
			RequireRegistered: g.chance(15), Usage: engine.Usage{Exceeded: g.chance(5)}, Stopped: g.chance(5), DecidedAt: g.decidedAt(),
		}
		if in.Intent.Validate() == nil {
			in.Names.Sent = in.Intent.AgentID
			if g.chance(50) {
				in.Names.ID = g.one(append(agents, in.Intent.AgentID)...)
			}
			if in.Names.ID != "" && g.chance(50) {
				in.Names.ExternalID = g.one(agents...)
			}
			return in
		}
	}
}

// decidedAt returns a time that is before, at or after the instants that conditions name.
func (g *generator) decidedAt() time.Time {
	at, err := condition.ParseTime(g.one(instants...))
	if err != nil {
		panic(err)
	}
	return at.UTC().Truncate(time.Millisecond)
}

func (g *generator) intent() *engine.Intent {
	in := &engine.Intent{
		IntentID: "5d1f7ab2-6bd0-4c4a-8f3e-6f6dd0f9b7aa", PolicyID: policyID, AgentID: g.one(agents...),
		ActionType: g.one(actionTypes...), Resource: g.resource(), IssuedAt: g.one(instants...),
	}
	if g.chance(70) {
		in.Cost = &engine.Cost{AmountMinor: amounts[g.r.IntN(len(amounts))], Currency: g.one("EUR", "EUR", "USD")}
	}
	if g.chance(70) {
		in.Metadata = map[string]string{}
		for _, key := range g.some(4, metadataKeys) {
			in.Metadata[key] = g.one(metadataValues...)
			switch key {
			case "n":
				in.Metadata[key] = g.one(numbers...)
			case "list":
				in.Metadata[key] = g.one(append(addressed, lists...)...)
			}
		}
	}
	return in
}

// resource returns one of the resources, one of them with a few bytes changed, or a text that fits
// a pattern.
func (g *generator) resource() string {
	switch g.r.IntN(4) {
	case 0:
		fill := strings.NewReplacer("**", g.one("x", "x/y", "..%2f", "%2e%2e/secrets"), "*", g.one("x", "", "a.b", "a%2Fb"), "?", g.one("x", "/"))
		return fill.Replace(g.one(resourceGlobs...))
	case 1:
		s := []byte(g.one(resources...))
		for range 1 + g.r.IntN(3) {
			at := g.r.IntN(len(s))
			s = append(s[:at:at], append([]byte(g.one("/", "%2F", "..", "%2e", "\\", "A", "*", "", "?", "#", ";", "%41", "/./", "é")), s[at+g.r.IntN(2):]...)...)
			if len(s) == 0 {
				return "x"
			}
		}
		return string(s)
	}
	return g.one(resources...)
}

// rules returns rules in all forms. They have only two priorities, so that many of them tie.
// failing says that an active rule's condition in Rego can fail.
func (g *generator) rules() (rules []engine.Rule, failing bool) {
	for i := range g.r.IntN(5) {
		condition, fails := g.condition()
		r := engine.Rule{
			ID: fmt.Sprintf("rule-%d", i), Name: g.one("plain", `a "quoted" name`, "ein Ümlaut: x # y", "- dash"), Condition: condition,
			Action: g.one(`{"decision":"allow"}`, `{"decision":"deny","reason":"no"}`, `{"effect":"wait"}`), Priority: int64(100 + g.r.IntN(2)),
			IsActive: g.chance(90), CreatedAt: time.Date(2026, 1, 2, 0, 0, g.r.IntN(2), 0, time.UTC),
		}
		switch { // such a module is for one action only
		case strings.Contains(condition, `\ndeny `):
			r.Action = `{"decision":"deny","reason":"no"}`
		case strings.Contains(condition, `\nallow `):
			r.Action = `{"decision":"allow"}`
		}
		rules = append(rules, r)
		failing = failing || fails && r.IsActive
	}
	return rules, failing
}

func (g *generator) condition() (doc string, failing bool) {
	switch g.r.IntN(8) {
	case 0, 1, 2:
		return marshal(g.match(2)), false
	case 3, 4:
		return marshal(g.tree(2)), false
	case 5, 6:
		return marshal(map[string]any{"cel": g.cel(2)}), false
	}
	if g.chance(10) {
		return marshal(map[string]any{"rego": `to_number(input.intent.metadata.env) > 1`}), true
	}
	source := g.one(regoSources...)
	if strings.HasPrefix(source, "package") && g.chance(50) {
		source = strings.Join(append([]string{source}, g.some(4, reasonSources)...), "\n\n")
	}
	return marshal(map[string]any{"rego": source}), false
}

// reasonSources are rules of messages. Some hold metadata.
var reasonSources = []string{
	`reason contains "no"`,
	"# Why.\nreason contains \"in prod\" if startswith(input.intent.resource, \"prod/\")",
	`reason contains sprintf("%s by %s", [input.intent.resource, input.agent.id])`,
	`reason contains concat(" ", ["", input.intent.action_type, "\u0001\n-", input.intent.agent_id, ""])`,
	`reason contains sprintf("%d!", [i]) if some i in numbers.range(1, 12)`,
	`reason contains concat("", [letter | some _ in numbers.range(1, 300); letter := "é"])`,
	`reason contains "no env" if not input.intent.metadata.env`,
	`reason contains msg if some msg in input.lists.things`,
	`reason contains $"{input.intent.cost.amount_minor} at {input.decided_at}"`,
	`reason contains json.marshal(input.intent.metadata)`,
	`reason contains msg if msg := input.intent.metadata.env`,
	"reason contains msg if {\n\tsome msg in [\"a\", \"prod\"]\n\tmsg == input.intent.metadata.env # a copy\n}",
	"reason contains sprintf(\"%d\", [count(reason_parts)])\n\nreason_parts := split(input.intent.resource, \"/\")",
}

var regoSources = []string{
	`input.intent.cost.amount_minor > 5000`,
	`startswith(input.intent.resource, "prod/")`,
	`not startswith(input.intent.resource, "prod/")`,
	`input.agent.status != "active"`,
	`input.policy.version >= 2; input.agent.id == input.intent.agent_id`,
	"package teams\n\nmembers := {\"team-a/deployer\", \"bot\"}\n\nmatch if input.intent.agent_id in data.teams.members",
	"package teams\n\nmembers := {\"team-b/deployer\"}\n\ndefault match := false\n\nmatch if input.intent.agent_id in members",
	"package p\n\nimport rego.v1\n\n# secret things\nsecret(r) if contains(r, \"secrets\")\n\nmatch if secret(input.intent.resource)",
	`input.intent.agent_id in input.lists.things`,
	`not input.intent.metadata.env in input.lists["things"]; count(input.lists.empty) == 0`,
	`count(object.keys(input)) == 4; not input.intent.metadata`,
	`time.parse_rfc3339_ns(input.decided_at) >= time.parse_rfc3339_ns("2026-01-31T12:00:00Z")`,
	`time.weekday([time.parse_rfc3339_ns(input.decided_at), "Europe/Berlin"]) in {"Saturday", "Sunday"}`,
	"package p\n\nmatch if time.clock([time.parse_rfc3339_ns(input.decided_at), \"Asia/Kolkata\"])[0] >= 17",
	`input.intent.action_type == "deploy"; input.intent.cost.amount_minor > 5000`,
	`input.intent.action_type in {"sql.read", "sql.write", "deploy"}; not input.intent.metadata.env`,
	`startswith(input.intent.action_type, "sql."); input.intent.agent_id in ["bot", "ops-1"]`,
	`glob.match("sql.*", ["."], input.intent.action_type); input.intent.metadata.env == "prod"`,
	`glob.match("prod/secrets/*", ["/"], input.intent.resource)`,
	"package p\n\nwrites := {\"sql.write\", \"sql.drop\"}\n\nmatch if writes[input.intent.action_type]\n\nmatch if input.intent.action_type == \"http_post\"",
	"package p\n\nmatch if input.intent.resource == \"prod/a\"\n\nmatch if startswith(input.intent.resource, \"https://api\")",
	"package p\n\nmatch if input.agent.id == \"bot\"\n\nelse if startswith(input.agent.id, \"team-\")",
	`data.lib.places.secret(input.intent.resource)`,
	`not data.lib.places.secret(input.intent.resource) # a comment`,
	"package p\n\nimport data.lib.people\n\nmatch if input.intent.agent_id in people.team(\"a\")\n\nmatch if people.busy",
	"package p\n\nimport data.lib.people as who\n\nimport data.lib.places.secret\n\nmatch if not who.outsiders(input.lists.things)\n\nmatch if secret(input.intent.resource)",
	"package p\n\ndeny contains msg if {\n\tstartswith(input.intent.resource, \"prod/\")\n\tmsg := sprintf(\"%s is not for %s\", [input.intent.resource, input.intent.agent_id])\n}",
	"package p\n\ndeny contains \"too much\" if input.intent.cost.amount_minor > 5000\n\ndeny contains input.intent.metadata.env if input.intent.action_type == \"deploy\"",
	"package p\n\nimport data.lib.places\n\ndeny contains \"a secret\" if places.secret(input.intent.resource)\n\ndeny contains msg if {\n\tsome msg in warnings\n}\n\nwarnings contains \"a bot\" if input.intent.agent_id == \"bot\"",
	"package p\n\ndefault deny := false\n\ndeny if {\n\tstartswith(input.intent.action_type, \"sql.\")\n}\n\nreason contains msg if msg := concat(\" \", [\"no\", input.intent.action_type])",
	"package p\n\nallow if {\n\tinput.intent.agent_id in input.lists.things\n}\n\nreason contains \"a friend\"",
	`input.intent.cost.amount_minor > data.lists.limits[input.intent.cost.currency].max`,
	`not input.intent.metadata.env in object.keys(data.lists.limits)`,
	`data.lists.limits[input.intent.metadata.env] == data.lists.limits.nothing`,
	`input.intent.metadata.env in data.lists.limits.list[1]; input.intent.agent_id in data.lists.things`,
	"package p\n\nimport data.lists.teams\n\nmatch if {\n\tsome team in teams\n\tinput.intent.agent_id in team.members\n}",
	"package p\n\nimport data.lib.people\nimport data.lists\n\nmatch if people.over(lists.limits, input.intent)",
	"package p\n\nimport data.lib.people\n\ndeny contains sprintf(\"more than %v\", [most]) if {\n\tpeople.over(data.lists.limits, input.intent)\n\tmost := data.lists.limits[input.intent.cost.currency].max\n}\n\ndeny contains name if {\n\tsome i, name in data.lists.limits.USD[\"for\"]\n\ti == 0\n\tname == input.intent.agent_id\n}",
	"package p\n\nimport data.lib.people\n\nmatch if people.working with input.intent.agent_id as \"bot\"\n\nelse := data.lib.people.busy",
}

// generatedLibraries returns the libraries that generated conditions import.
func generatedLibraries() []engine.Library {
	return []engine.Library{
		{Name: "people", Modules: map[string]string{
			"team.rego": "package lib.people\n\nimport data.lib.places\n\n# The members of a team.\nmembers := {\"a\": {\"team-a/deployer\", \"bot\"}, \"b\": {\"team-b/deployer\"}}\n\nteam(name) := members[name]\n\ndefault busy := false\n\nbusy if {\n\tsome member in team(\"a\")\n\tstartswith(input.intent.agent_id, member)\n\tplaces.secret(input.intent.resource)\n}",
			"time.rego": "package lib.people\n\nworking if {\n\t[hour, _, _] := time.clock([time.parse_rfc3339_ns(input.decided_at), \"Asia/Kolkata\"])\n\thour >= 9\n\tinput.intent.agent_id == \"bot\"\n}",
			"mail.rego": "package lib.people\n\noutsiders(known) if {\n\tsome a in writ.items(input.intent.metadata.list)\n\tnot a in known\n}",
			"cost.rego": "package lib.people\n\nover(limits, i) if i.cost.amount_minor > limits[i.cost.currency].max",
		}},
		{Name: "places", Modules: map[string]string{"places.rego": "package lib.places\n\nsecret(r) if contains(r, \"secrets\")\n\nsecret(r) if glob.match(\"prod/**\", [\"/\"], r)"}},
	}
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
