package decision

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// span starts a span of a step of a decision. Without a tracer it does nothing. A span has no attributes,
// because the request's span says which decision it was.
func (s *Service) span(ctx context.Context, step string) (context.Context, trace.Span) {
	if s.cfg.Tracer == nil {
		return ctx, noop.Span{}
	}
	return s.cfg.Tracer.Start(ctx, step)
}
