// Package conditiontest generates conditions and intents. It uses few different values, so that
// conditions often match intents.
package conditiontest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Cost is the cost of an intent.
type Cost struct {
	AmountMinor int64
	Currency    string
}

// Intent has the fields of an intent that conditions read.
type Intent struct {
	IntentID, PolicyID, AgentID, ActionType, Resource, IssuedAt string
	Cost                                                        *Cost
	Metadata                                                    map[string]string
	DecidedAt                                                   time.Time
}

// Generator makes random conditions and intents.
type Generator struct {
	*rand.Rand
	// Lists says whether conditions use the lists of [Lists].
	Lists bool
}

// Lists returns the lists that generated conditions use, by name.
func Lists() map[string][]string {
	return map[string][]string{"some": {"prod", "deploy", "bot", "EUR", "active", "prod/db"}, "none": nil}
}

// New returns a generator. Generators with the same seed generate the same values.
func New(seed uint64) Generator {
	return Generator{Rand: rand.New(rand.NewPCG(seed, 7))} //nolint:gosec // no secret
}

// Pick returns a random element of list.
func Pick[T any](g Generator, list ...T) T { return list[g.IntN(len(list))] }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot happen: every string has a JSON form
	}
	return string(b)
}

// noon is a time that conditions compare with.
var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// Intent returns an intent.
func (g Generator) Intent() *Intent {
	in := &Intent{
		IntentID:   "6f1c1f0e-33a5-4b1e-9c0a-0d7f0f6f3b11",
		PolicyID:   "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01",
		AgentID:    Pick(g, "bot", "team-a/x", "team-a/y"),
		ActionType: Pick(g, "deploy", "sql.write", "sql.read", "pay"),
		Resource: Pick(g, "prod/db", "prod/web/api", "prod//db", "prod/%64b", "staging/db", "db", "prod%2Fdb",
			"https://api.example.com/v1/pay", "https://API.example.com:443/v1/../v1/pay", "https://other.example.com/"),
		IssuedAt:  Pick(g, "2026-01-31T12:00:00Z", "2026-01-31T13:00:00+01:00", "2026-02-01T00:00:00.5Z"),
		DecidedAt: Pick(g, noon, noon.Add(-time.Millisecond), noon.Add(12*time.Hour)),
	}
	if g.IntN(3) > 0 {
		in.Cost = &Cost{AmountMinor: int64(g.IntN(4)), Currency: Pick(g, "EUR", "USD")}
	}
	for _, key := range []string{"env", "team", "a.b"} {
		if g.IntN(2) == 0 {
			if in.Metadata == nil {
				in.Metadata = map[string]string{}
			}
			in.Metadata[key] = Pick(g, "prod", "dr", "")
		}
	}
	if in.Metadata != nil && g.IntN(2) == 0 {
		in.Metadata["n"] = Pick(g, "0", "-1", "+2", "007", "-0", "", "x", "1e3", " 1", "1\n", "1_0", "0x1", "1.0", "٣", "+", "--1",
			"999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
			"-9223372036854775809", "00009223372036854775806", "9299999999999999999", "10000000000000000000", strings.Repeat("9", 40))
	}
	return in
}

// text returns a random string field and the values that it can have.
func (g Generator) text() (field string, values []string) {
	switch g.IntN(6) {
	case 0:
		return "action_type", []string{"deploy", "sql.write", "sql.read", "pay", "none"}
	case 1:
		return "agent_id", []string{"bot", "team-a/x"}
	case 2:
		return "resource", []string{"prod/db", "staging/db", "prod%2Fdb", "https://api.example.com/v1/pay"}
	case 3:
		return "cost.currency", []string{"EUR", "USD"}
	case 4:
		return "agent.status", []string{"active", "disabled", "unregistered"}
	}
	return "metadata." + Pick(g, "env", "team", "a.b"), []string{"prod", "dr", ""}
}

func (g Generator) glob(field string) string {
	if field == "action_type" {
		return Pick(g, "sql.*", "*", "de*oy", "pay")
	}
	return Pick(g, "prod/**", "prod/*", "**/db", "team-a/*", "{prod,staging}/db", "prod/d?", "https://API.example.com/**",
		"pr*", "**", "prod/db", "https://api.example.com/v1/*")
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = quote(s)
	}
	return "[" + strings.Join(out, ",") + "]"
}

func (g Generator) match(depth int) string {
	members := map[string]string{}
	for range g.IntN(3) {
		switch k := g.IntN(10); {
		case k == 0 && depth > 0:
			members[Pick(g, "$and", "$or", "$nor")] = "[" + g.match(depth-1) + "," + g.match(depth-1) + "]"
		case k == 1 && depth > 0:
			members["$not"] = g.match(depth - 1)
		case k == 2:
			members["cost.amount_minor"] = fmt.Sprintf(`{%q:%d}`, Pick(g, "$eq", "$ne", "$gt", "$gte", "$lt", "$lte"), g.IntN(4))
		case k == 3:
			members[Pick(g, "issued_at", "decided_at")] = fmt.Sprintf(`{%q:"2026-01-31T12:00:00Z"}`, Pick(g, "$eq", "$ne", "$gt", "$lte"))
		case k == 4:
			members[Pick(g, "cost", "metadata", "metadata.env", "agent_id")] = Pick(g, `{"$exists":true}`, `{"$exists":false}`)
		default:
			field, values := g.text()
			members[field] = g.expect(field, values)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(members)) {
		b.WriteString("," + quote(name) + ":" + members[name])
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func (g Generator) expect(field string, values []string) string {
	if g.Lists && field != "resource" && g.IntN(6) == 0 {
		return Pick(g, `{"$in":{"list":"some"}}`, `{"$nin":{"list":"some"}}`, `{"$in":{"list":"none"}}`)
	}
	v := quote(Pick(g, values...))
	switch g.IntN(8) {
	case 0:
		return `{"$ne":` + v + `}`
	case 1:
		return `{"$in":` + quoted(values[:1+g.IntN(len(values))]) + `}`
	case 2:
		return `{"$nin":` + quoted(values[:1+g.IntN(len(values))]) + `}`
	case 3:
		return `{"$glob":` + quote(g.glob(field)) + `}`
	case 4:
		return `{"$regex":` + quote(Pick(g, "^prod", "d", "[ae]", "o$")) + `}`
	case 5:
		return `{"$not":{"$eq":` + v + `}}`
	}
	return v
}

func (g Generator) tree(depth int) string {
	if depth > 0 {
		switch g.IntN(4) {
		case 0:
			return `{"all":[` + g.tree(depth-1) + `,` + g.tree(depth-1) + `]}`
		case 1:
			return `{"any":[` + g.tree(depth-1) + `,` + g.tree(depth-1) + `]}`
		case 2:
			return `{"not":` + g.tree(depth-1) + `}`
		}
	}
	if g.IntN(10) == 0 {
		return fmt.Sprintf(`{"field":"decided_at","op":%q,"value":"2026-01-31T13:00:00+01:00"}`,
			Pick(g, "eq", "ne", "gt", "gte", "lt", "lte"))
	}
	field, values := g.text()
	op, value := Pick(g, "eq", "ne", "contains", "doesNotContain", "startsWith", "endsWith", "gt", "lte"), quote(Pick(g, values...))
	return fmt.Sprintf(`{"field":%s,"op":%q,"value":%s}`, quote(field), op, value)
}

// cel returns a CEL expression. Many of its parts can end in an error.
func (g Generator) cel(depth int) string {
	if depth > 0 {
		switch g.IntN(7) {
		case 6:
			return "(" + g.cel(depth-1) + " ? " + g.cel(depth-1) + " : " + g.cel(depth-1) + ")"
		case 0, 1:
			return "(" + g.cel(depth-1) + " && " + g.cel(depth-1) + ")"
		case 2:
			return "(" + g.cel(depth-1) + " || " + g.cel(depth-1) + ")"
		case 3:
			return "!" + "(" + g.cel(depth-1) + ")"
		}
	}
	switch g.IntN(9) {
	case 8:
		return fmt.Sprintf("int(%s) %s", Pick(g, "intent.metadata.n", "intent.metadata.n", "intent.cost.amount_minor", "intent.agent_id"),
			Pick(g, "== 7", "!= 0", "> 1", ">= -1", "< 1000000000000000000", "<= -9223372036854775807", "in [7, 2]", "> 9223372036854775806"))
	case 0:
		return fmt.Sprintf("intent.cost.amount_minor %s %d", Pick(g, "==", "!=", ">", ">=", "<", "<="), g.IntN(4))
	case 1:
		return Pick(g, "has(intent.cost)", "has(intent.metadata)", "has(intent.metadata.env)", `"env" in intent.metadata`, "true", "false")
	case 2:
		return fmt.Sprintf("%d %s intent.cost.amount_minor", g.IntN(4), Pick(g, "==", "!=", ">", "<="))
	case 3: // CEL without a translation into a tree
		return Pick(g, "size(intent.resource) > 9", "int(intent.agent_id + '') > 0", "intent.metadata.env + 'x' == 'prodx'",
			"intent.metadata.exists(k, k == 'env')", "(has(intent.cost) ? 'a' : 'b') == 'a'",
			"int(intent.resource + '1') == 1", "intent.metadata.env == intent.metadata.team")
	case 4:
		return fmt.Sprintf("%s %s timestamp('2026-01-31T12:00:00Z')", Pick(g, "intent.issued_at", "decided_at"),
			Pick(g, "==", "!=", "<", ">="))
	}
	field, values := g.text()
	return g.celText(celRef(field), values)
}

func (g Generator) celText(ref string, values []string) string {
	if g.Lists && g.IntN(6) == 0 {
		return ref + Pick(g, ` in list("some")`, ` in list('none')`)
	}
	v := quote(Pick(g, values...))
	switch g.IntN(9) {
	case 0:
		return ref + " != " + v
	case 1:
		return v + " == " + ref
	case 2:
		return ref + " in " + quoted(values[:g.IntN(len(values)+1)])
	case 3:
		return ref + "." + Pick(g, "startsWith", "endsWith", "contains", "matches") + "(" + quote(Pick(g, "prod", "d", "")) + ")"
	case 4:
		return fmt.Sprintf("resource_glob([%s, %s], %s)", quote(g.glob("resource")), quote(g.glob("resource")), ref)
	case 5:
		return fmt.Sprintf("glob(%s, %s)", quote(g.glob("resource")), ref)
	case 6:
		return fmt.Sprintf("action_matches(%s, %s)", quote(g.glob("action_type")), ref)
	}
	return ref + " == " + v
}

func celRef(field string) string {
	switch {
	case strings.HasPrefix(field, "agent."):
		return field
	case field == "metadata.a.b":
		return `intent.metadata["a.b"]`
	}
	return "intent." + field
}

// Condition returns a condition in any form except Rego.
func (g Generator) Condition() string {
	switch g.IntN(3) {
	case 0:
		return g.match(2)
	case 1:
		return g.tree(2)
	}
	return `{"cel":` + quote(g.cel(3)) + `}`
}

// Seeds returns conditions as seeds of a fuzzer: generated conditions and unusual ones.
func Seeds() []string {
	g := New(3)
	seeds := []string{
		`{}`, `{"$or":[{"action_type":"a*"},{"metadata.x":{"$nin":["1"]}}]}`,
		`{"all":[{"field":"cost","op":"exists","value":false}]}`, `{"rego":"true"}`,
		`{"metadata.\u0000\ud83d\ude00":{"$regex":"\\pL{3,5}"}}`, `{"resource":{"$glob":["{a,b}/**","\\*"]}}`,
		`{"cel":"intent.metadata.exists(k, k.matches('^a')) ? has(intent.cost) : !(5 > intent.cost.amount_minor)"}`,
	}
	for range 50 {
		seeds = append(seeds, g.Condition())
	}
	return seeds
}

// Recipients returns a condition on the metadata value to that compares addresses.
func (g Generator) Recipients() string {
	operand := func() string {
		return Pick(g, `"ana@ours.example"`, `"Eve@RIVAL.example."`, `"b"`, `"x@ß.example"`, `"ana@xn--mnster-3ya.example"`)
	}
	test := func() string {
		switch g.IntN(7) {
		case 0:
			return `["b",` + operand() + `]`
		case 1:
			return `{"$ne":` + operand() + `}`
		case 2:
			return `{"$regex":` + Pick(g, `"@ours"`, `"^a"`, `"example$"`) + `}`
		case 3:
			return `{"$not":{"$in":[` + operand() + `,` + operand() + `]}}`
		case 4:
			return `{"$gte":` + operand() + `}`
		}
		return `{"$glob":` + Pick(g, `"*@ours.example"`, `"*"`, `"**"`, `"*@{rival,ours}.example"`, `["b","*@Münster.example"]`, `"a*"`, `"*@*.example"`) + `}`
	}
	switch g.IntN(6) {
	case 0:
		return `{"metadata.to":` + operand() + `}`
	case 1:
		return `{"metadata.to":{"$nin":[` + operand() + `,` + operand() + `]}}`
	case 2:
		return `{"metadata.to":{"$size":` + Pick(g, `1`, `{"$lte":2}`, `{"$ne":2}`) + `}}`
	case 3:
		return `{"metadata.to":{"$not":{"$every":` + test() + `}}}`
	}
	return `{"metadata.to":{` + Pick(g, `"$every":`, `"$some":`) + test() + `}}`
}

// Addresses returns a metadata value that may hold addresses.
func (g Generator) Addresses() string {
	address := func() string {
		return Pick(g, "ana", "Eve", "", `"ana"`, "b@c", "x") + "@" +
			Pick(g, "ours.example", "OURS.example", "rival.example.", "ß.example", "münster.example", "evil.example")
	}
	entry := func() string {
		switch g.IntN(9) {
		case 0:
			return "Ana <" + address() + ">"
		case 1:
			return `"Doe, Ana" <` + address() + ">"
		case 2:
			return address() + " (" + Pick(g, "b", address()) + ")"
		case 3:
			return "mailto:" + strings.ReplaceAll(address(), "@", Pick(g, "@", "%40")) + Pick(g, "", "?cc="+address())
		case 4:
			return Pick(g, "b", `"b"`, "b c", `"b, c"`, "<", `"`, "'"+address()+"'")
		case 5:
			return address() + Pick(g, " ", "<", `\`, "?x=", "") + address()
		}
		return address()
	}
	switch g.IntN(8) {
	case 0:
		return quoted([]string{entry(), entry()})
	case 1:
		return Pick(g, "", ",", "[]", "[1]", `["`, "b")
	}
	text := entry()
	for range g.IntN(3) {
		text += Pick(g, ",", ";", "\n", " , ", " ") + entry()
	}
	return text
}
