package main

import (
	"context"

	"writ.example/writ/cmd/remote"
)

type usageCmd struct {
	serverFlags `embed:""`
	JSON        bool `name:"json" help:"Print the JSON object of the API."`
}

func (c *usageCmd) Help() string { return "Wants the scope usage:read." }

func (c *usageCmd) Run(ctx context.Context, s streams) error {
	return c.show(ctx, s, remote.UsagePath, c.JSON, remote.PrintUsage)
}
