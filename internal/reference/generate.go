package reference

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A Generator makes random cases. It often makes the situations that a rule of decisions.md or
// resources.md names. The same seed gives the same cases.
type Generator struct{ rng *rand.Rand }

// NewGenerator returns the generator of a seed.
func NewGenerator(seed uint64) *Generator {
	return &Generator{rand.New(rand.NewPCG(seed, 0x9E3779B97F4A7C15))}
}

func pick[T any](g *Generator, all ...T) T { return all[g.rng.IntN(len(all))] }

// in returns true with a probability of n %.
func (g *Generator) in(n int) bool { return g.rng.IntN(100) < n }

func (g *Generator) uuid() string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", g.rng.Uint32(), g.rng.Uint64()&0xffffffffffff)
}

const organization = "org-1"

// Next makes a case.
func (g *Generator) Next() *Case {
	c := &Case{Stopped: g.in(4), UsageExceeded: g.in(8), RequireRegistered: g.in(16)}
	res := g.resource()
	c.Policy = Policy{
		PolicyID: g.uuid(), Version: 1 + g.rng.IntN(3), OrganizationID: organization, AgentID: "billing-agent",
		AllowedTypes:    []string{"*"},
		AllowedPatterns: res.allowed, BlockedPatterns: res.blocked,
		Status: "active", UpdatedAt: "2026-11-01T00:00:00Z",
	}
	c.Intent = Intent{IntentID: g.uuid(), PolicyID: c.Policy.PolicyID, Resource: res.text, IssuedAt: "2026-11-02T10:00:00Z", Metadata: g.metadata()}
	c.Intent.AgentID = "billing-agent"
	c.Intent.ActionType = pick(g, "http_post", "deploy", "sql.write", "payment.refund")
	c.Rules = g.rules()
	if g.in(25) { // nothing else objects, so rules decide
		c.Stopped, c.UsageExceeded, c.RequireRegistered = false, false, false
		c.Policy.AllowedPatterns, c.Policy.BlockedPatterns = nil, nil
		if g.in(50) {
			g.agents(c)
		} else {
			g.costs(c)
		}
		return c
	}
	if g.in(8) {
		c.Policy.Status = pick(g, "suspended", "revoked")
	}
	g.agents(c)
	g.actions(c)
	g.costs(c)
	return c
}

func (g *Generator) metadata() map[string]string {
	all := map[string][]string{
		"env":   {"prod", "dr", "dev", "staging"},
		"count": {"5", "12.5", "-3", "007", "abc", "100", "1,5", ""},
		"tags": {"a", "a,b", " a , b ,,", `["a","b"]`, `["a", " b "]`, "", "a,c", "[]", "x@ours.example,y@ours.example", "x@ours.example,y@other.example",
			"x@ours.example;y@other.example", "X <x@OURS.example.>", `"Y, X" <x@ours.example>; y@ours.example`, "x@ours.example (at work)", `["X <x@ours.example>"]`,
			"<y@other.example>@ours.example", `"y@other.example x"@ours.example`, "y@other.example <x@ours.example>", "x@ours.example y", "@ours.example", "a;b\nc", `"a,b"`},
		"team": {"payments", "payroll", "platform"},
	}
	out := map[string]string{}
	for _, k := range []string{"env", "count", "tags", "team"} {
		if g.in(70) {
			out[k] = pick(g, all[k]...)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (g *Generator) agents(c *Case) {
	switch g.rng.IntN(10) {
	case 0:
		c.Policy.AgentID = pick(g, "*", "billing-*", "team-a/*")
	case 1:
		c.Intent.AgentID = pick(g, "other-agent", "Billing-Agent", "billing-agent2")
	case 2:
		c.Policy.AgentID, c.Intent.AgentID = "team-a/*", pick(g, "team-a/x", "team-b/x", "team-a/straße")
	}
	if g.in(20) { // a registered agent, called by one of its names
		const id, external = "billing-agent", "Ext-9"
		c.Policy.AgentID = "*"
		c.Agents = append(c.Agents, Agent{ID: id, ExternalID: external, Name: "the agent", Status: "active"})
		c.Intent.AgentID = pick(g, id, external, "ext-9", "EXT-9", wide(external), strings.ToUpper(id), wide(id))
		return
	}
	id := c.Intent.AgentID
	if g.in(65) {
		c.Agents = append(c.Agents, Agent{ID: id, Name: "the agent", Status: "active"})
	}
	folded := pick(g, strings.ToUpper(id), wide(id), strings.ReplaceAll(id, "ß", "SS"), strings.ToUpper(id[:1])+id[1:], wide(strings.ToUpper(id)))
	switch n := g.rng.IntN(100); {
	case n < 6 && len(c.Agents) > 0:
		c.Agents[0].Status = "disabled"
	case n < 14 && folded != id:
		c.Agents = append(c.Agents, Agent{ID: folded, Name: "another spelling", Status: pick(g, "disabled", "disabled", "active")})
	case n < 20:
		c.Agents = append(c.Agents, Agent{ID: "someone-else", Name: "someone else", Status: "disabled"})
	}
}

// wide writes a text in full-width letters. NFKC turns them back into ordinary letters.
func wide(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r + 0xFEE0
		}
		return r
	}, s)
}

func (g *Generator) actions(c *Case) {
	a := c.Intent.ActionType
	switch g.rng.IntN(10) {
	case 0:
		c.Policy.AllowedTypes = []string{}
	case 1:
		c.Policy.AllowedTypes = []string{pick(g, "http_get", "sql.*", strings.ToUpper(a), "sql.write"), "deploys"}
	case 2, 3:
		c.Policy.AllowedTypes = []string{"none", a}
	}
	switch g.rng.IntN(12) {
	case 0:
		c.Policy.DeniedTypes = []string{a}
	case 1:
		c.Policy.DeniedTypes = []string{"sql.*", "none"}
	case 2, 3:
		c.Policy.DeniedTypes = []string{pick(g, "HTTP.POST", "http-post", "Deploy", "SQL_WRITE", "sql..write", "Payment.*", "PAYMENT-REFUND", "sql__write", "http.get")}
	}
	if g.in(4) {
		c.Intent.ActionType = pick(g, "SQL.write", "sql..write", "Deploy", "http.post", "sql-write")
	}
}

func (g *Generator) costs(c *Case) {
	if g.in(60) {
		c.Policy.MaxCostMinor = new(int64)
		*c.Policy.MaxCostMinor = pick(g, int64(0), 500, 1000, 100000)
	}
	if g.in(50) {
		c.Policy.Currency = pick(g, "EUR", "USD")
	}
	if g.in(70) {
		c.Intent.Cost = &Cost{AmountMinor: pick(g, int64(0), 1, 499, 500, 501, 1000, 5000), Currency: pick(g, "EUR", "EUR", "USD")}
	}
}

func (g *Generator) rules() []Rule {
	var out []Rule
	for i := range g.rng.IntN(5) {
		r := Rule{
			ID: g.uuid(), Name: fmt.Sprintf("rule %d", i), Priority: pick(g, 50, 100, 100, 100, 200), IsActive: !g.in(8),
			CreatedAt: fmt.Sprintf("2026-11-01T00:00:%02dZ", g.rng.IntN(3)), UpdatedAt: "2026-11-01T00:01:00Z",
			Decision: pick(g, Allow, ApprovalRequired, ApprovalRequired, Deny), Form: Form(g.rng.IntN(4)),
		}
		r.Means = g.sayable(r.Form)
		r.Condition = r.Means.Condition(r.Form, g.rng.IntN)
		r.Action = g.actionDocument(r.Decision)
		out = append(out, r)
	}
	return out
}

func (g *Generator) actionDocument(decision string) string {
	names := map[string][]string{
		Allow: {"allow"}, Deny: {"deny", "block"}, ApprovalRequired: {"approval_required", "wait", "require_approval"},
	}
	doc := map[string]string{pick(g, "decision", "effect", "type", "outcome"): pick(g, names[decision]...), "reason": "because"}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// sayable returns a random condition that form f can express.
func (g *Generator) sayable(f Form) Cond {
	for {
		if c := g.condition(2); c.Sayable(f) {
			return c
		}
	}
}

func (g *Generator) condition(depth int) Cond {
	if depth == 0 || g.in(45) {
		return g.comparison()
	}
	if g.in(3) {
		return Cond{Op: "and"} // {} always matches
	}
	op := pick(g, "and", "and", "and", "or", "or", "not", "nor")
	n := 1 + g.rng.IntN(3)
	if op == "not" {
		n = 1
	}
	c := Cond{Op: op}
	for range n {
		c.Kids = append(c.Kids, g.condition(depth-1))
	}
	return c
}

func (g *Generator) comparison() Cond {
	switch g.rng.IntN(9) {
	case 0:
		return g.textComparison("action_type", "http_post", "deploy", "sql.write", "sql.read")
	case 1:
		return g.textComparison("agent_id", "billing-agent", "other-agent", "team-a/x", "Ext-9", "ext-9", "EXT-9")
	case 2, 3:
		return g.resourceComparison()
	case 4:
		if g.in(15) {
			return Cond{Op: "exists", Field: "cost.amount_minor", Value: g.in(50)}
		}
		return g.numberComparison("cost.amount_minor", 0, 1, 499, 500, 1000)
	case 5:
		return g.textComparison("cost.currency", "EUR", "USD")
	case 6:
		if g.in(10) {
			return Cond{Op: "eq", Field: "agent.status", Value: "disabled"}
		}
		return g.numberComparison("metadata.count", 5, 12.5, -3, 7, 100)
	case 7:
		return g.listComparison()
	}
	if g.in(15) {
		return Cond{Op: "exists", Field: "metadata." + pick(g, "env", "team", "tags"), Value: g.in(50)}
	}
	if g.in(50) {
		return g.textComparison("metadata.team", "payments", "payroll", "platform")
	}
	return g.textComparison("metadata.env", "prod", "dr", "dev")
}

func (g *Generator) textComparison(field string, values ...string) Cond {
	op := pick(g, "eq", "eq", "eq", "ne", "in", "nin", "glob", "regex", "gt", "lte")
	v := pick(g, values...)
	switch op {
	case "in", "nin":
		return Cond{Op: op, Field: field, Value: []any{v, pick(g, values...)}}
	case "glob":
		if field == "action_type" { // * is the only wildcard of action types
			return Cond{Op: op, Field: field, Value: pick(g, v[:1]+"*", "*"+v[len(v)-1:], v[:2]+"*"+v[len(v)-2:])}
		}
		return Cond{Op: op, Field: field, Value: pick(g, v[:1]+"*", "*"+v[len(v)-1:], v[:2]+"?*", "{x,"+v+"*}", "["+v[:1]+"z]*")}
	case "regex":
		return Cond{Op: op, Field: field, Value: pick(g, "^"+v[:2], v[1:]+"$", "^("+v+"|x)$", "[a-d]")}
	}
	return Cond{Op: op, Field: field, Value: v}
}

func (g *Generator) numberComparison(field string, values ...float64) Cond {
	v := pick(g, values...)
	if op := pick(g, "eq", "ne", "gt", "gte", "lt", "lte", "gt", "lte", "in"); op != "in" {
		return Cond{Op: op, Field: field, Value: v}
	}
	return Cond{Op: pick(g, "in", "nin"), Field: field, Value: []any{v, pick(g, values...)}}
}

func (g *Generator) listComparison() Cond {
	if g.in(25) {
		return Cond{Op: "size", Field: "metadata.tags", Value: pick(g, 0.0, 1, 2)}
	}
	var v any = []any{"a", pick(g, "b", "c")}
	if g.in(40) {
		v = pick(g, Cond{Op: "glob", Value: "*@ours.example"}, Cond{Op: "ne", Value: "a"}, Cond{Op: "regex", Value: "^[ab]"}, Cond{Op: "in", Value: []any{"a", "x@ours.example"}})
	}
	return Cond{Op: pick(g, "every", "some"), Field: "metadata.tags", Value: v}
}

func (g *Generator) resourceComparison() Cond {
	scene := pick(g, scenes...)
	switch pick(g, "eq", "ne", "glob", "glob", "glob", "in", "nin", "regex") {
	case "eq":
		return Cond{Op: "eq", Field: "resource", Value: scene.base}
	case "ne":
		return Cond{Op: "ne", Field: "resource", Value: scene.base}
	case "in":
		return Cond{Op: "in", Field: "resource", Value: []any{scene.base, "prod"}}
	case "nin":
		return Cond{Op: "nin", Field: "resource", Value: []any{scene.base, "prod"}}
	case "regex":
		return Cond{Op: "regex", Field: "resource", Value: pick(g, "admin", "secret", "^https://", "orders$", "/v1/")}
	}
	return Cond{Op: "glob", Field: "resource", Value: pick(g, append(scene.wide, scene.narrow...)...)}
}
