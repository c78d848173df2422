package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/internal/toolcall"
)

// TestMapping holds what a mapping makes of a call, and that a call which lacks what it names is blocked.
func TestMapping(t *testing.T) {
	s := newServer(t, allows)
	h := newHook(t, toolcall.Claude, s.URL)
	h.Mapping = filepath.Join(t.TempDir(), "mapping.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(h.Mapping, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	book := func(args string) ran {
		return run(h, fmt.Sprintf(`{"tool_name":"mcp__crm__book","cwd":"/w","tool_input":%s}`, args))
	}
	write("tools:\n  mcp__crm__book:\n    action: booking.create\n    resources: [$.hotel.url]\n    cost: {amount_minor: $.cents, currency: EUR}\n")
	if got := book(`{"hotel":{"url":"https://h.example/"},"cents":1250}`); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	sent, _ := s.intents[0]["intent"].(map[string]any)
	got := []any{sent["action_type"], sent["resource"], sent["cost"]}
	want := []any{"booking.create", "https://h.example/", map[string]any{"amount_minor": 1250.0, "currency": "EUR"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the intent (-want +got):\n%s", diff)
	}
	for _, args := range []string{
		`{}`, `{"hotel":"h","cents":1}`, `{"hotel":{"url":1},"cents":1}`, `{"hotel":{"url":null},"cents":1}`,
		`{"hotel":{"url":"https://h.example/"}}`, `{"hotel":{"url":"https://h.example/"},"cents":"1"}`,
		`{"hotel":{"url":"https://h.example/"},"cents":1.5}`,
	} {
		if got := book(args); got.code != 2 || !strings.Contains(got.err, "--mapping") {
			t.Errorf("%s: %+v, want it to be blocked", args, got)
		}
	}
	for _, text := range []string{"tools: [", "tool: {}", "tools: {mcp__crm__book: {resources: [$.a, $.b]}}"} {
		write(text)
		if got := book(`{}`); got.code != 2 || !strings.Contains(got.err, "--mapping") {
			t.Errorf("the mapping %s: %+v, want it to be refused", text, got)
		}
	}
}
