package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ.example/writ/authoring/workspace"
)

type pushCmd struct {
	serverFlags `embed:""`
	Yes         bool   `short:"y" env:"-" help:"Push without asking."`
	Prune       bool   `env:"-" help:"Delete rules, lists and libraries of the server that no file has."`
	Force       bool   `env:"-" help:"Overwrite what was changed on the server since it was pulled."`
	Dir         string `arg:"" name:"dir" help:"Directory of the files."`
}

func (c *pushCmd) Help() string {
	return `Brings the policies, rules, lists and libraries in files to the organization of WRIT_API_KEY
at WRIT_URL: shows what writ diff shows, asks, and does it. Where it cannot ask it
wants --yes. Wants the scopes policy:read, policy:write, rules:read, rules:write.

A changed policy becomes the next version, which is written into its file, as are
the id and the times of a rule. A rule is found by its id, else by its name, a list or
a library by its name. Libraries are read in DIR/lib. With --prune rules, lists and
libraries that no file has are deleted from the server. Policies are never deleted.

Everything is validated before anything is sent. What was changed on the server
since it was pulled is not overwritten. After a failure push again: what is done
is not done twice.

  writ push .`
}

// Run prints the plan and, if the user agrees, carries out its steps.
func (c *pushCmd) Run(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	plan, before, err := o.compare(ctx, c.Dir)
	if err != nil {
		return err
	}
	if plan.Empty() {
		return &inputError{name: c.Dir, err: errors.New("there is no policy, rule, list or library")}
	}
	options := workspace.PushOptions{Prune: c.Prune, Force: c.Force, Now: time.Now}
	steps, err := plan.Steps(options)
	for _, change := range plan.Changes {
		printChange(s.out, change)
	}
	if err != nil {
		return err
	}
	if len(steps) > 0 && !c.Yes {
		if err := confirm(s, fmt.Sprintf("Push %d %s to %s?", len(steps), plural(len(steps)), o.Base),
			"push the changes above", "nothing is pushed"); err != nil {
			return err
		}
		now, err := o.fetch(ctx)
		if err != nil {
			return err
		}
		if !now.Equal(before) {
			return errors.New("nothing is pushed: the server has changed since the plan was made")
		}
	}
	count, did := 0, map[workspace.State]string{workspace.Added: "added", workspace.Missing: "deleted"}
	written, err := plan.Push(ctx, o.Call, steps, options, func(change workspace.Change) {
		count++
		word := did[change.State]
		if word == "" {
			word = "changed"
		}
		fmt.Fprintf(s.out, "%s %s\n", word, change.Title())
	})
	for _, name := range written {
		fmt.Fprintf(s.out, "wrote %s\n", name)
	}
	if err != nil {
		return fmt.Errorf("%w\n%d of %d changes are pushed: push again for the others", err, count, len(steps))
	}
	if len(steps) == 0 {
		fmt.Fprintln(s.out, "nothing to push")
	}
	return nil
}

func plural(changes int) string {
	if changes == 1 {
		return "change"
	}
	return "changes"
}
