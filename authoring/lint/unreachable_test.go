package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition/conditiontest"
)

var (
	actionEntries = []string{"*", "sql.*", "sql.write", "sql.write.*", "sql.read", "SQL.write", "sql_write", "sql*", "*.write", "deploy", "deploy.*", "Deploy", "s*.w*", "sql.drop.*"}
	actions       = []string{"sql.write", "sql.read", "sql.write.bulk", "SQL.Write", "sql_write", "sql..write", "sql-write", "deploy", "DEPLOY", "deploy.prod", "sqlite", "sql.drop.x"}
	patterns      = []string{
		"**", "prod/**", "prod/*", "prod/secrets/**", "prod/secrets/*", "prod/secrets/key", "PROD/**", "prod/[a-s]*/**", "prod/[sS][eE]crets/**", "*/secrets/**", "**/secrets/**",
		"prod/{secrets,db}/**", "{prod,stage}/**", "prod/?b", "prod/[!a]b", "prod/a,b", "a,b", "*", "?", "*2F", "*[2]F", "stage/*%2F*", "stage/**",
		"https://**", "https://api.example.com/**", "https://API.example.com:443/v1/*", "https://api.example.com/v1/users", "https://*.example.com/**", "http*://api.example.com/**",
		"mailto:*@example.com", "*@example.com", "mailto:legal@example.com", `C:\data\**`, `c:\Data\x`, "C:/**", "/etc/**", "/etc/passwd", "file:///etc/**", "s3://bucket/**", "s3://bucket/a*",
	}
	targets = []string{
		"prod/secrets/key", "prod/secrets", "prod/x/../secrets/key", "prod/Secrets/key", "PROD/secrets/key", "prod/db", "prod/db/x", "prod/%73ecrets/key", "prod/a,b", "a,b", "a", "é",
		"a%2F", "stage/a%2Fb", "stage/x/secrets/y", "https://api.example.com/v1/users", "https://API.example.com/v1/../v1/users?x=1", "http://api.example.com/v1", "https://www.example.com/a/b",
		"mailto:legal@example.com", "mailto:LEGAL@example.com,a@example.com", "a@example.com", `C:\Data\x`, `c:\data\x\y`, "/etc/passwd", "/etc//passwd", "file:///etc/passwd", "s3://bucket/a", "s3://bucket/b/..;/a",
	}
)

func (g generator) some(most int, words []string) []string {
	var list []string
	for range g.IntN(most + 1) {
		list = append(list, conditiontest.Pick(g.Generator, words...))
	}
	return list
}

func (g generator) policy() *engine.ActionPolicy {
	return &engine.ActionPolicy{
		PolicyID: policyID, Version: 1, OrganizationID: "acme", AgentID: "*", Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
		AllowedActionTypes: append(g.some(3, actionEntries), conditiontest.Pick(g.Generator, "sql.*", "*", "deploy")), DeniedActionTypes: g.some(2, actionEntries[1:]),
		AllowedResourcePatterns: g.some(4, patterns), BlockedResourcePatterns: g.some(3, patterns[1:]),
	}
}

// target returns a resource that a pattern of p may match.
func (g generator) target(p *engine.ActionPolicy) string {
	of := slices.Concat(p.AllowedResourcePatterns, p.BlockedResourcePatterns)
	if len(of) == 0 || g.IntN(3) == 0 {
		return conditiontest.Pick(g.Generator, targets...)
	}
	pick := func(words ...string) string { return conditiontest.Pick(g.Generator, words...) }
	return strings.NewReplacer("**", pick("x", "secrets/key", "", "db/x"), "*", pick("a", "secrets", "", "a%2F", "a,b"), "?", pick("d", "é"), "[a-s]", "s", "[sS]", pick("s", "S"),
		"[eE]", "e", "{secrets,db}", pick("secrets", "db"), "{prod,stage}", pick("prod", "stage"), "[!a]", pick("b", "é"), "[2]", "2").Replace(conditiontest.Pick(g.Generator, of...))
}

// entry is an entry of a list that is reported as unreachable. beaten says that the reason is a
// block: the entry allows nothing.
type entry struct {
	list   string
	i      int
	beaten bool
}

func unreachable(t *testing.T, p *engine.ActionPolicy) (found []entry) {
	t.Helper()
	for _, w := range lint.Policy(p) {
		if w.Rule != "unreachable" {
			continue
		}
		list, i, _ := strings.Cut(strings.TrimSuffix(w.Field, "]"), "[")
		e := entry{list: list, beaten: strings.Contains(w.Message, "allows nothing")}
		if _, err := fmt.Sscan(i, &e.i); err != nil {
			t.Fatalf("field %s: %v", w.Field, err)
		}
		found = append(found, e)
	}
	return found
}

func without(p *engine.ActionPolicy, entries ...entry) *engine.ActionPolicy {
	q := *p
	for name, list := range map[string]*[]string{
		"policy.allowed_action_types": &q.AllowedActionTypes, "policy.denied_action_types": &q.DeniedActionTypes,
		"policy.allowed_resource_patterns": &q.AllowedResourcePatterns, "policy.blocked_resource_patterns": &q.BlockedResourcePatterns,
	} {
		kept := []string{}
		for i, s := range *list {
			if !slices.ContainsFunc(entries, func(e entry) bool { return e.list == name && e.i == i }) {
				kept = append(kept, s)
			}
		}
		*list = kept
	}
	return &q
}

// TestUnreachable_ChangesNothing removes reported entries and compares decisions. Without one
// covered entry, or without all covered entries, the decisions and their codes stay the same.
// Without an entry that a block beats, the decisions stay the same, but the code may differ.
func TestUnreachable_ChangesNothing(t *testing.T) {
	const perPolicy = 60
	reported, beaten, asked, allowed := 0, 0, 0, 0
	for seed := range uint64(scale(1700)) {
		g := generator{conditiontest.New(seed)}
		p := g.policy()
		all := compilePolicy(t, p)
		found := unreachable(t, p)
		covered := slices.DeleteFunc(slices.Clone(found), func(e entry) bool { return e.beaten })
		others := []*engine.Policy{compilePolicy(t, without(p, covered...))}
		lacks, nothing := []entry{{}}, false
		for _, e := range found {
			if e.beaten && e.list == "policy.allowed_resource_patterns" && len(p.AllowedResourcePatterns) == 1 {
				nothing = true // a policy without a pattern would allow all resources
				continue
			}
			others, lacks = append(others, compilePolicy(t, without(p, e))), append(lacks, e)
		}
		reported += len(found)
		for range perPolicy {
			in := &engine.Input{Intent: g.intent(), Agent: engine.AgentActive}
			in.Intent.ActionType, in.Intent.Resource = conditiontest.Pick(g.Generator, actions...), g.target(p)
			if in.Intent.Validate() != nil {
				continue
			}
			asked++
			want := engine.Evaluate(all, nil, in)
			if want.Decision == engine.Allow {
				allowed++
			}
			if nothing && want.Decision == engine.Allow {
				t.Fatalf("seed %d: %q is allowed by a pattern that is reported to allow nothing\n%+v", seed, in.Intent.Resource, p)
			}
			for i, other := range others {
				got := engine.Evaluate(other, nil, in)
				if lacks[i].beaten {
					beaten++
				}
				if got.Decision != want.Decision || !slices.Equal(codes(got, lacks[i].beaten), codes(want, lacks[i].beaten)) {
					t.Fatalf("seed %d: %v, without %+v %v, of %q %q\n%+v\nreported %+v", seed, codes(want, false), lacks[i], codes(got, false), in.Intent.ActionType, in.Intent.Resource, p, found)
				}
			}
		}
	}
	t.Logf("%d intents, %d allowed; %d entries reported, %d decisions without one that is beaten", asked, allowed, reported, beaten)
	if asked < scale(1700)*perPolicy/2 || allowed*20 < asked || reported < scale(1700) || beaten < asked/10 {
		t.Error("too few")
	}
}

func compilePolicy(t *testing.T, p *engine.ActionPolicy) *engine.Policy {
	t.Helper()
	c, err := engine.CompilePolicy(p)
	if err != nil {
		t.Fatalf("CompilePolicy(%+v) = %v", p, err)
	}
	return c
}

// codes returns the codes of the findings. If butNotAllowed is true, it leaves out the codes for an
// intent that no entry allows.
func codes(r engine.Result, butNotAllowed bool) []engine.Code {
	var all []engine.Code
	for _, f := range r.Findings {
		if !butNotAllowed || f.Code != engine.CodeActionNotAllowed && f.Code != engine.CodeResourceNotAllowed {
			all = append(all, f.Code)
		}
	}
	return all
}
