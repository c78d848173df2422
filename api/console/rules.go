package console

import (
	"net/url"
	"slices"
	"time"
)

// rule is a rule.
type rule struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Condition   string    `json:"condition"`
	Action      string    `json:"action"`
	Priority    int64     `json:"priority"`
	IsActive    bool      `json:"isActive"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`

	Warnings []struct {
		Field   string `json:"field"`
		Rule    string `json:"rule"`
		Message string `json:"message"`
		Instead string `json:"instead"`
	} `json:"warnings"`

	Decided int64 `json:"-"` // in seven days
}

// counted is the answer of GET /v1/authorizations/counts.
type counted struct {
	Data []struct {
		At     time.Time        `json:"at"`
		Counts map[string]int64 `json:"counts"`
		Other  int64            `json:"other"`
	} `json:"data"`
}

// Outcomes returns the number of decisions by outcome, in their order of strictness.
func (c counted) Outcomes() []tally {
	sums := c.sum()
	return []tally{{"allow", sums["allow"]}, {"approval_required", sums["approval_required"]}, {"deny", sums["deny"]}}
}

// leftOut reports whether there are values beyond those that are counted by themselves.
func (c counted) leftOut() bool {
	for _, step := range c.Data {
		if step.Other > 0 {
			return true
		}
	}
	return false
}

// sum returns the number of decisions by value.
func (c counted) sum() map[string]int64 {
	all := map[string]int64{}
	for _, step := range c.Data {
		for value, n := range step.Counts {
			all[value] += n
		}
	}
	return all
}

func (v *visit) counts(by, step string, since time.Duration) (c part[counted], err error) {
	q := url.Values{"by": {by}, "step": {step}}
	if since > 0 {
		q.Set("from", v.c.cfg.Now().Add(-since).UTC().Format(time.RFC3339))
	}
	return c, c.read(v, with(under("authorizations", "counts"), q))
}

func (v *visit) rules() error {
	body := struct {
		Rules        []*rule
		Lacks        string
		Counts       string // why there are no counts
		LeftOutCount bool
	}{}
	var err error
	body.Rules, _, err = all[*rule](v, under("rules"), url.Values{"warnings": {"true"}})
	if body.Lacks, err = lacks(err); err != nil {
		return err
	}
	counts, err := v.counts("rule_id", "1d", 7*24*time.Hour)
	if err != nil {
		return err
	}
	body.Counts = counts.Lacks
	decided := counts.It.sum()
	for _, r := range body.Rules {
		r.Decided = decided[r.ID]
	}
	body.LeftOutCount = counts.It.leftOut()
	return v.show("rules", "Rules", "Rules", body)
}

// revised is a revision of a rule.
type revised struct {
	Revision   int64     `json:"revision"`
	ReplacedAt time.Time `json:"replaced_at"`
	Deleted    bool      `json:"deleted"`
	Document   policyDoc `json:"document"`

	Changed []member `json:"-"` // what differs from the revision before
	First   bool     `json:"-"` // whether it has no revision before it here
}

// changed sets what each revision changed. The revisions are newest first.
func changed(all []*revised) {
	for i, r := range all {
		if r.First = i == len(all)-1; r.First {
			continue
		}
		r.Changed = slices.DeleteFunc(compare(all[i+1].Document, r.Document), func(m member) bool {
			return !m.Changed || m.Name == "updatedAt"
		})
	}
}

func (v *visit) rule() error {
	id := v.r.PathValue("id")
	var body struct {
		It        rule
		Revisions part[list[*revised]]
		Changes   changesOf
		Recent    part[list[*row]]
		Idle      bool // it decided nothing in 30 days
	}
	if err := v.get(under("rules", id), &body.It); err != nil {
		return err
	}
	if err := body.Revisions.read(v, under("rules", id, "revisions")); err != nil {
		return err
	}
	changed(body.Revisions.It.Data)
	if err := body.Changes.read(v, "rule", id); err != nil {
		return err
	}
	// The last decisions of a rule that decides nothing would be looked for in the whole history.
	counts, err := v.counts("rule_id", "1d", 30*24*time.Hour)
	if err != nil {
		return err
	}
	body.Idle = counts.Lacks == "" && counts.It.sum()[id] == 0 && !counts.It.leftOut()
	if !body.Idle {
		if err := body.Recent.read(v, lastWith("rule_id", id)); err != nil {
			return err
		}
	}
	return v.show("rule", "Rule "+short(body.It.Name), "Rules", body)
}
