package api

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// pastDay is an organization whose documents change all the time.
type pastDay struct {
	*harness
	n       *rand.Rand
	token   string
	rules   []string // ids
	version int
}

var pastConditions = []string{
	`{"action_type":"deploy","metadata.env":{"$in":{"list":"envs"}}}`,
	`{"agent_id":"ci","metadata.size":{"$gt":%d}}`,
	`{"resource":"prod/*","cost.amount_minor":{"$gt":%d}}`,
	`{"cel":"intent.metadata.env == 'e%d' || !has(intent.metadata.size)"}`,
	`{"cel":"has(intent.cost) && intent.cost.amount_minor > %d && agent.status == 'active'"}`,
	`{"cel":"intent.resource.endsWith('web') && intent.metadata.exists(k, k == 'size')"}`,
	`{"rego":"input.intent.metadata.env == \"e%d\""}`,
	`{"rego":"package p\n\nimport data.lib.sizes\n\nmatch if sizes.large(input.intent.cost.amount_minor)\n"}`,
	`{"rego":"package p\n\nmatch if input.intent.metadata.env == \"e%d\"\n\nreason contains input.intent.resource\n\nreason contains \"large\" if input.intent.metadata.size"}`,
	`{"cel":"decimal_compare(intent.metadata.size, '%d') > 0"}`,
}

func (d *pastDay) condition() string {
	c := pastConditions[d.n.IntN(len(pastConditions))]
	if n := d.n.IntN(4); fmt.Sprintf(c, n) != c+fmt.Sprintf("%%!(EXTRA int=%d)", n) {
		return fmt.Sprintf(c, n)
	}
	return c
}

func (d *pastDay) rule() obj {
	decision := []string{"deny", "approval_required", "allow"}[d.n.IntN(3)]
	return obj{"name": fmt.Sprint("n", d.n.IntN(9)), "condition": d.condition(), "priority": d.n.IntN(5),
		"action": `{"decision":"` + decision + `"}`}
}

func (d *pastDay) addRule() {
	d.t.Helper()
	made := read[engine.Rule](d.do("POST", "/v1/rules", d.token, d.rule()).wantStatus(http.StatusCreated))
	d.rules = append(d.rules, made.ID)
}

// list, library and policy store a new version.
func (d *pastDay) list() {
	d.t.Helper()
	if r := d.do("PUT", "/v1/lists/envs", d.token, obj{"values": []string{fmt.Sprint("e", d.n.IntN(3)), "x"}}); r.status > 201 {
		d.t.Fatalf("the list: %s", r.body)
	}
}

func (d *pastDay) library() {
	d.t.Helper()
	source := fmt.Sprintf("package lib.sizes\n\nlarge(n) if n > %d\n", d.n.IntN(5))
	if r := d.do("PUT", "/v1/libraries/sizes", d.token, obj{"modules": obj{"a.rego": source}}); r.status > 201 {
		d.t.Fatalf("the library: %s", r.body)
	}
}

func (d *pastDay) policy() {
	d.version++
	d.register(acme, obj{"version": d.version, "max_cost_minor": d.n.IntN(6), "currency": "EUR"})
}

func (d *pastDay) change() {
	d.t.Helper()
	at := d.n.IntN(len(d.rules))
	switch d.n.IntN(8) {
	case 0, 1:
		d.do("PATCH", "/v1/rules/"+d.rules[at], d.token, d.rule()).wantStatus(http.StatusOK)
	case 2:
		d.do("PATCH", "/v1/rules/"+d.rules[at], d.token, obj{"isActive": d.n.IntN(3) > 0}).wantStatus(http.StatusOK)
	case 3:
		d.do("DELETE", "/v1/rules/"+d.rules[at], d.token, nil).wantStatus(http.StatusNoContent)
		d.rules[at] = d.rules[len(d.rules)-1]
		d.rules = d.rules[:len(d.rules)-1]
		d.addRule()
	case 4:
		d.list()
	case 5:
		d.library()
	case 6:
		d.policy()
	case 7:
		status := []string{"active", "disabled"}[d.n.IntN(2)]
		d.do("PATCH", "/v1/agents/ci/status", d.token, obj{"status": status}).wantStatus(http.StatusOK)
	}
}

func (d *pastDay) intent() obj {
	metadata := obj{}
	if d.n.IntN(4) > 0 {
		metadata["env"] = fmt.Sprint("e", d.n.IntN(4))
	}
	if d.n.IntN(2) == 0 {
		metadata["size"] = []string{"0", "1", "2.5", "many"}[d.n.IntN(4)]
	}
	in := obj{"agent_id": []string{"ci", "other"}[d.n.IntN(2)], "metadata": metadata,
		"resource": []string{"prod/web", "https://example.com/a?b=c", "stage/db"}[d.n.IntN(3)]}
	if d.n.IntN(3) > 0 {
		in["cost"] = obj{"amount_minor": d.n.IntN(6), "currency": "EUR"}
	}
	return intent(in)
}

// TestAuthorization_ExplainedAsOfItsDay explains 1,000 decisions after every rule, list, library and
// policy has changed. Each explanation must equal a simulation on the day of the decision. A part that reads
// something the row lacks may be unknown, but must not differ.
func TestAuthorization_ExplainedAsOfItsDay(t *testing.T) {
	for mode, decisions := range map[ledger.Mode]int{ledger.Minimal: 300, ledger.Full: 700} {
		t.Run(string(mode), func(t *testing.T) {
			h := start(t, func(c *setup) { c.Audit = mode })
			d := &pastDay{harness: h, n: rand.New(rand.NewPCG(7, uint64(len(mode)))), token: h.operator(acme)}
			d.policy()
			d.list()
			d.library()
			d.do("POST", "/v1/agents", d.token, obj{"name": "x", "externalId": "ci"}).wantStatus(http.StatusCreated)
			for range 6 {
				d.addRule()
			}
			then := make(map[string]*engine.Explanation)
			for range decisions {
				in := d.intent()
				tried := read[simulated](d.simulate(d.token, obj{"intent": in["intent"]}).wantStatus(http.StatusOK))
				got := read[result](d.evaluate(acme, in).wantStatus(http.StatusOK))
				then[got.DecisionID] = tried.Explanation
				if d.n.IntN(2) == 0 {
					d.change()
				}
			}
			for _, id := range d.rules {
				d.do("DELETE", "/v1/rules/"+id, d.token, nil).wantStatus(http.StatusNoContent)
			}
			d.policy()
			d.do("DELETE", "/v1/lists/envs", d.token, nil).wantStatus(http.StatusNoContent)
			d.do("DELETE", "/v1/libraries/sizes", d.token, nil).wantStatus(http.StatusNoContent)
			whole, unknown := 0, 0
			for id, want := range then {
				row := d.explain(d.token, id)
				got := row.Explanation
				if got == nil {
					t.Fatalf("decision %s is unexplained: %s\nthen: %+v", id, row.Unexplained, want)
				}
				if len(got.Unknown) == 0 {
					whole++
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("the explanation of decision %s, which lacks %q (-then +later):\n%s", id, row.LeftOut, diff)
					}
					continue
				}
				unknown++
				wantPart(t, want, got)
			}
			t.Logf("%d were explained whole, %d in part", whole, unknown)
			if whole == 0 || (unknown == 0) != (mode == ledger.Full) {
				t.Errorf("%d were explained whole, %d in part; want both, and none in part if rows keep all", whole, unknown)
			}
		})
	}
}

// wantPart checks that got says nothing else than want, but that it may know less.
func wantPart(t *testing.T, want, got *engine.Explanation) {
	t.Helper()
	if diff := cmp.Diff(want.Findings, got.Findings); diff != "" || want.Decision != got.Decision {
		t.Errorf("the findings of a decision (-then +later):\n%s", diff)
	}
	if len(want.Checks) != len(got.Checks) || len(want.Rules) != len(got.Rules) {
		t.Fatalf("%d checks and %d rules then, %d and %d later", len(want.Checks), len(want.Rules), len(got.Checks), len(got.Rules))
	}
	for i := range want.Checks {
		if a, b := want.Checks[i], got.Checks[i]; a.Code != b.Code || a.Result != b.Result || a.Holds != b.Holds {
			t.Errorf("check %d: %+v then, %+v later", i, a, b)
		}
	}
	for i := range want.Rules {
		a, b := want.Rules[i], got.Rules[i]
		if a.ID != b.ID || a.Condition != b.Condition || a.Outcome != b.Outcome || a.Decides != b.Decides ||
			a.Result != b.Result && b.Result != "unknown" {
			t.Errorf("rule %d: %+v then, %+v later, where %q is unknown", i, a, b, got.Unknown)
		}
		for k := range b.Leaves {
			if l := b.Leaves[k]; len(a.Leaves) != len(b.Leaves) || l != a.Leaves[k] && l.Result != "unknown" {
				t.Errorf("leaf %d of rule %d: %+v then, %+v later, where %q is unknown", k, i, a.Leaves, b.Leaves, got.Unknown)
			}
		}
	}
}

// wantExplained checks the decision and the unknown members of a row's explanation.
func (h *harness) wantExplained(decisionID string, decision engine.Decision, unknown ...string) *engine.Explanation {
	h.t.Helper()
	row := h.explain(h.operator(acme), decisionID)
	x := row.Explanation
	if x == nil {
		h.t.Fatalf("the row is unexplained: %s", row.Unexplained)
	}
	if x.Decision != decision || !slices.Equal(x.Unknown, unknown) {
		h.t.Errorf("the row is explained by %s, unknown %q, want %s, %q", x.Decision, x.Unknown, decision, unknown)
	}
	return x
}

// TestAuthorization_ExplainedWhatOverruled checks the decisions that rest on more than the policy and the
// rules: the explanation names it, and shows what the policy and the rules say.
func TestAuthorization_ExplainedWhatOverruled(t *testing.T) {
	t.Run("an approval", func(t *testing.T) {
		d := openDesk(t)
		body, id := d.hold()
		d.approve(id)
		got := read[result](d.redeem(body, id).wantStatus(http.StatusOK))
		x := d.wantExplained(got.DecisionID, engine.Allow, "approval")
		if len(x.Rules) == 0 || x.Rules[0].Result != "match" {
			t.Errorf("the rules are %+v, want the one that asks to match", x.Rules)
		}
	})
	t.Run("a batch", func(t *testing.T) {
		h := start(t)
		h.register(acme)
		out := h.batch(h.operator(acme), "all", inner(intent()), inner(intent(obj{"action_type": "sql.drop"})))
		x := h.wantExplained(h.read(out[0]).DecisionID, engine.Deny, "batch")
		for _, c := range x.Checks {
			if c.Result != "pass" {
				t.Errorf("the check %s is %s, want it to pass", c.Code, c.Result)
			}
		}
	})
	t.Run("a limit over time", func(t *testing.T) {
		h := start(t)
		h.register(acme)
		h.rule(acme, `{"count":{"by":["agent_id"],"window":"1h"},"gt":1}`, `{"decision":"deny"}`)
		for i, want := range []engine.Decision{engine.Allow, engine.Deny} {
			got := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
			x := h.wantExplained(got.DecisionID, want, "counts")
			if said := []string{"no_match", "match"}[i]; x.Rules[0].Result != said || x.Rules[0].Leaves[0].Result != "unknown" {
				t.Errorf("the rule is %+v, want it to be %s by a leaf that is unknown", x.Rules[0], said)
			}
		}
	})
	t.Run("an external core", func(t *testing.T) {
		h, _ := startElsewhere(t)
		for _, change := range []obj{nil, {"metadata": obj{"a": "b"}}} {
			got := read[result](h.evaluate(acme, intent(change)).wantStatus(http.StatusOK))
			if row := h.explain(h.operator(acme), got.DecisionID); row.Explanation != nil || row.Unexplained != moreThanThat {
				t.Errorf("a row of an external core is explained by %+v, %q", row.Explanation, row.Unexplained)
			}
		}
	})
}

// noChains is a store whose rows another store has decided.
type noChains struct{ storage.Store }

func (noChains) Chains(context.Context, func(receipt.Chain) error) error { return nil }

// TestAuthorization_ExplainedOfAnotherStore checks that the rules are unknown if another store has decided
// the row. The revisions in such a row mean nothing in this store.
func TestAuthorization_ExplainedOfAnotherStore(t *testing.T) {
	h := start(t, func(c *setup) { c.Service.Store = noChains{c.Service.Store} })
	h.register(acme)
	h.rule(acme, `{"action_type":"deploy"}`, `{"decision":"deny"}`)
	got := read[result](h.evaluate(acme, intent()).wantStatus(http.StatusOK))
	if x := h.wantExplained(got.DecisionID, engine.Deny, "rules"); len(x.Rules) > 0 || len(x.Checks) == 0 {
		t.Errorf("the explanation is %+v, want the checks without the rules", x)
	}
}
