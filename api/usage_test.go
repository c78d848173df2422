package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

func (h *harness) usage(org string) usageBody {
	h.t.Helper()
	var body usageBody // an operator reads, because a key would count as a token
	h.do("GET", "/v1/usage/summary", h.operator(org), nil).wantStatus(http.StatusOK).into(&body)
	return body
}

func (h *harness) subscribe(org, plan string) {
	h.t.Helper()
	must(h.t, storagetest.PutSubscription(context.Background(), h.docs, &storage.Subscription{OrganizationID: org, Plan: plan, Status: "active"}))
}

// small returns plans whose free plan is quickly used up.
func small() map[string]engine.Plan {
	plans := engine.DefaultPlans()
	plans[engine.FreePlan] = engine.Plan{Name: engine.FreePlan, Evaluations: 5, Agents: 5, Policies: 10, RetentionDays: 7}
	return plans
}

// freePlan returns a configuration in which f has changed the free plan.
func freePlan(f func(*engine.Plan)) func(*setup) {
	return func(c *setup) {
		c.Service.Plans = engine.DefaultPlans()
		free := c.Service.Plans[engine.FreePlan]
		f(&free)
		c.Service.Plans[engine.FreePlan] = free
	}
}

func month(y int, m time.Month) period {
	start := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
	return period{start, start.AddDate(0, 1, 0)}
}

func TestDecision_Plans_UsageSummary(t *testing.T) {
	h := start(t, func(c *setup) { c.Service.Plans = small() })
	want := usageBody{
		Plan: "free", Period: month(2026, 11), RetentionDays: 7,
		Meters: planMeters{planMeter{0, 5, 5}, planMeter{0, 5, 5}, planMeter{0, 10, 10}, planMeter{}, planMeter{}},
	}
	check := func(when string) {
		t.Helper()
		same(t, fmt.Sprintf("%s: usage", when), want, h.usage(acme))
	}
	check("at first")

	h.register(acme)
	h.register(acme, obj{"version": 2})
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "a"}).wantStatus(http.StatusCreated)
	h.register(rival)
	again := intent()
	for _, body := range []obj{again, again, intent(), intent()} {
		h.evaluate(acme, body).wantStatus(http.StatusOK)
		h.evaluate(rival, intent()).wantStatus(http.StatusOK)
	}
	want.Meters = planMeters{planMeter{3, 5, 2}, planMeter{1, 5, 4}, planMeter{1, 10, 9}, planMeter{}, planMeter{}}
	check("a replay, a version and another organization do not count")

	h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	want.Meters.Evaluations = planMeter{4, 5, 1}
	want.Upgrade = &upgrade{Plan: "pro", Meters: []string{"evaluations"}, Reason: "At least 80 % of the free plan's limit is used: evaluations."}
	check("upgrade is recommended from 80 % of any Free meter")

	for range 3 {
		h.evaluate(acme, intent()).wantStatus(http.StatusOK)
	}
	want.Meters.Evaluations = planMeter{5, 5, 0}
	check("remaining is never negative")

	h.clock.advance(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).Sub(h.clock.Now()) - time.Nanosecond)
	check("the last moment of the month, in UTC")
	h.clock.advance(time.Nanosecond)
	want.Meters.Evaluations, want.Period, want.Upgrade = planMeter{0, 5, 5}, month(2026, 12), nil
	check("the month turns over in UTC")

	h.subscribe(acme, "pro")
	want.Plan, want.RetentionDays = "pro", 90
	want.Meters = planMeters{planMeter{0, 1_000_000, 1_000_000}, planMeter{1, 100, 99}, planMeter{1, 500, 499}, planMeter{0, 1000, 1000}, planMeter{0, 1000, 1000}}
	check("a subscription takes effect")
}

func TestDecision_Plans_UpgradeNamesEveryMeterThatIsNear(t *testing.T) {
	plans := engine.DefaultPlans()
	free := plans[engine.FreePlan]
	for name, tc := range map[string]struct {
		evaluations, agents, policies, rules, tokens int64
		want                                         []string
	}{
		"nothing":    {0, 0, 0, 0, 0, nil},
		"below 80 %": {7_999, 3, 7, 79, 79, nil},
		"each":       {8_000, 4, 8, 80, 80, []string{"evaluations", "agents", "policies", "rules", "tokens"}},
		"agents":     {7_999, 4, 7, 79, 79, []string{"agents"}},
		"policies":   {0, 0, 11, 0, 0, []string{"policies"}},
		"rules":      {0, 0, 0, 81, 0, []string{"rules"}},
		"tokens":     {0, 0, 0, 0, 100, []string{"tokens"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := recommend(planMeters{
				newPlanMeter(tc.evaluations, free.Evaluations), newPlanMeter(tc.agents, int64(free.Agents)),
				newPlanMeter(tc.policies, int64(free.Policies)), newPlanMeter(tc.rules, int64(free.Rules)),
				newPlanMeter(tc.tokens, int64(free.Tokens)),
			}, free, plans)
			if got == nil != (tc.want == nil) || got != nil && (got.Plan != "pro" || !cmp.Equal(got.Meters, tc.want)) {
				t.Errorf("recommend = %+v, want pro for %v", got, tc.want)
			}
		})
	}
	near := planMeters{Evaluations: newPlanMeter(free.Evaluations, free.Evaluations)}
	if got := recommend(near, free, map[string]engine.Plan{free.Name: free}); got != nil {
		t.Errorf("recommend where there is no greater plan = %+v, want nil", got)
	}
}

func TestUsageSummary_AStoreThatCannotTellIs500(t *testing.T) {
	h := start(t)
	for _, call := range []string{"Metered", "Counts", "CountTokens"} {
		h.store.fail(call, errors.New("unreachable"))
		h.do("GET", "/v1/usage/summary", h.operator(acme), nil).wantProblem(http.StatusInternalServerError, codeInternal)
		h.store.fail(call, nil)
	}
	h.do("GET", "/v1/usage/summary?month=202611", h.operator(acme), nil).wantField("month")
}

func TestHostedConfig_IsPublicAndNeverFromTheHostHeader(t *testing.T) {
	h := start(t, func(c *setup) {
		c.Hosted = Hosted{APIURL: "https://api.example.com/", PortalURL: "https://portal.example.com/writ/"}
	})
	for _, host := range []string{"", "evil.example.com", "localhost:1"} {
		req, err := http.NewRequest(http.MethodGet, "http://"+h.addr+"/v1/hosted/config", nil)
		must(t, err)
		req.Host = host
		got := h.send(req).wantStatus(http.StatusOK)
		want := `{"api_base_url":"https://api.example.com","portal_base_url":"https://portal.example.com/writ","plan":"free",` +
			`"limits":{"evaluations_per_month":10000,"agents":5,"policies":10,"rules":100,"tokens":100,"retention_days":7}}`
		if string(got.body) != want {
			t.Errorf("GET /v1/hosted/config with Host %q = %s, want %s", host, got.body, want)
		}
	}
}

func TestHosted_Defaults(t *testing.T) {
	for _, tc := range []struct{ in, want Hosted }{
		{Hosted{}, Hosted{"http://localhost:3820", "http://localhost:3820"}},
		{Hosted{APIURL: "https://a/"}, Hosted{"https://a", "https://a"}},
		{Hosted{PortalURL: "https://p"}, Hosted{"http://localhost:3820", "https://p"}},
	} {
		if got := tc.in.withDefaults(); got != tc.want {
			t.Errorf("%+v.withDefaults() = %+v, want %+v", tc.in, got, tc.want)
		}
	}
	for _, bad := range []string{"a", "//a", "ftp://a", "https://", "https://a?b", "https://a#b", "https://u:p@a", "http://a\x7f", "/v1"} {
		if err := (Hosted{bad, "https://p"}).check(); err == nil {
			t.Errorf("Hosted.check of %q = nil, want an error", bad)
		}
		if err := (Hosted{"https://a", bad}).check(); err == nil {
			t.Errorf("Hosted.check of portal %q = nil, want an error", bad)
		}
	}
}

const serviceToken = "a-service-token-of-a-deployment"

func TestDecision_Credentials_OpsUsageTakesTheServiceBearerAlone(t *testing.T) {
	for _, configured := range []string{serviceToken, ""} {
		h := start(t, func(c *setup) { c.ServiceToken = configured })
		key, _ := h.key(acme, Scopes()...)
		tokens := map[string]string{
			"none": "", "junk": "x", "operator": h.operator(acme), "key with every scope": key,
			"longer": serviceToken + "x", "shorter": serviceToken[1:], "other case": "A" + serviceToken[1:],
		}
		if configured == "" {
			tokens["service token that is not set"] = serviceToken
		}
		for name, token := range tokens {
			r := h.do("GET", "/v1/ops/usage", token, nil)
			if r.wantProblem(http.StatusUnauthorized, codeUnauthorized); r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: WWW-Authenticate = %q, want Bearer", name, r.header.Get("WWW-Authenticate"))
			}
			if !strings.Contains(string(r.body), "the deployment's service token") {
				t.Errorf("%s: body = %s, want the credential named that is asked for", name, r.body)
			}
		}
		if configured == "" {
			continue
		}
		h.do("GET", "/v1/ops/usage", serviceToken, nil).wantStatus(http.StatusOK)
	}
}

func (h *harness) ops() opsUsageBody {
	h.t.Helper()
	body := read[opsUsageBody](h.do("GET", "/v1/ops/usage", serviceToken, nil).wantStatus(http.StatusOK))
	return body
}

func TestOpsUsage_SumsFreeAndPaid(t *testing.T) {
	h := start(t, func(c *setup) { c.ServiceToken = serviceToken })
	want := opsUsageBody{
		Period: month(2026, 11), Paid: paidUsage{ByPlan: map[string]planUsage{"pro": {}, "business": {}}},
	}
	check := func(when string) {
		t.Helper()
		same(t, fmt.Sprintf("%s: ops usage", when), want, h.ops(), cmp.AllowUnexported(paidUsage{}))
	}
	check("at first")
	for i, plan := range []string{"", "", "pro", "business", "business", "unheard-of"} {
		org := fmt.Sprintf("org-%d", i)
		if plan != "" {
			h.subscribe(org, plan)
		}
		h.register(org)
		for range i + 1 {
			h.evaluate(org, intent()).wantStatus(http.StatusOK)
		}
	}
	h.register("idle")
	want.Free = planUsage{3, 1 + 2 + 6}
	want.Paid = paidUsage{planUsage{3, 3 + 4 + 5}, map[string]planUsage{"pro": {1, 3}, "business": {2, 4 + 5}}}
	check("every organization counts for the plan that it is on")

	h.subscribe("org-0", "pro")
	want.Free = planUsage{2, 2 + 6}
	want.Paid = paidUsage{planUsage{4, 1 + 3 + 4 + 5}, map[string]planUsage{"pro": {2, 1 + 3}, "business": {2, 4 + 5}}}
	check("a plan that changed counts from then on")
	if r := h.do("GET", "/v1/ops/usage", serviceToken, nil); bytes.Contains(r.body, []byte("org-")) ||
		!bytes.Contains(r.body, []byte(`"paid":{"organizations":4,"evaluations":13,"by_plan":{`)) {
		t.Errorf("GET /v1/ops/usage = %s, want sums without names", r.body)
	}

	h.clock.advance(11 * 24 * time.Hour)
	want.Period, want.Free, want.Paid.planUsage = month(2026, 12), planUsage{}, planUsage{}
	want.Paid.ByPlan = map[string]planUsage{"pro": {}, "business": {}}
	check("the month turns over in UTC")

	for _, call := range []string{"Meters", "Subscription"} {
		h.evaluate("org-0", intent()).wantStatus(http.StatusOK)
		h.store.fail(call, errors.New("unreachable"))
		h.do("GET", "/v1/ops/usage", serviceToken, nil).wantProblem(http.StatusInternalServerError, codeInternal)
		h.store.fail(call, nil)
	}
}

func TestDecision_Idempotency_AnIntentStaysDecidedAfterItsRetention(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"agent_id": "ci"})
	denied, other := intent(obj{"action_type": "sql.drop"}), intent()
	wantDecision(t, h.evaluate(acme, denied), "deny")
	h.clock.advance(10 * 24 * time.Hour)
	wantDecision(t, h.evaluate(acme, other), "allow")
	n, err := h.store.RemoveRecords(context.Background(), acme, h.clock.Now().Add(-7*24*time.Hour), storage.Expired{Records: 100, Settled: 100})
	if n.Records != 1 || err != nil {
		t.Fatalf("RemoveRecords = %+v, %v, want 1", n, err)
	}
	if rows := h.history(acme); len(rows) != 1 {
		t.Errorf("history = %d rows, want 1", len(rows))
	}
	allowed := intent(obj{"intent_id": denied["intent"].(obj)["intent_id"]})
	for name, body := range map[string]obj{"the same": denied, "another body": allowed} {
		for _, path := range []string{"/v1/policy/evaluate", "/v1/governance/authorize"} {
			p := h.do("POST", path, h.operator(acme), body).wantProblem(http.StatusConflict, "intent_expired")
			if p.Receipt != nil || p.DecisionID != "" {
				t.Errorf("%s: problem = %+v, want nothing of the decision", name, p)
			}
		}
	}
	wantDecision(t, h.evaluate(acme, other), "allow")
	if got := h.usage(acme).Meters.Evaluations.Used; got != 1 {
		t.Errorf("%d evaluations are metered in the new month, want 1", got)
	}
}
