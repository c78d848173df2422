package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"writ.example/writ/authoring/workspace"
)

type diffCmd struct {
	serverFlags `embed:""`
	JSON        bool   `name:"json" help:"Print a JSON object a document that differs."`
	Dir         string `arg:"" name:"dir" help:"Directory of the files."`
}

func (c *diffCmd) Help() string {
	return `Compares the policies, rules, lists and libraries in files with those of the organization
of WRIT_API_KEY at WRIT_URL, and shows what writ push would change there: + is in the
files only, - on the server only, ~ differs, ! was changed on the server since it
was pulled. Wants the scopes policy:read and rules:read. Exits 0 when nothing
differs, 1 when something does, 2 when it could not tell, as with diff, and 3 when
a file is invalid.

  writ diff .`
}

// Run prints the differences. An error other than that there are some is an [untoldError], so that
// a pipeline does not take an unreachable server for a drift.
func (c *diffCmd) Run(ctx context.Context, s streams) error {
	err := c.diff(ctx, s)
	if err == nil || errors.Is(err, errReported) {
		return err
	}
	return &untoldError{err}
}

func (c *diffCmd) diff(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	plan, _, err := o.compare(ctx, c.Dir)
	if err != nil {
		return err
	}
	for _, change := range plan.Changes {
		if !c.JSON {
			printChange(s.out, change)
			continue
		}
		line, err := json.Marshal(change)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s\n", line)
	}
	if len(plan.Changes) > 0 {
		return errReported
	}
	return nil
}

func printChange(w io.Writer, c workspace.Change) {
	colour := map[byte]string{'+': green, '-': red}
	text := c.String()
	if paint := colour[text[0]]; paint != "" {
		text = colorsFor(w).in(paint, text)
	}
	fmt.Fprintln(w, text)
}
