package main

import (
	"context"
	"fmt"
	"os"

	"writ.example/writ/authoring/workspace"
)

type pullCmd struct {
	serverFlags `embed:""`
	Prune       bool   `env:"-" help:"Remove rules, lists and libraries from the files that were pulled and are not on the server."`
	Force       bool   `env:"-" help:"Overwrite what was edited in the files and is not on the server."`
	Dir         string `arg:"" name:"dir" help:"Directory to write to; made if there is none."`
}

func (c *pullCmd) Help() string {
	return `Writes the newest version of each policy to DIR/policies, each list to DIR/lists,
the rules to DIR/rules.yaml, in the order in which they are asked, and each library
to a directory in DIR/lib, from the organization of WRIT_API_KEY at WRIT_URL. The
first line of each file names its schema there, by which editors complete and check
it. Wants the scopes policy:read and rules:read.

Documents that are below DIR already are changed where they stand, and only where
they differ; comments stay. What was edited there and not pushed is kept. If it may
have been edited on both sides, nothing is written and the exit code is 1: writ
diff shows how, --force takes the server's.

  writ pull .`
}

func (c *pullCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.Dir); err != nil {
		// If the credential cannot read, no directory is made.
		if _, err := o.fetch(ctx); err != nil {
			return err
		}
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return err
		}
	}
	plan, _, err := o.compare(ctx, c.Dir)
	if err != nil {
		return err
	}
	done, err := plan.Pull(workspace.PullOptions{Prune: c.Prune, Force: c.Force, Schemas: o.Base + "/schemas/"})
	for _, name := range done.Written {
		fmt.Fprintln(s.out, name)
	}
	if err != nil {
		return err
	}
	for _, change := range done.Kept {
		why := "edited here and not pushed"
		if change.State == workspace.Added {
			why = "not on the server"
		}
		o.Say("%s: kept: %s", change.Title(), why)
	}
	if len(done.Refused) == 0 {
		return nil
	}
	for _, change := range done.Refused {
		printChange(s.err, change)
	}
	return fmt.Errorf(
		"nothing is written: what is above was changed on the server, and perhaps here; --force takes the server's",
	)
}
