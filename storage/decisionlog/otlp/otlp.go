// Package otlp sends rows of the decision log to an OpenTelemetry collector, as OTLP logs over HTTP. It is
// the only package that imports OpenTelemetry's exporter.
//
// A row is a log record: its body is the line, its event name is [EventName], and its time is the time of
// the decision. The attributes are writ.organization_id, writ.decision_id and writ.decision. The resource has
// the service name writ. The environment's OTEL_EXPORTER_OTLP_HEADERS, …_CERTIFICATE and the like apply.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"writ.example/writ/storage/decisionlog"
)

// EventName is the event name of a row.
const EventName = "writ.decision"

const (
	// timeout bounds one request.
	timeout = 30 * time.Second
	// most is the number of rows in a request. A collector refuses requests above 20 MiB unless it is
	// told otherwise.
	most = 1000
)

// Sink sends rows to a collector. The collector's answer confirms them.
type Sink struct {
	exporter *otlploghttp.Exporter
	maker    *maker
	logger   log.Logger
	log      *slog.Logger
}

// Open returns a sink for the collector at an http(s) URL, such as http://localhost:4318/v1/logs. It
// connects with the first Send. warn gets a line if the collector rejects rows.
func Open(ctx context.Context, at string, warn *slog.Logger) (*Sink, error) {
	u, err := url.Parse(at)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("want an http(s) URL, such as http://localhost:4318/v1/logs")
	case u.User != nil:
		return nil, errors.New("the URL has a password: give credentials in OTEL_EXPORTER_OTLP_HEADERS")
	}
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithEndpointURL(at), otlploghttp.WithTimeout(timeout),
		otlploghttp.WithCompression(otlploghttp.GzipCompression),
		// The follower retries without end, with growing pauses.
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}))
	if err != nil {
		return nil, fmt.Errorf("making the OTLP exporter: %w", err)
	}
	m := new(maker)
	provider := sdk.NewLoggerProvider(sdk.WithProcessor(m),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "writ"))))
	return &Sink{exporter: exporter, maker: m, logger: provider.Logger("writ/storage/decisionlog"), log: warn}, nil
}

// maker collects records. Only a provider's logger can make records with a resource, and it passes them to
// its processor: maker.
type maker struct{ records []sdk.Record }

func (m *maker) OnEmit(_ context.Context, r *sdk.Record) error {
	m.records = append(m.records, r.Clone())
	return nil
}

func (m *maker) Enabled(context.Context, sdk.EnabledParameters) bool { return true }
func (m *maker) Shutdown(context.Context) error                      { return nil }
func (m *maker) ForceFlush(context.Context) error                    { return nil }

// Send implements [decisionlog.Sink].
func (s *Sink) Send(ctx context.Context, rows []decisionlog.Row) error {
	for len(rows) > 0 {
		n := min(len(rows), most)
		if err := s.send(ctx, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func (s *Sink) send(ctx context.Context, rows []decisionlog.Row) error {
	s.maker.records = s.maker.records[:0]
	for i := range rows {
		s.logger.Emit(ctx, record(&rows[i]))
	}
	err := s.exporter.Export(ctx, s.maker.records)
	// By the protocol, rows that a collector rejects in a partial success must not be sent again. The
	// exporter exports no type for this error.
	if err != nil && strings.Contains(err.Error(), "partial success") {
		s.log.Error("the collector has taken the rows of the decision log in part, and will not take the rest",
			"error", err)
		return nil
	}
	return err
}

func record(row *decisionlog.Row) (r log.Record) {
	r.SetEventName(EventName)
	r.SetTimestamp(row.Record.DecidedAt)
	r.SetSeverity(log.SeverityInfo)
	r.SetBody(attribute.StringValue(string(row.JSON)))
	r.AddAttributes(
		attribute.String("writ.organization_id", row.Record.OrganizationID),
		attribute.String("writ.decision_id", row.Record.DecisionID),
		attribute.String("writ.decision", row.Record.Decision.String()),
	)
	return r
}

// Close implements [decisionlog.Sink].
func (s *Sink) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return s.exporter.Shutdown(ctx)
}
