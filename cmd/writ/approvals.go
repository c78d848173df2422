package main

import (
	"context"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"writ.example/writ/cmd/remote"
)

// approvalsCmd groups the verbs about held decisions.
type approvalsCmd struct {
	List    approvalsListCmd `cmd:"" help:"Print what waits for an approval, the oldest first."`
	Show    approvalsShowCmd `cmd:"" help:"Print exactly what an approval approves."`
	Approve approveCmd       `cmd:"" help:"Show a held action, ask, and approve it."`
	Reject  judgeCmd         `cmd:"" help:"Reject a held action."`
	Revoke  judgeCmd         `cmd:"" help:"Take back an approval that was not used yet."`
}

type approvalsListCmd struct {
	serverFlags `embed:""`
	Status      string `env:"-" default:"pending" enum:"pending,approved,rejected,expired,revoked,used,all" help:"Which: pending, approved, rejected, expired, revoked, used or all."`
	N           int    `name:"lines" short:"n" env:"-" default:"100" help:"How many at most, the newest."`
	JSON        bool   `name:"json" help:"Print a JSON object an approval, as the API has it."`
}

func (c *approvalsListCmd) Help() string { return "Wants the scope approvals:read." }

func (c *approvalsListCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	status := c.Status
	if status == "all" {
		status = ""
	}
	items, more, err := remote.Approvals(ctx, o.Call, status, max(c.N, 1))
	if err != nil {
		return err
	}
	if more {
		o.Say("there are more, older ones: -n shows them")
	}
	return printAll(s.out, items, c.JSON, remote.PrintApprovals(time.Now()))
}

type approvalsShowCmd struct {
	serverFlags `embed:""`
	JSON        bool   `name:"json" help:"Print the approval as the API has it."`
	ID          string `arg:"" name:"approval-id" help:"The approval: the id of the decision that was held."`
}

func (c *approvalsShowCmd) Run(ctx context.Context, s streams) error {
	return c.show(ctx, s, remote.ApprovalPath(c.ID), c.JSON, remote.ShowApproval(time.Now()))
}

type judgeCmd struct {
	serverFlags `embed:""`
	Comment     string `env:"-" help:"Why. It is signed with the verdict and kept."`
	JSON        bool   `name:"json" help:"Print the approval as the API has it."`
	ID          string `arg:"" name:"approval-id" help:"The approval."`
}

func (c *judgeCmd) Help() string {
	return "Wants the scope approvals:decide. The first verdict stands."
}

func (c *judgeCmd) Run(ctx context.Context, s streams, k *kong.Context) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	status := map[string]string{"reject": "rejected", "revoke": "revoked"}[k.Selected().Name]
	return c.judge(ctx, s, o, remote.Verdict{Status: status, Comment: c.Comment})
}

func (c *judgeCmd) judge(ctx context.Context, s streams, o organization, v remote.Verdict) error {
	doc, err := remote.Judge(ctx, o.Call, c.ID, v)
	if err != nil {
		return err
	}
	return printOne(s.out, doc, c.JSON, remote.Judged)
}

type approveCmd struct {
	judgeCmd `embed:""`
	For      time.Duration `env:"-" help:"How long the approval can be used. Default: as long as the deployment says."`
	Yes      bool          `short:"y" env:"-" help:"Approve without asking."`
}

func (c *approveCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	if c.For < 0 || c.For%time.Second != 0 {
		return &usageError{"--for: want whole seconds, such as 10m"}
	}
	if !c.Yes {
		doc, err := remote.Get(ctx, o.Call, remote.ApprovalPath(c.ID))
		if err == nil {
			err = remote.ShowApproval(time.Now())(s.err, doc)
		}
		if err == nil {
			err = confirm(s, fmt.Sprintf("Approve this at %s?", o.Base), "approve what is above", "nothing is approved")
		}
		if err != nil {
			return err
		}
	}
	v := remote.Verdict{Status: "approved", Comment: c.Comment, ApprovedFor: int64(c.For / time.Second)}
	return c.judge(ctx, s, o, v)
}
