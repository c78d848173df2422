package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
)

// stood is a decision with its explanation, when it was decided and later.
type stood struct {
	DecisionID  string         `json:"decision_id"`
	Decision    string         `json:"decision"`
	Reasons     []string       `json:"reasons"`
	Unexplained string         `json:"unexplained"`
	Explanation jsontext.Value `json:"explanation"`
}

// wantStood checks that d is explained, that the explanation has the reasons of the answer, and that it is
// then, if there is one from the day of the decision.
func (d *stood) wantStood(t *testing.T, answer, then *stood) {
	t.Helper()
	var x engine.Explanation
	if err := json.Unmarshal(d.Explanation, &x); err != nil || d.Unexplained != "" {
		t.Fatalf("decision %s is unexplained: %s, %v", d.DecisionID, d.Unexplained, err)
	}
	var reasons []string
	for _, f := range x.Findings {
		reasons = append(reasons, f.Reason)
	}
	if got, want := strings.Join(reasons, "\n"), strings.Join(answer.Reasons, "\n"); got != want ||
		x.Decision.String() != answer.Decision || len(x.Unknown) > 0 {
		t.Errorf("decision %s was %s for\n%s\nand is explained as %s, with %q unknown, for\n%s",
			d.DecisionID, answer.Decision, want, x.Decision, x.Unknown, got)
	}
	if then != nil && string(d.Explanation) != string(then.Explanation) {
		t.Errorf("decision %s is explained as\n%s\nand on its day as\n%s", d.DecisionID, d.Explanation, then.Explanation)
	}
}

// changingRule returns a rule that knows one amount.
func changingRule(rng *rand.Rand) object {
	decision := []string{"deny", "approval_required", "allow"}[rng.IntN(3)]
	return object{
		"name":      fmt.Sprint("amounts ", rng.IntN(100)),
		"condition": fmt.Sprintf(`{"agent_id":{"$in":{"list":"callers"}},"cost.amount_minor":{"$gt":%d}}`, rng.IntN(9)),
		"action":    fmt.Sprintf(`{"decision":%q,"reason":"by %d"}`, decision, rng.IntN(1000)), "priority": rng.IntN(5),
	}
}

// changeAll changes the policy, a list, rules and an agent until a request gets no answer.
func changeAll(t *testing.T, c client, rng *rand.Rand, version *int, agent string) {
	var rules []string
	for n := 0; ; n++ {
		var err error
		switch made := (engine.Rule{}); n % 6 {
		case 0:
			*version++ // one that got no answer may be stored
			err = c.call(http.MethodPost, "/v1/policies/register", object{"policy": object{
				"policy_id": testPolicy, "version": *version, "organization_id": examples.Organization,
				"agent_id": "*", "status": "active",
				"allowed_action_types": []string{"deploy"}, "max_cost_minor": rng.IntN(9), "currency": "EUR",
				"updated_at": "2026-11-01T09:00:00Z"}}, http.StatusCreated, nil)
		case 1, 2:
			if err = c.call(http.MethodPost, "/v1/rules", changingRule(rng), http.StatusCreated, &made); err == nil {
				rules = append(rules, made.ID)
			}
		case 3:
			err = c.call(http.MethodPatch, "/v1/rules/"+rules[rng.IntN(len(rules))], changingRule(rng), http.StatusOK, nil)
		case 4:
			at := rng.IntN(len(rules))
			err = c.call(http.MethodDelete, "/v1/rules/"+rules[at], nil, http.StatusNoContent, nil)
			rules = append(rules[:at], rules[at+1:]...)
		case 5:
			status := []string{"active", "disabled"}[rng.IntN(2)]
			err = c.call(http.MethodPatch, "/v1/agents/"+agent+"/status", object{"status": status}, http.StatusOK, nil)
			if err == nil {
				err = putCallers(c, rng)
			}
		}
		if err != nil {
			if strings.Contains(err.Error(), "want") {
				t.Error(err)
			}
			return
		}
	}
}

func putCallers(c client, rng *rand.Rand) error {
	return c.call(http.MethodPut, "/v1/lists/callers", object{"values": []string{"another", []string{"bot", "other"}[rng.IntN(2)]}},
		http.StatusOK, nil)
}

// TestCrash_Explain kills the real binary while policies, rules, a list and an agent change under decisions.
// Each decision must be explained as on its day, after each crash and after everything is replaced.
func TestCrash_Explain(t *testing.T) {
	kills := rounds(3, 20)
	data, token := newData(t)
	p := start(t, data)
	register(t, p.url, token)
	rng := rand.New(rand.NewPCG(31, 9))
	version := 1
	c := newClient(t, p.url, token)
	agent := c.newAgent(t, "bot")
	must(t, c.call(http.MethodPut, "/v1/lists/callers", object{"values": []string{"bot"}}, http.StatusCreated, nil))

	answers, then := make(map[string]*stood), make(map[string]*stood)
	for range kills {
		url := p.url
		var workers sync.WaitGroup
		var explained atomic.Int64
		changes := rand.New(rand.NewPCG(rng.Uint64(), 1))
		workers.Go(func() { changeAll(t, newClient(t, url, token), changes, &version, agent) })
		amounts := rand.New(rand.NewPCG(rng.Uint64(), 2))
		workers.Go(func() {
			for c := newClient(t, url, token); ; {
				in := newIntent([]string{"bot", "other"}[amounts.IntN(2)], "deploy", fmt.Sprint("k8s/", amounts.IntN(3)))
				body := strings.Replace(string(in.body), `"resource"`,
					fmt.Sprintf(`"cost":{"amount_minor":%d,"currency":"EUR"},"resource"`, amounts.IntN(9)), 1)
				got, err := c.send(http.MethodPost, url+"/v1/policy/evaluate", []byte(body))
				if err != nil {
					return // the server was killed
				}
				decided := new(stood)
				if err := json.Unmarshal([]byte(got.body), decided); err != nil || got.status != http.StatusOK {
					t.Errorf("evaluate = %d %s, %v", got.status, got.body, err)
					return
				}
				answers[decided.DecisionID] = decided
				now := new(stood)
				if c.call(http.MethodGet, "/v1/authorizations/"+decided.DecisionID+"?explain=true", nil, http.StatusOK, now) != nil {
					return
				}
				then[decided.DecisionID] = now
				explained.Add(1)
			}
		})
		target := int64(20 + rng.IntN(20))
		waitFor(t, "decisions that are explained", func() bool { return explained.Load() >= target || t.Failed() })
		time.Sleep(time.Duration(rng.IntN(5)) * time.Millisecond) // into the next change
		p.kill(t)
		workers.Wait()
		p = start(t, data)
		wantAllStood(t, newClient(t, p.url, token), answers, then)
	}
	c = newClient(t, p.url, token)
	var rules []engine.Rule
	c.do(t, http.MethodGet, "/v1/rules", nil, http.StatusOK, &rules)
	for _, r := range rules {
		c.do(t, http.MethodDelete, "/v1/rules/"+r.ID, nil, http.StatusNoContent, nil)
	}
	c.do(t, http.MethodDelete, "/v1/lists/callers", nil, http.StatusNoContent, nil)
	wantAllStood(t, c, answers, then)
	t.Logf("%d kills, %d decisions, %d versions of the policy, %d rules at the end", kills, len(answers), version, len(rules))
	p.stop(t)
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
}

func wantAllStood(t *testing.T, c client, answers, then map[string]*stood) {
	t.Helper()
	for id, answer := range answers {
		now := new(stood)
		c.do(t, http.MethodGet, "/v1/authorizations/"+id+"?explain=true", nil, http.StatusOK, now)
		now.wantStood(t, answer, then[id])
	}
}
