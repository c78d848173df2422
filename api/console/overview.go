package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
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
	IssuedAt      string            `json:"issued_at"`
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
		State    part[organization]
		Latest   part[list[*row]]
		Waiting  part[list[*approvalRow]]
		Oldest   []*approvalRow
		Agents   part[list[*agent]]
		Disabled []*agent
		Meters   part[meters]
		Outcomes part[counted]
		Bars     []bar
		Denied   part[counted]
		Codes    []tally
		Heads    part[list[*head]]
		Head     time.Time
	}
	now := v.c.cfg.Now()
	var err error
	if body.Outcomes, err = v.counts("decision", "1h", 0); err != nil {
		return err
	}
	body.Bars = bars(body.Outcomes.It)
	if body.Denied, err = v.counts("code", "1h", 0); err != nil {
		return err
	}
	body.Codes = denying(body.Denied.It)
	for _, err := range []error{
		body.State.read(v, under("organization", "status")),
		body.Heads.read(v, with(under("ledger", "heads"), url.Values{"limit": {"1"}})),
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
	body.Oldest = slices.Clone(body.Waiting.It.Data)
	slices.Reverse(body.Oldest)
	body.Oldest = body.Oldest[:min(len(body.Oldest), 5)]
	for _, a := range body.Agents.It.Data {
		if a.Status == "disabled" {
			body.Disabled = append(body.Disabled, a)
		}
	}
	if len(body.Heads.It.Data) > 0 {
		body.Head = time.UnixMilli(body.Heads.It.Data[0].Time)
	}
	return v.show("overview", "Overview", "Overview", body)
}

// bar is an hour of the chart. Its parts are stacked from the bottom.
type bar struct {
	At                   time.Time
	X                    int
	Allow, Deny, Hold    int64
	AllowY, DenyY, HoldY float64
	AllowH, DenyH, HoldH float64
}

// chartHeight is the height of the chart, in the units of its view box.
const chartHeight = 100

// bars returns the chart of decisions by hour.
func bars(c counted) []bar {
	var most int64
	for _, step := range c.Data {
		most = max(most, step.Counts["allow"]+step.Counts["deny"]+step.Counts["approval_required"])
	}
	out := make([]bar, len(c.Data))
	for i, step := range c.Data {
		b := bar{
			At: step.At.UTC(), X: i * 10, Allow: step.Counts["allow"], Deny: step.Counts["deny"],
			Hold: step.Counts["approval_required"],
		}
		if most > 0 {
			high := func(n int64) float64 { return float64(n) / float64(most) * chartHeight }
			b.AllowH, b.HoldH, b.DenyH = high(b.Allow), high(b.Hold), high(b.Deny)
			b.AllowY = chartHeight - b.AllowH
			b.HoldY = b.AllowY - b.HoldH
			b.DenyY = b.HoldY - b.DenyH
		}
		out[i] = b
	}
	return out
}

// tally is how often something decided.
type tally struct {
	Name  string
	Count int64
}

// denying returns the codes that decided most. The codes of an allow are not among them.
func denying(c counted) []tally {
	var all []tally
	for code, n := range c.sum() {
		if !strings.HasSuffix(code, ".allowed") && !strings.HasSuffix(code, ".granted") {
			all = append(all, tally{code, n})
		}
	}
	slices.SortFunc(all, func(a, b tally) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), 8)]
}
