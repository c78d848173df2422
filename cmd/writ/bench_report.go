package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"writ.example/writ/bench"
)

type benchReportCmd struct {
	File string `arg:"" help:"Raw data that writ bench wrote; the report stands beside it."`
}

func (c *benchReportCmd) Run(_ context.Context, s streams) error {
	d, err := readData(c.File)
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(c.File, ".jsonl") + ".html"
	if err := writeFile(name, d.WriteHTML); err != nil {
		return err
	}
	if err := d.Summarize().Print(s.out); err != nil {
		return err
	}
	fmt.Fprintln(s.out, name)
	return nil
}

// writeFile writes a file.
func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.Create(name) //nolint:gosec // the user chose the name
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

type benchFloorCmd struct {
	Addr string `required:"" help:"Address to listen on."`
	Size int    `default:"800" help:"Bytes of the constant answer."`
}

// Run serves until the process ends.
func (c *benchFloorCmd) Run(ctx context.Context) error { return bench.ServeFloor(ctx, c.Addr, c.Size) }
