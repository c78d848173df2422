package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"writ.example/writ/bench"
)

type benchGrowthCmd struct {
	Orgs  int      `default:"100000" help:"Organizations."`
	Step  int      `default:"10000" help:"Organizations of a step."`
	Conns int      `default:"64" help:"Connections for first decisions."`
	Serve []string `sep:"none" placeholder:"FLAG" help:"Flag of writ serve, such as --serve=--cache-mb=64. It can be repeated."`
	Base  string   `placeholder:"FILE" help:"Binary to compare with. Its server gets the same organizations, step by step in turn."`
	Most  float64  `default:"1.2" placeholder:"N" help:"How many times as much as with --base an organization may cost."`
	Pin   string   `default:"auto" placeholder:"SERVER:DRIVER" help:"Processors of the server and of the driver, as of writ bench run."`
}

func (c *benchGrowthCmd) Help() string {
	return `Registers organizations step by step, each with a policy of its own and a key, and has
each decide once. Prints what an organization costs in each step: the server's processor time,
the rate of first decisions, and the resident memory. Last it has a new server do the first
step again, because other work on the machine may have changed the costs meanwhile.

With --base it compares two binaries instead: what an organization costs to register and
to use first, and the resident memory. Fails if one of them is beyond --most.`
}

func (c *benchGrowthCmd) Validate() error {
	if c.Orgs < 1 || c.Step < 1 || c.Conns < 1 || c.Most < 1 {
		return errors.New("--orgs, --step, --conns, --most: want at least 1")
	}
	return nil
}

func (c *benchGrowthCmd) Run(ctx context.Context, s streams) error {
	server, _, err := pinTo(c.Pin, true)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	g := bench.Growth{
		Program:       bench.Program{Name: "writ", Binary: self, Args: c.Serve, Processors: server},
		Organizations: c.Orgs, Step: c.Step, Conns: c.Conns, Say: s.say,
	}
	if c.Base == "" {
		return g.Run(ctx)
	}
	base := g.Program
	base.Name = "base"
	if base.Binary, err = filepath.Abs(c.Base); err != nil {
		return err
	}
	worst, err := g.Compare(ctx, base)
	if err != nil {
		return err
	}
	if worst > c.Most {
		fmt.Fprintln(s.out, "LOSS")
		return errReported
	}
	fmt.Fprintln(s.out, "no loss")
	return nil
}
