package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"writ.example/writ/bench"
)

func (c *benchRunCmd) Run(ctx context.Context, s streams) (err error) {
	b, err := c.prepare(s)
	if err != nil {
		return err
	}
	defer func() {
		for _, subject := range b.Subjects {
			err = errors.Join(err, subject.Stop())
		}
	}()
	if err := c.start(ctx, b); err != nil {
		return err
	}
	name := c.Out
	if name == "" {
		name = "writ-bench-" + time.Now().UTC().Format("20060102-150405")
	}
	raw, err := os.Create(name + ".jsonl") //nolint:gosec // the user chose the name
	if err != nil {
		return err
	}
	b.Raw = raw
	d, err := b.Run(ctx)
	if err = errors.Join(err, raw.Close()); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	summary := d.Summarize()
	if err := summary.Print(s.out); err != nil {
		return err
	}
	if err := c.report(d, summary, name); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s.jsonl has the raw data, %s.html the report\n", name, name)
	return c.judge(summary)
}

// report writes the files beside the raw data: a page for people, JSON, and JUnit XML if there are thresholds.
func (c *benchRunCmd) report(d *bench.Data, summary *bench.Summary, name string) error {
	judged := summary.Judge(c.FailIf)
	err := errors.Join(
		writeFile(name+".html", d.WriteHTML),
		writeFile(name+".json", func(w io.Writer) error { return summary.WriteJSON(w, d.Header, judged) }),
	)
	if err == nil && len(judged) > 0 {
		err = writeFile(name+".xml", func(w io.Writer) error { return summary.WriteJUnit(w, judged) })
	}
	return err
}

// The exit codes of --fail-if.
const (
	exitExceeded  = 99
	exitDisturbed = 3
)

// judge returns an error if the summary does not keep a threshold of --fail-if.
func (c *benchRunCmd) judge(summary *bench.Summary) error {
	switch exceeded := bench.Exceeded(summary.Judge(c.FailIf)); {
	case len(c.FailIf) == 0:
		return nil
	case summary.OnlyDropped:
		return &codeError{exitDisturbed, errors.New("--fail-if: others used the machine in every round")}
	case len(exceeded) > 0:
		return &codeError{exitExceeded, errors.New("--fail-if: " + strings.Join(exceeded, "; "))}
	}
	return nil
}

// start starts and prepares the servers to measure.
func (c *benchRunCmd) start(ctx context.Context, b *bench.Bench) error {
	work := b.Header.Work
	server, pinned, err := pinTo(c.Pin, c.URL == "")
	b.Header.Pinned = pinned
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	add := func(s *bench.Subject, err error) error {
		if err == nil {
			b.Subjects = append(b.Subjects, s)
		}
		return err
	}
	if c.URL == "" {
		err = add(bench.Program{Name: "writ", Binary: self, Args: c.Serve, Processors: server}.Start(ctx, work))
	} else {
		err = add(c.connect(ctx, work))
	}
	if err != nil {
		return err
	}
	for _, change := range c.Vary {
		p, w := bench.Program{Name: change, Binary: self, Args: c.Serve, Processors: server}, work
		if strings.HasPrefix(change, "--") {
			p.Name, p.Args = strings.TrimLeft(change, "-"), append(slices.Clone(c.Serve), change)
		} else if w, err = work.With(change); err != nil {
			return &usageError{"--vary " + err.Error()}
		}
		if err := add(p.Start(ctx, w)); err != nil {
			return err
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	peers := bench.Peers{
		Binary: self, Serve: c.Serve, Processors: server, Cache: filepath.Join(cache, "writ-bench"), Say: b.Say,
	}
	for _, name := range c.Peer {
		var err error
		for _, form := range bench.Forms(name) {
			if err == nil {
				err = add(peers.Start(ctx, form, work, b.Subjects[0]))
			}
		}
		if errors.Is(err, bench.ErrUnavailable) {
			b.Say("SKIPPED %s: %v", name, err)
			b.Header.Skipped = append(b.Header.Skipped, bench.Skipped{Name: name, Why: err.Error()})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}
