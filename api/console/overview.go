package console

import (
	"net/url"
	"time"
)

// approvalRow is an approval.
type approvalRow struct {
	ApprovalID    string            `json:"approval_id"`
	Status        string            `json:"status"`
	HeldAt        time.Time         `json:"held_at"`
	ExpiresAt     time.Time         `json:"expires_at"`
	ApprovedUntil time.Time         `json:"approved_until"`
	IntentID      string            `json:"intent_id"`
	IntentDigest  string            `json:"intent_digest"`
	PolicyID      string            `json:"policy_id"`
	AgentID       string            `json:"agent_id"`
	ActionType    string            `json:"action_type"`
	Resource      string            `json:"resource"`
	Cost          *cost             `json:"cost"`
	MetadataKeys  []string          `json:"metadata_keys"`
	Metadata      map[string]string `json:"metadata"`
	Findings      []finding         `json:"findings"`
	DecidedAt     time.Time         `json:"decided_at"`
	DecidedBy     string            `json:"decided_by"`
	Comment       string            `json:"comment"`
	RevokedBy     string            `json:"revoked_by"`
	UsedBy        string            `json:"used_by"`

	Left time.Duration `json:"-"` // until it expires
}

// agent is a registered agent.
type agent struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	ExternalID string    `json:"externalId"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"createdAt"`
	UpdatedAt  time.Time `json:"updatedAt"`
}

// meters is the answer of GET /v1/usage/summary.
type meters struct {
	Plan   string `json:"plan"`
	Period struct {
		Start time.Time `json:"start"`
		End   time.Time `json:"end"`
	} `json:"period"`
	Meters struct {
		Evaluations, Agents, Policies, Rules, Tokens meter
	} `json:"meters"`
	RetentionDays int `json:"retention_days"`
}

type meter struct {
	Used, Limit, Remaining int64
}

// named is a meter with its name.
type named struct {
	Name string
	meter
}

// All returns the meters.
func (m meters) All() []named {
	return []named{
		{"Evaluations", m.Meters.Evaluations}, {"Agents", m.Meters.Agents}, {"Policies", m.Meters.Policies},
		{"Rules", m.Meters.Rules}, {"Keys", m.Meters.Tokens},
	}
}

// part is a part of a page, or the scope that the credential lacks for it.
type part[T any] struct {
	It    T
	Lacks string
}

// read reads a part.
func (p *part[T]) read(v *visit, path string) (err error) {
	p.Lacks, err = lacks(v.get(path, &p.It))
	return err
}

func (v *visit) overview() error {
	var body struct {
		Latest   part[list[*row]]
		Waiting  part[list[*approvalRow]]
		Agents   part[list[*agent]]
		Disabled []*agent
		Meters   part[meters]
	}
	now := v.c.cfg.Now()
	for _, err := range []error{
		body.Latest.read(v, with(under("authorizations"), url.Values{"limit": {"10"}})),
		body.Waiting.read(v, with(under("approvals"), url.Values{"status": {"pending"}, "limit": {"50"}})),
		body.Agents.read(v, with(under("agents"), url.Values{"limit": {"100"}})),
		body.Meters.read(v, under("usage", "summary")),
	} {
		if err != nil {
			return err
		}
	}
	for _, a := range body.Waiting.It.Data {
		a.Left = a.ExpiresAt.Sub(now)
	}
	for _, a := range body.Agents.It.Data {
		if a.Status == "disabled" {
			body.Disabled = append(body.Disabled, a)
		}
	}
	return v.show("overview", "Overview", "Overview", body)
}
