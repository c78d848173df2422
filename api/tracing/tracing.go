// Package tracing makes spans of requests and sends them to an OpenTelemetry collector. A request's span has
// the spans of its decision below it: load, decide and commit. If the request has a traceparent, its span
// belongs to that trace.
//
// A span has the method, the route, the status, the code of a problem and the request's id. It has nothing of
// the body.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Name is the name of writ's tracer.
const Name = "writ"

// Open returns a provider of tracers that sends to the collector at an http(s) URL, such as
// http://localhost:4318/v1/traces. The variables of OpenTelemetry choose the sampler and the headers. Spans
// that the collector does not take in time are lost. Shut the provider down at the end.
func Open(ctx context.Context, at string) (*sdk.TracerProvider, error) {
	u, err := url.Parse(at)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("want an http(s) URL, such as http://localhost:4318/v1/traces")
	case u.User != nil:
		return nil, errors.New("the URL has a password: give credentials in OTEL_EXPORTER_OTLP_HEADERS")
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(at))
	if err != nil {
		return nil, fmt.Errorf("making the OTLP exporter: %w", err)
	}
	return sdk.NewTracerProvider(sdk.WithBatcher(exporter),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "writ")))), nil
}

// Start starts the span of a request. path is the pattern of the route's path.
func Start(ctx context.Context, t trace.Tracer, method, path, traceparent string) (context.Context, trace.Span) {
	if traceparent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	}
	return t.Start(ctx, method+" "+path, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", path)))
}

// End ends the span of a request. code is the code of its problem, or empty.
func End(span trace.Span, status int, requestID, code string) {
	span.SetAttributes(
		attribute.Int("http.response.status_code", status), attribute.String("writ.request_id", requestID))
	if code != "" {
		span.SetAttributes(attribute.String("error.type", code))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
