package hook_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/hook"
	"writ.example/writ/plugs/plug"
)

func installation(t testing.TB, harness toolcall.Harness) hook.Installation {
	return hook.Installation{
		Project: t.TempDir(), Program: "/opt/it's/writ", Record: true,
		Hook: hook.Hook{Harness: harness, Held: hook.HeldDeny, Settings: plug.Settings{
			URL: "https://writ.example", APIKeyFile: "/k", PolicyID: "p", Timeout: time.Second,
		}},
	}
}

// FuzzPlan checks that an installation keeps the other settings, and that a second one changes nothing.
func FuzzPlan(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"model":"m","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"lint"}]}],"Stop":[]},"a":1.50}`,
		`{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, "{ // comment\n}", `[]`, `{"a":1,"a":2}`, `{"hooks":{"BeforeTool":[1,null]}}`,
		`{"hooks":{"PreToolUse":[{"hooks":[{"command":"/old/writ hook claude"}]},{"hooks":[{"command":"writ hook claude"},{"command":"x"}]}]}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, before string) {
		for _, harness := range []toolcall.Harness{toolcall.Claude, toolcall.Codex, toolcall.Gemini, toolcall.Cursor} {
			i := installation(t, harness)
			file, err := i.File()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			change, err := i.Plan()
			if err != nil {
				continue
			}
			if err := change.Write(); err != nil {
				t.Fatal(err)
			}
			if again, err := i.Plan(); err != nil || again.Changes() {
				t.Errorf("%s: installed again, %q changes: %v\n%s", harness, before, err, again.Diff())
			}
			was, is := decoded(t, before), decoded(t, string(change.After))
			hooksBefore, _ := was["hooks"].(map[string]any)
			hooksAfter, _ := is["hooks"].(map[string]any)
			for event, list := range hooksBefore {
				had, _ := list.([]any)
				if has, _ := hooksAfter[event].([]any); len(had) > len(has)+1 || has == nil && had != nil {
					t.Errorf("%s: of %q's %s %v is left", harness, before, event, has)
				}
			}
			delete(was, "hooks")
			for name, v := range was {
				if !reflect.DeepEqual(v, is[name]) {
					t.Errorf("%s: %q: the member %s became %v", harness, before, name, is[name])
				}
			}
		}
	})
}

func decoded(t *testing.T, text string) map[string]any {
	m := map[string]any{}
	if text == "" {
		return m
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil && text[0] == '{' {
		t.Logf("%q: %v", text, err)
	}
	return m
}
