package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/decisionlog/kafka"
	"writ.example/writ/storage/decisionlog/otlp"
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

// kafkaFlags say how the sink for Kafka connects. The variables of OpenTelemetry's exporter have the same
// names.
type kafkaFlags struct {
	TLS               bool   `name:"tls" help:"Connect to the brokers of --decision-log kafka:… over TLS. The system's authorities sign their certificates, unless --kafka-certificate is given."`
	Certificate       string `placeholder:"FILE" help:"Authorities that sign the brokers' certificates, in PEM."`
	ClientCertificate string `placeholder:"FILE" help:"Certificate with which writ shows the brokers who it is, in PEM."`
	ClientKey         string `placeholder:"FILE" help:"Key of --kafka-client-certificate, in PEM."`
	SASL              string `name:"sasl" enum:",plain,scram-sha-256,scram-sha-512" default:"" help:"How writ logs in to the brokers: plain (over TLS alone), scram-sha-256 or scram-sha-512. Without it, writ does not."`
	User              string `placeholder:"NAME" help:"Name with which writ logs in to the brokers."`
	Password          string `placeholder:"PASSWORD" help:"Password of --kafka-user. Prefer the variable: a flag shows in the list of processes."`
}

// check refuses flags that do not fit together, or do not fit a kind of sink.
func (f kafkaFlags) check(kind string) error {
	switch {
	case f != kafkaFlags{} && kind != kafkaSink:
		return errors.New("--kafka-tls and the like are about --decision-log kafka:BROKERS/TOPIC, which is not given")
	case !f.TLS && f.Certificate+f.ClientCertificate+f.ClientKey != "":
		return errors.New("--kafka-certificate, --kafka-client-certificate and --kafka-client-key need --kafka-tls")
	case (f.ClientCertificate == "") != (f.ClientKey == ""):
		return errors.New("--kafka-client-certificate and --kafka-client-key: give both or none")
	case f.SASL == "" && f.User+f.Password != "":
		return errors.New("--kafka-user and --kafka-password: say how writ logs in with --kafka-sasl")
	case f.SASL != "" && (f.User == "" || f.Password == ""):
		return errors.New("--kafka-sasl needs --kafka-user and --kafka-password")
	case f.SASL == "plain" && !f.TLS:
		return errors.New("--kafka-sasl plain needs --kafka-tls: without it everybody on the way can read the password")
	}
	return nil
}

func (t sinkTarget) open(
	ctx context.Context, f kafkaFlags, out io.Writer, log *slog.Logger,
) (decisionlog.Sink, error) {
	switch t.kind {
	case fileSink:
		return decisionlog.OpenFile(t.place)
	case otlpSink:
		return otlp.Open(ctx, t.place, log)
	case kafkaSink:
		return kafka.Open(t.place, kafka.Security(f))
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
	sink, err := c.DecisionLog.open(ctx, c.Kafka, out, n.log)
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
