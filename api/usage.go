package api

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// usageBody is the body of GET /v1/usage/summary.
type usageBody struct {
	Plan          string     `json:"plan"`
	Period        period     `json:"period"`
	Meters        planMeters `json:"meters"`
	RetentionDays int        `json:"retention_days"`
	Upgrade       *upgrade   `json:"upgrade,omitzero"`
}

// period is a calendar month in UTC. It includes Start and excludes End.
type period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

func periodOf(m storage.Month) period {
	return period{m.Start(), m.Start().AddDate(0, 1, 0)}
}

// planMeters are the meters of a plan. They count the evaluations in the period, all agents, policies and rules, and
// the usable tokens.
type planMeters struct {
	Evaluations planMeter `json:"evaluations"`
	Agents      planMeter `json:"agents"`
	Policies    planMeter `json:"policies"`
	Rules       planMeter `json:"rules"`
	Tokens      planMeter `json:"tokens"`
}

// planMeter is the use of a limit. Used can exceed Limit after a downgrade. Remaining is then 0. Used stops at the
// limit of evaluations: what is denied above it uses none.
type planMeter struct {
	Used      int64 `json:"used"`
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
}

func newPlanMeter(used, limit int64) planMeter {
	return planMeter{used, limit, max(limit-used, 0)}
}

// upgrade recommends a plan to an organization on the free plan that is near a limit.
type upgrade struct {
	Plan   string   `json:"recommended_plan"`
	Reason string   `json:"reason"`
	Meters []string `json:"meters"` // the meters that are near their limits
}

// nearPercent is the percentage of a limit from which on the use counts as near the limit.
const nearPercent = 80

// near reports whether at least nearPercent of the limit is used. A limit of 0 means no limit, or that nothing is
// allowed. The use is then never near it.
func (m planMeter) near() bool {
	return m.Limit > 0 && float64(m.Used)*100 >= float64(m.Limit)*nearPercent
}

// usageSummary answers with how much of its plan the organization has used.
func (s *Server) usageSummary(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	month := storage.MonthOf(r.now)
	meters, err := s.planMeters(r, plan, month)
	if err != nil {
		return fmt.Errorf("reading the usage: %w", err)
	}
	body := usageBody{Plan: plan.Name, Period: periodOf(month), Meters: meters, RetentionDays: plan.RetentionDays}
	if plan.Name == engine.FreePlan {
		body.Upgrade = recommend(meters, plan, s.decisions.Plans.All())
	}
	return r.ok(body)
}

func (s *Server) planMeters(r *request, plan engine.Plan, month storage.Month) (planMeters, error) {
	ctx, org := r.ctx, r.who.org
	evaluations, err1 := s.store.Metered(ctx, org, month)
	used, err2 := s.docs.Usage(ctx, org, r.stamp())
	if err := cmp.Or(err1, err2); err != nil {
		return planMeters{}, err
	}
	return planMeters{
		Evaluations: newPlanMeter(min(evaluations, plan.Evaluations), plan.Evaluations),
		Agents:      newPlanMeter(used.Agents.Counted(plan.Agents), int64(plan.Agents)),
		Policies:    newPlanMeter(int64(used.Policies), int64(plan.Policies)),
		Rules:       newPlanMeter(int64(used.Rules), int64(plan.Rules)),
		Tokens:      newPlanMeter(int64(used.Tokens), int64(plan.Tokens)),
	}, nil
}

// recommend returns the next greater plan if a meter of the free plan is near its limit. Otherwise it returns nil.
func recommend(m planMeters, free engine.Plan, plans map[string]engine.Plan) *upgrade {
	var near []string
	for _, meter := range []struct {
		name string
		m    planMeter
	}{{"evaluations", m.Evaluations}, {"agents", m.Agents}, {"policies", m.Policies}, {"rules", m.Rules},
		{"tokens", m.Tokens}} {
		if meter.m.near() {
			near = append(near, meter.name)
		}
	}
	next := nextPlan(free, plans)
	if len(near) == 0 || next == "" {
		return nil
	}
	return &upgrade{
		Plan: next,
		Reason: fmt.Sprintf("At least %d %% of the %s plan's limit is used: %s.", nearPercent, free.Name,
			strings.Join(near, ", ")),
		Meters: near,
	}
}

// nextPlan returns the plan with the fewest evaluations among the plans with more evaluations than free. It returns ""
// if there is no such plan.
func nextPlan(free engine.Plan, plans map[string]engine.Plan) string {
	var next engine.Plan
	for _, p := range plans {
		if p.Evaluations <= free.Evaluations {
			continue
		}
		if next.Name == "" ||
			cmp.Or(cmp.Compare(p.Evaluations, next.Evaluations), strings.Compare(p.Name, next.Name)) < 0 {
			next = p
		}
	}
	return next.Name
}
