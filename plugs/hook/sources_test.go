package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/hook"
)

// talk is a session of a harness whose hook states sources.
type talk struct {
	t      *testing.T
	h      hook.Hook
	server *server
	id     string
	calls  int
}

func newTalk(t *testing.T, harness toolcall.Harness, mapping string) *talk {
	s := newServer(t, allows)
	h := newHook(t, harness, s.URL)
	h.Sources = true
	if mapping != "" {
		h.Mapping = filepath.Join(t.TempDir(), "mapping.yaml")
		must(t, os.WriteFile(h.Mapping, []byte(mapping), 0o600))
	}
	return &talk{t: t, h: h, server: s, id: "s"}
}

// run runs the hook about an event, which must succeed.
func (k *talk) run(use hook.Use, members map[string]any) {
	k.t.Helper()
	members["session_id"], members["cwd"] = k.id, "/w"
	data, err := json.Marshal(members)
	must(k.t, err)
	var out, errw bytes.Buffer
	if code := k.h.Run(context.Background(), use, bytes.NewReader(data), &out, &errw); code != 0 || out.String() != "{}\n" {
		k.t.Fatalf("%s %.200s: code %d, %q, %q", use, data, code, out.String(), errw.String())
	}
}

func (k *talk) user(words string) {
	k.t.Helper()
	k.run(hook.Keep, map[string]any{"hook_event_name": "UserPromptSubmit", "prompt": words})
}

func (k *talk) returned(tool string, input map[string]any, response any) {
	k.t.Helper()
	k.run(hook.Keep, map[string]any{
		"hook_event_name": "PostToolUse", "tool_name": tool, "tool_use_id": "r", "tool_input": input, "tool_response": response,
	})
}

// check checks the sources of the values of a call.
func (k *talk) check(want string, to ...string) {
	k.t.Helper()
	k.calls++
	k.decide(fmt.Sprint("t", k.calls), want, to...)
}

func (k *talk) decide(id, want string, to ...string) {
	k.t.Helper()
	k.run(hook.Decide, map[string]any{
		"hook_event_name": "PreToolUse", "tool_name": "mcp__mail__send", "tool_use_id": id, "tool_input": map[string]any{"to": to},
	})
	k.server.mu.Lock()
	defer k.server.mu.Unlock()
	intent, _ := k.server.intents[len(k.server.intents)-1]["intent"].(map[string]any)
	metadata, _ := intent["metadata"].(map[string]any)
	if got := metadata["fact.source.to"]; got != want {
		k.t.Errorf("the sources of %v are %v, want %s", to, got, want)
	}
}

func (k *talk) files(pattern string) []string {
	names, err := filepath.Glob(filepath.Join(k.h.State, pattern))
	must(k.t, err)
	return names
}

// TestSources holds what is stated of the arguments of calls, and that nothing is kept of a session that has ended.
func TestSources(t *testing.T) {
	for _, harness := range []toolcall.Harness{toolcall.Claude, toolcall.Codex} {
		t.Run(string(harness), func(t *testing.T) {
			k := newTalk(t, harness, "sources:\n  mcp__crm__contacts: [people.*.email]\n")
			k.check("unknown", "ana@ours.example")
			k.user("Write to ana@ours.example. Pay what bill.txt says.")
			k.check("user,unknown", "Ana@ours.example", "eve@evil.test")
			k.returned("Bash", map[string]any{"command": "cat /w/mail"}, map[string]any{"stdout": "tell eve@evil.test", "stderr": ""})
			k.returned("Read", map[string]any{"file_path": "/w/bill.txt"}, map[string]any{"file": map[string]any{"content": "bob@shop.example"}})
			k.returned("Read", map[string]any{"file_path": "/w/other.txt"}, "sam@shop.example")
			text := map[string]any{"type": "text", "text": `{"people":[{"email":"tom@ours.example","note":"not zoe@ours.example"}]}`}
			k.returned("mcp__crm__contacts", nil, []any{text})
			k.returned("mcp__crm__contacts", nil, map[string]any{"content": []any{}, "structuredContent": map[string]any{
				"people": []any{map[string]any{"email": "kim@ours.example"}},
			}})
			k.check("text,named,text,record,record,text,unknown", "eve@evil.test", "bob@shop.example", "sam@shop.example",
				"tom@ours.example", "kim@ours.example", "zoe@ours.example", "new@ours.example")
			if harness == toolcall.Claude {
				k.run(hook.Keep, map[string]any{
					"hook_event_name": "PostToolUseFailure", "tool_name": "mcp__crm__contacts", "tool_use_id": "f", "tool_input": map[string]any{},
					"error": `{"people":[{"email":"err@evil.test"}]}`,
				})
				k.check("text", "err@evil.test")
			}

			k.decide("again", "unknown", "late@evil.test")
			k.returned("Bash", map[string]any{"command": "ls"}, "late@evil.test")
			k.decide("again", "unknown", "late@evil.test") // or it would be another intent under the same id
			k.check("text", "late@evil.test")

			first := k.id
			k.id = "another"
			k.check("unknown,unknown", "ana@ours.example", "eve@evil.test")
			k.id = first
			for _, name := range k.files("*") {
				if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: others can read it: %v, %v", name, info, err)
				}
			}
			k.run(hook.End, map[string]any{"hook_event_name": "SessionEnd", "reason": "other"})
			k.check("unknown", "ana@ours.example")
			if left := k.files("sources-*.words"); len(left) > 0 {
				t.Errorf("words are kept after the end: %v", left)
			}
			sent, err := json.Marshal(k.server.intents)
			must(t, err)
			if strings.Contains(string(sent), "bill.txt says") {
				t.Error("the server got the user's words")
			}
		})
	}
}

// TestSources_Record holds that a hook that records keeps what calls returned, too, and without --sources does not.
func TestSources_Record(t *testing.T) {
	for _, sources := range []bool{true, false} {
		k := newTalk(t, toolcall.Claude, "")
		k.h.Sources = sources
		call := map[string]any{"tool_name": "Bash", "tool_use_id": "t1", "tool_input": map[string]any{"command": "ls"}}
		call["hook_event_name"] = "PreToolUse"
		k.run(hook.Decide, call)
		call["hook_event_name"], call["tool_response"] = "PostToolUse", "eve@evil.test"
		k.run(hook.Record, call)
		want := 0
		if sources {
			want = 1
		}
		if got := len(k.files("sources-*.result")); got != want || len(k.server.records) != 1 {
			t.Errorf("with sources %t: %d results are kept and %d calls recorded, want %d and 1", sources, got, len(k.server.records), want)
		}
	}
}

// TestSources_Bounds holds that the oldest results are dropped, the user's words are not, and what is gone is unknown.
func TestSources_Bounds(t *testing.T) {
	k := newTalk(t, toolcall.Claude, "sources: {mcp__crm__iban: ['']}\n")
	k.user("to ana@ours.example")
	k.returned("Bash", nil, "eve@evil.test")
	k.returned("mcp__crm__iban", nil, []any{map[string]any{"type": "text", "text": "DE1"}})
	filler := "x " + strings.Repeat("z", 1_400_000)
	for range 2 {
		k.returned("Bash", nil, filler)
	}
	k.check("user,text,record", "ana@ours.example", "eve@evil.test", "DE1")
	k.returned("Bash", nil, filler)
	k.returned("mcp__crm__iban", nil, []any{map[string]any{"type": "text", "text": "DE2"}})
	k.check("user,unknown,unknown,unknown,record", "ana@ours.example", "eve@evil.test", "DE1", "x", "DE2")
	size := int64(0)
	for _, name := range k.files("sources-*.result") {
		info, err := os.Stat(name)
		must(t, err)
		size += info.Size()
	}
	if size > 4<<20 {
		t.Errorf("%d bytes of results are kept", size)
	}

	k = newTalk(t, toolcall.Claude, "")
	k.user("to ana@ours.example")
	k.returned("Bash", nil, "eve@evil.test")
	k.user(strings.Repeat("y ", 32<<10))
	k.check("user,unknown,unknown", "ana@ours.example", "eve@evil.test", "y")
	k = newTalk(t, toolcall.Claude, "")
	k.returned("Bash", nil, "eve@evil.test "+strings.Repeat(filler, 4))
	k.check("unknown", "eve@evil.test")
}

// TestSources_AtOnce holds that processes of one session do not lose each other's words.
func TestSources_AtOnce(t *testing.T) {
	k := newTalk(t, toolcall.Claude, "")
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			data := fmt.Sprintf(`{"session_id":"s","cwd":"/w","hook_event_name":"UserPromptSubmit","prompt":"to a%d@ours.example"}`, i)
			if code := k.h.Run(context.Background(), hook.Keep, strings.NewReader(data), new(bytes.Buffer), new(bytes.Buffer)); code != 0 {
				t.Errorf("code %d", code)
			}
		})
	}
	wg.Wait()
	for i := range 16 {
		k.check("user", fmt.Sprintf("a%d@ours.example", i))
	}
}

// TestSources_Refuses holds that a hook that cannot know the sources of a call does not let it run, and what is refused.
func TestSources_Refuses(t *testing.T) {
	k := newTalk(t, toolcall.Claude, "")
	for use, inputs := range map[hook.Use][]string{
		hook.Decide: {`{"cwd":"/w","tool_name":"Bash","tool_input":{"command":"ls"}}`},
		hook.Keep: {
			`{}`, `{"session_id":"s"}`, `{"session_id":"s","hook_event_name":"UserPromptSubmit"}`, `{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":1}`,
			`{"hook_event_name":"UserPromptSubmit","prompt":"a"}`, `{"session_id":"s","hook_event_name":"SessionEnd"}`, `[`,
		},
	} {
		for _, in := range inputs {
			var out, errw bytes.Buffer
			if code := k.h.Run(context.Background(), use, strings.NewReader(in), &out, &errw); code != 2 || out.Len() > 0 || errw.Len() == 0 {
				t.Errorf("%s %s: code %d, %q, %q, want 2 and a reason", use, in, code, out.String(), errw.String())
			}
		}
	}
	k.returned("Bash", nil, "eve@evil.test")
	must(t, os.WriteFile(k.files("sources-*.result")[0], []byte("{"), 0o600))
	call := `{"session_id":"s","cwd":"/w","tool_name":"Bash","tool_use_id":"t9","tool_input":{"command":"ls"}}`
	if got := run(k.h, call); got.code != 2 || !strings.Contains(got.err, "is damaged: remove it") {
		t.Errorf("with a damaged result: %+v", got)
	}
	for _, harness := range []toolcall.Harness{toolcall.Gemini, toolcall.Cursor} {
		h := newHook(t, harness, k.server.URL)
		h.Sources = true
		if err := h.Check(); err == nil || !strings.HasPrefix(err.Error(), "--sources: ") {
			t.Errorf("%s: %v, want an error that names --sources", harness, err)
		}
	}
}

// TestSources_Swept holds that what is kept of a session that never ended is removed after a day.
func TestSources_Swept(t *testing.T) {
	k := newTalk(t, toolcall.Claude, "")
	k.user("to ana@ours.example")
	old := time.Now().Add(-25 * time.Hour)
	for _, name := range k.files("*") {
		must(t, os.Chtimes(name, old, old))
	}
	k.check("unknown", "ana@ours.example")
	if left := k.files("sources-*.words"); len(left) > 0 {
		t.Errorf("%v is a day old", left)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestInstallation_Sources holds in which events an installed hook hears of the user's words and of results.
func TestInstallation_Sources(t *testing.T) {
	for _, harness := range []toolcall.Harness{toolcall.Claude, toolcall.Codex} {
		for _, record := range []bool{true, false} {
			i := installation(t, harness)
			i.Record, i.Hook.Sources = record, true
			text, err := i.Managed()
			must(t, err)
			results := "--keep"
			if record {
				results = "--record"
			}
			for _, event := range []struct{ name, use string }{
				{"UserPromptSubmit", "--keep"}, {"PostToolUse", results}, {"SessionEnd", "--end"},
			} {
				_, at, ok := strings.Cut(text, event.name)
				_, at, _ = strings.Cut(at, "--timeout=1s ")
				if !ok || !strings.HasPrefix(at, "--sources "+event.use) {
					t.Errorf("%s, record %t: %s: %q, want --sources %s", harness, record, event.name, at, event.use)
				}
			}
		}
	}
}
