package rego

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

func sampleInput() *engine.RegoInput {
	return &engine.RegoInput{
		Intent: &engine.Intent{
			IntentID: "5d1f7ab2-6bd0-4c4a-8f3e-6f6dd0f9b7aa", PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10",
			AgentID: "team-a/deployer", ActionType: "deploy", Resource: "prod/eu/api",
			Cost: &engine.Cost{AmountMinor: 5001, Currency: "EUR"}, Metadata: map[string]string{"env": "prod", "cidr": "nonsense"},
			IssuedAt: "2026-01-31T12:00:00Z",
		},
		AgentID: "team-a/deployer", Agent: engine.AgentActive, Resource: "prod/eu/api",
		Policy: &engine.ActionPolicy{PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 3, OrganizationID: "acme", AgentID: "team-a/*", Status: engine.StatusActive},
	}
}

func TestDecision_Rules_Rego(t *testing.T) {
	tests := []struct {
		name, source string
		want         bool
		wantErr      bool
	}{
		{"a body", `input.intent.cost.amount_minor > 5000`, true, false},
		{"a body that does not hold", `input.intent.cost.amount_minor > 5001`, false, false},
		{"a body of several expressions", "input.intent.action_type == \"deploy\"\nsome env in {\"prod\", \"dr\"}\ninput.intent.metadata.env == env", true, false},
		{"a body with a comment before it", "# costly\ninput.policy.version >= 3; input.agent.status == \"active\"", true, false},
		{"an undefined body", `input.intent.metadata.region == "eu"`, false, false},
		{"not of an undefined expression", `not input.intent.metadata.region`, true, false},
		{"a module", "package acme.rules\n\nmatch if startswith(input.intent.resource, \"prod/\")", true, false},
		{"a module with a comment before it", "# ours\n# alone\npackage acme\n\nmatch := input.agent.id == \"team-a/deployer\"", true, false},
		{"a module with import rego.v1", "package acme\n\nimport rego.v1\n\nmatch if input.policy.status == \"active\"", true, false},
		{"a module that is undefined", "package acme\n\nmatch if input.intent.action_type == \"x\"", false, false},
		{"a module with a default", "package acme\n\ndefault match := false\n\nmatch if input.intent.action_type == \"x\"", false, false},
		{"helpers and functions", "package acme\n\nlimit(env) := 5000 if env == \"prod\"\n\nmatch if input.intent.cost.amount_minor > limit(input.intent.metadata.env)", true, false},
		{"references to its own package", "package acme\n\nenvs := {\"prod\"}\n\nmatch if input.intent.metadata.env in data.acme.envs", true, false},
		{"time from its arguments", `time.weekday(time.parse_rfc3339_ns(input.intent.issued_at)) == "Saturday"`, true, false},
		{"an error of a function is an error", `net.cidr_contains(input.intent.metadata.cidr, "10.0.0.1")`, false, true},
		{"also under not", `not net.cidr_contains(input.intent.metadata.cidr, "10.0.0.1")`, false, true},
		{"two values are an error", "package acme\n\nmatch := true if input.intent.action_type\n\nmatch := false if input.intent.resource", false, true},
		{"deny", "package a\n\ndeny if input.intent.action_type == \"deploy\"", true, false},
		{"deny that does not hold", "package a\n\ndeny if input.intent.action_type == \"x\"", false, false},
		{"allow", "package a\n\nallow if input.intent.action_type == \"deploy\"", true, false},
		{"allow with a default", "package a\n\ndefault allow := false\n\nallow if input.intent.action_type == \"x\"", false, false},
		{"a set of denies", "package a\n\ndeny contains msg if {\n\tinput.intent.action_type == \"deploy\"\n\tmsg := sprintf(\"no %s\", [input.intent.resource])\n}", true, false},
		{"a set of denies that is empty", "package a\n\ndeny contains \"no\" if input.intent.action_type == \"x\"", false, false},
		{"a set of denies that fails", "package a\n\ndeny contains \"no\" if net.cidr_contains(input.intent.metadata.cidr, \"10.0.0.1\")", false, true},
		{"a set of values whose type is unknown", "package a\n\ndeny contains json.unmarshal(\"7\") if input.intent.action_type == \"deploy\"", true, false},
		{"match decides beside deny", "package a\n\ndeny if input.intent.action_type == \"deploy\"\n\nmatch if not deny", false, false},
		{"print has no effect", `print(input.intent.metadata.nothing)`, true, false},
		{"division by zero is an error", `1 / (input.policy.version - 3) > 0`, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := CompileCondition(tt.source)
			if err != nil {
				t.Fatalf("CompileCondition(%q): %v", tt.source, err)
			}
			got, err := c.Match(sampleInput())
			if got != tt.want || (err != nil) != tt.wantErr {
				t.Errorf("Match(%q) = %v, %v, want %v, error %v", tt.source, got, err, tt.want, tt.wantErr)
			}
		})
	}
}

func TestDecision_Rules_RegoIsCheckedAtCreation(t *testing.T) {
	tests := []struct {
		name, source, want string
	}{
		{"an empty source", "", "empty"},
		{"a comment alone", "# nothing", "empty"},
		{"what does not parse", "input.intent.cost >", "1:19: unexpected eof token"},
		{"a misspelt field", `input.intent.cst.amount_minor > 5000`, `1:1: undefined ref: input.intent.cst.amount_minor: did you mean cost? "cst" is none of action_type, agent_id, cost, intent_id, issued_at, metadata, policy_id, resource`},
		{"a misspelt field of a module", "package a\n\nmatch if {\n\ttrue\n\tinput.agent.state == \"x\"\n}", `5:2: undefined ref: input.agent.state: did you mean status? "state" is none of id, status`},
		{"a misspelt document", `input.intents.cost`, `"intents" is none of agent, decided_at, intent, lists, policy`},
		{"a wrong type", `input.intent.resource == 5`, "1:1: match error: string is not number"},
		{"a wrong argument", `startswith(input.intent.cost.amount_minor, "5")`, "1:1: startswith: invalid argument(s): have [number string], want (search: string"},
		{"the network", "true\nhttp.send({\"method\": \"get\", \"url\": \"http://localhost\"})", "2:1: the built-in function http.send cannot be called: its result depends on more than its arguments"},
		{"the environment", `opa.runtime().env.HOME == "/"`, "1:1: the built-in function opa.runtime cannot be called"},
		{"name resolution", `net.lookup_ip_addr("localhost")`, "1:1: the built-in function net.lookup_ip_addr cannot be called"},
		{"the clock", `time.now_ns() > 1`, "1:1: the built-in function time.now_ns cannot be called"},
		{"chance", `rand.intn("x", 2) == 1`, "1:1: the built-in function rand.intn cannot be called"},
		{"a refused function as a replacement", "package a\n\nmatch if f with count as http.send\n\nf if count([]) == 0", "3:26: http is never bound"},
		{"memory without bound", `bits.lsh(1, 1000000000) > 0`, "1:1: the built-in function bits.lsh cannot be called: 1 shifted by 1000000000 has 300 million digits: write a multiplication by a constant"},
		{"a format with a width", `sprintf("%9999999d", [input.intent.cost.amount_minor]) == ""`, "1:9: sprintf: the format has a verb other than %s, %d, %v and %%, or a width: use format_int or concat"},
		{"a format with a width of the caller's", `sprintf("%*d", [input.intent.cost.amount_minor, 5]) == ""`, "1:9: sprintf: the format has a verb other than"},
		{"a format with an index", `sprintf("%[1]s%[1]s", [input.intent.resource]) == ""`, "1:9: sprintf: the format has a verb other than"},
		{"a format that is the caller's", `sprintf(input.intent.metadata.f, [1]) == ""`, "1:9: sprintf: the format must be a constant"},
		{"a format that ends early", `sprintf("100%", []) == ""`, "1:9: sprintf: the format ends in %: a percent sign is written %%"},
		{"an unknown function", `startwith(input.intent.resource, "x")`, "1:1: undefined function startwith"},
		{"other data", `data.users[input.intent.agent_id]`, "1:1: data.users[input.intent.agent_id] is not defined here"},
		{"an import of other data", "package a\n\nimport data.users\n\nmatch if users.x", "3:8: data.users is not defined here"},
		{"all data", `count(data) > 0`, "data is not defined here"},
		{"a schema from elsewhere", "# METADATA\n# schemas:\n#   - input: schema.other\npackage a\n\nmatch if input.x", `"x" is none of`},
		{"Rego before v1", "package a\n\nmatch { true }", "3:1: "},
		{"a module without match", "package a\n\nmatches if true", "3:1: the module defines no match, deny, allow: write `match if { … }`"},
		{"deny as a text", "package a\n\ndeny := \"no\"", "3:1: deny must be a boolean, it is string: write `deny if { … }`, or `deny contains msg if { … }` with texts"},
		{"deny as a function", "package a\n\ndeny(x) if x", "3:1: deny must be a boolean, it is a function"},
		{"deny as a partial object", "package a\n\ndeny[input.intent.action_type] := \"no\"", "3:1: deny must be a boolean, it is object"},
		{"deny as a set of objects", "package a\n\ndeny contains {\"msg\": \"no\"} if true", "3:1: deny holds object<msg: string>, not texts: write `deny contains sprintf"},
		{"deny as a set of texts and numbers", "package a\n\ndeny contains \"no\" if true\n\ndeny contains 7 if true", "3:1: deny holds"},
		{"allow as a set", "package a\n\nallow contains \"yes\" if true", "3:1: allow must be a boolean, it is set[string]: write `allow if { … }`"},
		{"match as a set", "package a\n\nmatch contains \"x\" if true", "3:1: match must be a boolean, it is set[string]"},
		{"match as a string", "package a\n\nmatch := \"yes\"", "3:1: match must be a boolean, it is string"},
		{"match as a function", "package a\n\nmatch(x) if x", "3:1: match must be a boolean, it is a function"},
		{"match as a boolean or a number", "package a\n\nmatch := 1 if input.intent.cost\n\nelse := true", "3:1: match must be a boolean"},
		{"recursion", "package a\n\nmatch if x\n\nx if match", "recursive"},
		{"an unsafe variable", `x > 5`, "1:1: x is never bound"},
		{"a source that is too long", "true" + strings.Repeat("\ntrue", condition.MaxCondition/5+1), "16389 bytes long, at most 16384 are allowed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := CompileCondition(tt.source)
			var list *condition.Error
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("CompileCondition = %v, want one line with %q", err, tt.want)
			}
			if !errors.As(err, &list) {
				t.Errorf("CompileCondition = %T, want *condition.Error", err)
			}
		})
	}
}

// slow takes minutes, because it has three nested loops over a range that the input gives.
const slow = `n := input.intent.cost.amount_minor; count([1 | some a in numbers.range(1, n); some b in numbers.range(1, n); some c in numbers.range(1, n); a + b == c]) > 0`

func TestDecision_Rules_RegoRunsWithALimit(t *testing.T) {
	for name, source := range map[string]string{
		"a comprehension": slow,
		"one function":    `count(numbers.range(1, input.intent.cost.amount_minor * 100000)) > 5`,
	} {
		t.Run(name, func(t *testing.T) {
			c := must.Get(CompileCondition(source))(t)
			var work condition.Work
			in := sampleInput()
			in.Work = &work
			if got, err := c.Match(in); got || !errors.Is(err, condition.ErrTooMuchWork) || work.Left() != 0 {
				t.Errorf("Match = %v, %v with %d steps left, want an error with none", got, err, work.Left())
			}
		})
	}
}

func TestQuery_FollowsItsClock(t *testing.T) {
	clock := time.Unix(0, 0)
	d := inTime(func() time.Time { return clock }, time.Second)
	for range 10 * askedPerLook {
		if d.Cancelled() {
			t.Fatal("Cancelled() = true before the deadline")
		}
	}
	clock = clock.Add(2 * time.Second)
	for range askedPerLook {
		d.Cancelled()
	}
	if !d.Cancelled() {
		t.Error("Cancelled() = false after the deadline")
	}
}

// others stands for other work that takes an hour at each yield. It calls after, if that is set.
type others struct {
	times int
	after func()
}

func (o *others) Yield() time.Duration {
	o.times++
	time.Sleep(time.Hour)
	if o.after != nil {
		o.after()
	}
	return time.Hour
}

func (o *others) Pause() bool { return false }

func (o *others) Resume() bool { return false }

// TestDecision_Rules_TimeDecidesNothing checks this decision: "CEL and Rego … run with a cost limit,
// counted in steps, calls and the bytes that are read, made and compared, and never in wall time
// (time that runs out is a 503, with nothing decided)." A condition that is interrupted for hours
// decides the same. If the request ends meanwhile, there is no decision. Both hold with a trace too.
func TestDecision_Rules_TimeDecidesNothing(t *testing.T) {
	for name, doc := range map[string]string{
		"Rego": `{"rego":"count([1 | some a in input.intent.metadata; some b in input.intent.metadata; a == b]) > 0"}`,
		"CEL":  `{"cel":"intent.metadata.exists(k, intent.metadata.exists(j, j == 'none')) || intent.metadata.n == '3000'"}`,
	} {
		for _, traced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/traced=%t", name, traced), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rules := engine.CompileRules([]engine.Rule{sampleRule("r17", "r", doc, `{"decision":"deny"}`)},
						engine.Options{CompileRego: CompileCondition})
					policy := must.Get(engine.CompilePolicy(samplePolicy()))(t)
					evaluate := func(turn condition.Turn, ended <-chan struct{}) (engine.Result, *engine.Trace) {
						in := &engine.Input{Intent: hostileInput(nil).Intent, Turn: turn, Ended: ended}
						if traced {
							in.Trace = &engine.Trace{}
						}
						return engine.Evaluate(policy, rules, in), in.Trace
					}
					want, _ := evaluate(nil, nil)
					var o others
					got, _ := evaluate(&o, make(chan struct{}))
					if diff := cmp.Diff(want, got); diff != "" || o.times == 0 || got.ConditionErrors.Total() > 0 {
						t.Errorf("Evaluate, interrupted %d times for an hour, without interruption (-) and with (+):\n%s", o.times, diff)
					}
					end := make(chan struct{})
					o.after = sync.OnceFunc(func() { close(end) })
					got, trace := evaluate(&o, end)
					var ended *engine.EndedError
					if !errors.As(got.Err, &ended) || ended.RuleID != "r17" || got.Decision != engine.Deny {
						t.Errorf("Evaluate of a request that ended = %v, %v, want an error that names r17", got.Decision, got.Err)
					}
					if traced && trace.Result.Err == nil {
						t.Error("the trace of a request that ended has no error")
					}
				})
			})
		}
	}
}

// TestCompileCondition_NamesOfBuiltinsAreNoRules checks that a reference to a built-in function or
// into the input is not taken for a rule of the same name. Once the compiler followed such a name
// without end.
func TestCompileCondition_NamesOfBuiltinsAreNoRules(t *testing.T) {
	for _, source := range []string{
		"package p\n\nhelper if regex.match(\"^US\", input.intent.agent_id)\n\nmatch if helper\n",
		"package p\n\nhelper if glob.match(\"a*\", [\"/\"], input.intent.agent_id)\n\nmatch if helper\n",
		"package p\n\nhelper if input.intent.metadata.match == \"x\"\n\nmatch if helper\n",
		"package p\n\nhelper := [x | some x in input.intent.metadata; regex.match(\"a\", x)]\n\nmatch if count(helper) > 1\n",
	} {
		if _, err := CompileCondition(source); err != nil {
			t.Errorf("CompileCondition(%q): %v", source, err)
		}
	}
}
