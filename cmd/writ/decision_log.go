package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"writ/storage/decisionlog"
)

// The kinds of sinks. A kind is the beginning of --decision-log, up to a colon.
const (
	stdoutSink = "stdout"
	fileSink   = "file"
)

// sinkTarget is the value of --decision-log. Its kind is empty if there is no sink.
type sinkTarget struct{ kind, place string }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *sinkTarget) UnmarshalText(text []byte) error {
	kind, place, _ := strings.Cut(string(text), ":")
	switch {
	case len(text) == 0, string(text) == stdoutSink, kind == fileSink && place != "":
		*t = sinkTarget{kind, place}
		return nil
	}
	return fmt.Errorf("%q: want stdout, or file: and a path", text)
}

func (t sinkTarget) open(out io.Writer) (decisionlog.Sink, error) {
	if t.kind == fileSink {
		return decisionlog.OpenFile(t.place)
	}
	return decisionlog.NewStream(out), nil
}

// sendRows sends the rows of the history to a sink, if there is one. out is standard output.
func (n *node) sendRows(ctx context.Context, c *serveCmd, out io.Writer) error {
	if c.DecisionLog.kind == "" {
		return nil
	}
	encode := decisionlog.Line
	if c.DecisionLogFormat == "opa" {
		encode = decisionlog.OPA
	}
	sink, err := c.DecisionLog.open(out)
	if err != nil {
		return fmt.Errorf("--decision-log: %w", err)
	}
	f, err := decisionlog.Open(ctx, decisionlog.Config{
		// The name has no place. So replicas with different paths go on for each other, and another path,
		// topic or address leaves no gap.
		Name: c.DecisionLog.kind, History: n.store, Positions: n.docs, Sink: sink, Encode: encode, Log: n.log,
		Metrics: n.registry,
	})
	if err != nil {
		return err
	}
	n.work.Go(func() { f.Run(ctx) })
	return nil
}
