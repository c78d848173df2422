package scrub

import (
	"fmt"
	"log/slog"
)

// ReplaceAttr returns a with its value scrubbed. As a [slog.HandlerOptions.ReplaceAttr] it
// scrubs messages and attribute values of every type. A value that is neither text nor a
// number is logged as its printed text.
func (s *Scrubber) ReplaceAttr(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		return slog.String(a.Key, s.Text(a.Value.String()))
	case slog.KindAny:
		if b, ok := a.Value.Any().([]byte); ok {
			return slog.String(a.Key, s.Text(string(b)))
		}
		return slog.String(a.Key, s.Text(fmt.Sprint(a.Value.Any())))
	default:
		return a
	}
}
