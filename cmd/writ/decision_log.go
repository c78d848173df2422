package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"writ/storage/decisionlog"
	"writ/storage/decisionlog/kafka"
	"writ/storage/decisionlog/otlp"
)

// The kinds of sinks. A kind is the beginning of --decision-log, up to a colon.
const (
	stdoutSink = "stdout"
	fileSink   = "file"
	otlpSink   = "otlp"
	kafkaSink  = "kafka"
)

// placed are the kinds of sinks that have a place, which follows the colon.
var placed = []string{fileSink, otlpSink, kafkaSink}

// sinkTarget is the value of --decision-log. Its kind is empty if there is no sink.
type sinkTarget struct{ kind, place string }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *sinkTarget) UnmarshalText(text []byte) error {
	kind, place, _ := strings.Cut(string(text), ":")
	switch {
	case len(text) == 0, string(text) == stdoutSink, place != "" && slices.Contains(placed, kind):
		*t = sinkTarget{kind, place}
		return nil
	}
	return errors.New("want stdout, file:PATH, otlp:URL or kafka:BROKERS/TOPIC")
}

func (t sinkTarget) open(ctx context.Context, out io.Writer, log *slog.Logger) (decisionlog.Sink, error) {
	switch t.kind {
	case fileSink:
		return decisionlog.OpenFile(t.place)
	case otlpSink:
		return otlp.Open(ctx, t.place, log)
	case kafkaSink:
		return kafka.Open(t.place)
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
	sink, err := c.DecisionLog.open(ctx, out, n.log)
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
