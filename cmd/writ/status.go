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
	return `Prints whom the verbs act as, the decisions of the last 24 hours by outcome, what waits for
an approval and which agents are disabled, as far as the credential may see it. Exits 1
where the server does not answer or does not accept the credential.

  writ status
  writ status --profile stage`
}

func (c *statusCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	status, err := remote.StatusOf(ctx, o.Call, o.Base, time.Now())
	if err != nil {
		return err
	}
	status.Profile = o.profile
	if c.JSON {
		return remote.JSON(s.out, status)
	}
	return status.Print(s.out)
}
