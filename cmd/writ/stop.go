package main

import (
	"context"

	"github.com/alecthomas/kong"

	"writ.example/writ/cmd/remote"
)

// stopCmd is the verb stop, and the verb resume.
type stopCmd struct {
	serverFlags `embed:""`
	JSON        bool `name:"json" help:"Print the status as the API has it."`
}

func (c *stopCmd) Help() string {
	return `While the organization is stopped, every new decision is a deny, organization.stopped,
whatever policies and rules say. What was decided before stands. Reading, recording and
verdicts go on.

It is in force on every replica when the verb exits with 0. If the server does not answer it
may be in force: do it again. Wants the scope agents:write.

  writ stop
  writ resume`
}

func (c *stopCmd) Run(ctx context.Context, s streams, k *kong.Context) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	set := remote.Stop
	if k.Selected().Name == "resume" {
		set = remote.Resume
	}
	doc, err := set(ctx, o.Call)
	if err != nil {
		return err
	}
	return printOne(s.out, doc, c.JSON, remote.OrganizationChanged)
}
