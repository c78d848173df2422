package scrub

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

func TestHandler_ScrubsEverythingLogged(t *testing.T) {
	token := "gh" + "p_9fKq2LmX7wZb4Rt8Yv1Nc6Hd3Jg5Ps0Aq2We"
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: newScrubber(t).ReplaceAttr}))
	log.With("with", token).WithGroup("g").Error("failed "+token,
		"text", token, "path", "/v1/gh%70"+token[3:], "error", errors.New("of "+token), "bytes", []byte(token), "status", 500,
		slog.Group("inner", "text", token, "any", struct{ T string }{token}))
	got := out.String()
	if strings.Contains(got, token[4:]) {
		t.Errorf("the log has the secret: %s", got)
	}
	for _, want := range []string{`msg="failed [redacted:github-pat]"`, "with=[redacted:", "g.text=[redacted:", "g.path=/v1/[redacted:",
		`g.error="of [redacted:`, "g.status=500", "g.inner.text=[redacted:", "g.inner.any={[redacted:"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log lacks %s: %s", want, got)
		}
	}
}
