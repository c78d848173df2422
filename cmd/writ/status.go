package main

import (
	"context"
	"time"

	"writ.example/writ/cmd/remote"
)

type statusCmd struct {
	serverFlags `embed:""`
	JSON        bool `name:"json" help:"Print a JSON object."`
}

func (c *statusCmd) Help() string {
	return `Prints the keys that the server publishes and whom the verbs act as, the decisions of the
last 24 hours by outcome, what waits for an approval and which agents are disabled, as far as
the credential may see it. Without a credential --url shows what any server tells anybody.
Exits 1 where the server does not answer or does not accept the credential.

  writ status
  writ status --profile stage
  writ status --url https://writ.example`
}

func (c *statusCmd) Run(ctx context.Context, s streams) error {
	p, known, err := c.anybody()
	if err != nil {
		return err
	}
	o := newOrganization(s, p, c.from(p))
	status, err := remote.StatusOf(ctx, o.Call, o.Base, known, time.Now())
	if err != nil {
		return err
	}
	status.Profile = o.profile
	if c.JSON {
		return remote.JSON(s.out, status)
	}
	return status.Print(s.out)
}
