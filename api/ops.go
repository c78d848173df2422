package api

import (
	"fmt"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// opsUsageBody is the body of GET /v1/ops/usage. It has sums over all organizations and no
// organization's name.
type opsUsageBody struct {
	Period period    `json:"period"`
	Free   planUsage `json:"free"`
	Paid   paidUsage `json:"paid"`
}

// planUsage is the usage of a group of organizations in the period. An organization without a
// decision in the period is not counted.
type planUsage struct {
	Organizations int64 `json:"organizations"`
	Evaluations   int64 `json:"evaluations"`
}

// paidUsage is the usage of organizations on paid plans, in total and for each plan. A plan without
// usage has zeros.
type paidUsage struct {
	planUsage
	ByPlan map[string]planUsage `json:"by_plan"`
}

func (u *planUsage) add(decided int64) {
	u.Organizations++
	u.Evaluations += decided
}

// opsUsage sums the month's evaluations by the current plans of the organizations.
func (s *Server) opsUsage(r *request) error {
	if err := r.query.done(); err != nil {
		return err
	}
	month := storage.MonthOf(r.now)
	body := opsUsageBody{Period: periodOf(month), Paid: paidUsage{ByPlan: make(map[string]planUsage)}}
	for name := range s.decisions.Plans.All() {
		if name != engine.FreePlan {
			body.Paid.ByPlan[name] = planUsage{}
		}
	}
	err := s.store.Meters(r.ctx, month, func(org string, decided int64) error {
		plan, err := s.decisions.Plans.Read(r.ctx, org)
		if err != nil {
			return err
		}
		if plan.Name == engine.FreePlan {
			body.Free.add(decided)
			return nil
		}
		of := body.Paid.ByPlan[plan.Name]
		of.add(decided)
		body.Paid.ByPlan[plan.Name] = of
		body.Paid.add(decided)
		return nil
	})
	if err != nil {
		return fmt.Errorf("summing up the usage: %w", err)
	}
	return r.ok(body)
}
