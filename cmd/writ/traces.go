package main

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"writ.example/writ/api/tracing"
)

// openTraces returns the tracer of requests, or nil if there is no collector.
func (n *node) openTraces(ctx context.Context, collector string) (trace.Tracer, error) {
	if collector == "" {
		return nil, nil //nolint:nilnil // without a tracer there are no spans
	}
	provider, err := tracing.Open(ctx, collector)
	if err != nil {
		return nil, fmt.Errorf("--traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { n.log.Warn("sending spans failed", "error", err) }))
	n.endTraces = provider.Shutdown
	return provider.Tracer(tracing.Name), nil
}
