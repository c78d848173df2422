package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"writ.example/writ/cmd/remote"
)

// historyCmd groups the verbs about what was decided.
type historyCmd struct {
	Tail historyTailCmd `cmd:"" help:"Print the last decisions, and with --follow those that come."`
	Show historyShowCmd `cmd:"" help:"Print what the history holds of a decision."`
	Why  historyWhyCmd  `cmd:"" help:"Say why a decision was made: each finding, and the values that led to it."`

	Changes historyChangesCmd `cmd:"" help:"Print who changed which policy, rule, agent, key, list or session, and when."`
}

// historyFilter selects decisions. No variable does: WRIT_AGENT_ID says who an agent is.
type historyFilter struct {
	Decision string        `env:"-" enum:",allow,deny,approval_required" default:"" help:"Only what was decided so: allow, deny or approval_required."`
	Agent    string        `env:"-" placeholder:"ID" help:"Only intents of this agent."`
	Action   string        `env:"-" placeholder:"TYPE" help:"Only this action type."`
	Policy   string        `env:"-" placeholder:"ID" help:"Only under this policy."`
	Rule     string        `env:"-" placeholder:"ID" help:"Only with a finding of this rule."`
	Code     string        `env:"-" help:"Only with a finding of this code, such as cost.exceeded."`
	Intent   string        `env:"-" placeholder:"ID" help:"Only decisions about this intent."`
	Session  string        `env:"-" placeholder:"ID" help:"Only in this session."`
	Approval string        `env:"-" placeholder:"ID" help:"Only what was decided under this approval."`
	By       string        `env:"-" placeholder:"CREDENTIAL" help:"Only what this credential asked for: the id of a key, or operator:SUB."`
	Since    time.Duration `env:"-" help:"Only of the last time, such as 2h."`
}

// query returns the filter as the API has it.
func (f *historyFilter) query(now time.Time) url.Values {
	q := make(url.Values)
	for name, value := range map[string]string{
		"decision": f.Decision, "agent_id": f.Agent, "action_type": f.Action, "policy_id": f.Policy, "rule_id": f.Rule,
		"code": f.Code, "intent_id": f.Intent, "session_id": f.Session, "approval_id": f.Approval, "credential": f.By,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Since > 0 {
		q.Set("from", now.Add(-f.Since).UTC().Format(time.RFC3339))
	}
	return q
}

type historyTailCmd struct {
	serverFlags   `embed:""`
	historyFilter `embed:""`
	N             int  `name:"lines" short:"n" env:"-" default:"20" help:"How many of the last decisions."`
	Follow        bool `short:"f" env:"-" help:"Go on with each decision as it is made."`
	JSON          bool `name:"json" help:"Print a JSON object a decision, as the API has it."`
}

func (c *historyTailCmd) Help() string {
	return `Prints the last decisions of the organization, the newest last. With --follow it goes on
until it is interrupted, over lost connections too, without a gap. Wants the scope
history:read.

  writ history tail --decision deny --since 1h
  writ history tail --intent 3a389cd3-ee4d-46f5-b7f2-70769eaeac69
  writ history tail -f --agent billing-agent`
}

func (c *historyTailCmd) Validate() error {
	if c.N < 0 || c.N > 100_000 {
		return fmt.Errorf("--lines: got %d, want 0 to 100000", c.N)
	}
	if c.Since < 0 {
		return fmt.Errorf("--since: got %v, want a duration such as 2h", c.Since)
	}
	return nil
}

func (c *historyTailCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	t := remote.Tail{Out: s.out, JSON: c.JSON, Filter: c.query(time.Now()), Say: o.Say}
	if c.Follow {
		return t.Follow(ctx, o.Patient, o.Call, c.N)
	}
	return t.Last(ctx, o.Call, c.N)
}

type historyShowCmd struct {
	serverFlags `embed:""`
	JSON        bool   `name:"json" help:"Print the row as the API has it. writ verify takes it."`
	ID          string `arg:"" name:"decision-id" help:"The decision."`
}

func (c *historyShowCmd) Run(ctx context.Context, s streams) error {
	return remote.Decided(c.show(ctx, s, remote.DecisionPath(c.ID), c.JSON, remote.ShowDecision), c.ID)
}

type historyWhyCmd struct {
	serverFlags `embed:""`
	JSON        bool   `name:"json" help:"Print the row with its explanation as the API has it."`
	ID          string `arg:"" name:"decision-id" help:"The decision."`
}

func (c *historyWhyCmd) Help() string {
	return `Says why a decision was made as it was, by the policy, the rules and the agent of its day.
Wants the scope history:read, and for the values and the rules policy:read and rules:read.

  writ history tail --decision deny -n 5           # the ids of the last denials
  writ history tail --intent ID                    # the decision of an intent
  writ history why 01a1fe16-6700-7f79-840b-7f1555d889cc`
}

func (c *historyWhyCmd) Run(ctx context.Context, s streams) error {
	path := remote.DecisionPath(c.ID)
	err := c.show(ctx, s, path+"?explain=true", c.JSON, remote.Why)
	if remote.Refused(err) { // the findings alone
		err = c.show(ctx, s, path, c.JSON, remote.Why)
	}
	return remote.Decided(err, c.ID)
}

type historyChangesCmd struct {
	serverFlags `embed:""`
	Kind        string `env:"-" help:"Only changes of this kind, such as rule, policy, agent, key, list or organization."`
	ID          string `name:"id" env:"-" placeholder:"ID" help:"Only changes of the document with this id."`
	N           int    `name:"lines" short:"n" env:"-" default:"20" help:"How many of the last changes."`
	JSON        bool   `name:"json" help:"Print a JSON object a change, as the API has it."`
}

func (c *historyChangesCmd) Help() string {
	return `Prints the last changes, the newest last. A change is listed about a second after it was made.
Wants the scope history:read.

  writ history changes --kind rule
  writ history changes --id 01a22118-9276-76be-94d9-d4e9ac6dbceb`
}

func (c *historyChangesCmd) Validate() error {
	if c.N < 1 || c.N > 100_000 {
		return fmt.Errorf("--lines: got %d, want 1 to 100000", c.N)
	}
	return nil
}

func (c *historyChangesCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	items, err := remote.Changes(ctx, o.Call, c.Kind, c.ID, c.N)
	if err != nil {
		return err
	}
	return printAll(s.out, items, c.JSON, remote.PrintChanges)
}
