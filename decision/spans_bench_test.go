package decision

import "testing"

// BenchmarkSpan_Off measures a step's span without a tracer.
func BenchmarkSpan_Off(b *testing.B) {
	s := new(Service)
	ctx := b.Context()
	for b.Loop() {
		_, span := s.span(ctx, "load")
		span.End()
	}
}
