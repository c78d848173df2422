package scrub

import (
	"context"
	"fmt"
	"log/slog"
)

// NewHandler returns a handler that scrubs messages and attribute values of every type
// by s and passes them to next.
func NewHandler(next slog.Handler, s *Scrubber) slog.Handler { return &handler{next, s} }

type handler struct {
	next  slog.Handler
	scrub *Scrubber
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, h.scrub.Text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.next.WithAttrs(h.attrs(attrs)), h.scrub}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.next.WithGroup(name), h.scrub}
}

func (h *handler) attrs(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}
	return clean
}

// attr returns a with its value scrubbed. A value that is neither text nor a
// number is logged as its printed text.
func (h *handler) attr(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(h.attrs(v.Group())...)}
	case slog.KindString:
		return slog.String(a.Key, h.scrub.Text(v.String()))
	case slog.KindAny:
		if b, ok := v.Any().([]byte); ok {
			return slog.String(a.Key, h.scrub.Text(string(b)))
		}
		return slog.String(a.Key, h.scrub.Text(fmt.Sprint(v.Any())))
	default:
		return slog.Attr{Key: a.Key, Value: v}
	}
}
