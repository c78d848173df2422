package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"writ.example/writ/bench"
)

type benchGuardCmd struct {
	Base string `arg:"" help:"Binary to compare with."`
	This string `arg:"" optional:"" help:"Binary in question. Default: this one."`

	benchWork `embed:""`

	Serve    []string      `sep:"none" placeholder:"FLAG" help:"Flag of writ serve for all servers, such as --serve=--cache-mb=1. It can be repeated."`
	Loss     time.Duration `default:"4us" help:"Loss of processor time a request that is to be told from none."`
	Slices   int           `default:"40" help:"How often an epoch measures each server."`
	Slice    time.Duration `default:"100ms" help:"How long each time."`
	Warmup   time.Duration `default:"1s" help:"How long each server is warmed up."`
	Epochs   string        `default:"6-40" placeholder:"LEAST-MOST" help:"How many epochs, of fresh servers each."`
	MaxOther float64       `default:"0.2" placeholder:"N" help:"Processors that others may use while something is measured; 0 for any number."`
	Pin      string        `default:"auto" placeholder:"SERVER:DRIVER" help:"As for writ bench."`
	Out      string        `placeholder:"FILE" help:"Write raw data there: an epoch a line, in µs."`
}

func (c *benchGuardCmd) Help() string {
	return `Starts the base twice and the binary in question once, each in a temporary directory,
and measures the processor time a request of the three in turn; then again with fresh
servers, until the noise is small enough to tell --loss from none. The two bases are the
noise (A/A). Fails when the loss is beyond five standard errors and a quarter of
--loss, and when --epochs were too few to tell.

  make bench-guard BASE=main
  writ bench guard ./writ-of-yesterday ./writ`
}

func (c *benchGuardCmd) Validate() error {
	if c.Loss < time.Microsecond || c.Slices < 1 || c.Slice <= 0 || c.Warmup <= 0 || c.MaxOther < 0 {
		return errors.New(
			"--loss: want at least 1us; --slices: 1; --slice, --warmup: more than 0; --max-other: at least 0",
		)
	}
	if c.Intents != "" && c.Policy == "" {
		return errors.New("--intents: needs --policy FILE")
	}
	return c.benchWork.Validate()
}

func (c *benchGuardCmd) Run(ctx context.Context, s streams) (err error) {
	var least, most int
	if n, err := fmt.Sscanf(c.Epochs, "%d-%d", &least, &most); n != 2 || err != nil || least < 2 || most < least {
		return &usageError{fmt.Sprintf("--epochs %q: want a least number of 2 or more and a greatest, such as 6-40",
			c.Epochs)}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	base, err1 := filepath.Abs(c.Base)
	this, err2 := filepath.Abs(cmp.Or(c.This, self))
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	header := bench.Here(strings.Join(append([]string{"writ"}, os.Args[1:]...), " "), readBuilt().revision)
	server, pinned, err := pinTo(c.Pin, true)
	if err != nil {
		return err
	}
	work, err := c.work(s)
	if err != nil {
		return err
	}
	g := &bench.Guard{
		Base: bench.Program{Name: "base", Binary: base, Args: c.Serve, Processors: server},
		This: bench.Program{Name: "this", Binary: this, Args: c.Serve, Processors: server},
		Work: work, Loss: c.Loss, Conns: c.Conns, Slices: c.Slices, Slice: c.Slice, Warmup: c.Warmup, Least: least,
		Most:     most,
		MaxOther: c.MaxOther, Raw: io.Discard, Say: s.say,
	}
	g.Say("%s, %s, %d processors; %s; load average %s", header.Machine, header.Go, header.Processors, pinned,
		header.Load)
	if c.Out != "" {
		f, openErr := os.Create(c.Out)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		g.Raw = f
	}
	v, err := g.Run(ctx)
	if err != nil {
		return err
	}
	return judge(s, v, c.Loss)
}

// judge prints a verdict. It returns an error if the verdict is a failure.
func judge(s streams, v bench.Verdict, loss time.Duration) error {
	fmt.Fprintf(s.out,
		"a request of the base takes %.1f µs of processor, of this %+.2f (%+.1f %%); beyond the noise is %.2f; %d "+
			"epochs\n",
		v.Base, v.Loss, 100*v.Loss/v.Base, v.Limit, v.Epochs)
	switch {
	case v.Lost():
		fmt.Fprintln(s.out, "LOSS")
		return errReported
	case !v.Resolved:
		fmt.Fprintf(s.out, "UNDECIDED: the noise is too great to tell a loss of %v; try where nothing else runs\n",
			loss)
		return errReported
	}
	fmt.Fprintln(s.out, "no loss")
	return nil
}
