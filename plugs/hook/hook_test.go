package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/hook"
	"writ.example/writ/plugs/plug"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	decisionID = "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37"
	redeemedID = "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e99"
	apiKey     = "writ_secret"
)

// result is an answer of the server about an intent.
func result(id, outcome, reason string, exp int64) string {
	text, _ := json.Marshal(reason) // a string
	return fmt.Sprintf(`{"ok":true,"approved":%t,"reasons":[%s],"decision_id":%q,"receipt":{"decision":%q,"decision_id":%q,`+
		`"digest":"sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b","exp":%d,"sig":"`+
		`AWV4YW1wbGUtY2hhaW4tMDEAAAAAAAAAAQAAAAIAAAGjGFxQewAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMQBz-HKnCNp7zdZ2wdeaYorKAd_imiXmLxjmKovnB6c5obNHVTdoLogrBMhHdvq1HrFhe3p60_u-txNq0frKAQAAAAB5hxJ4xL4e7OyDavZuknLtggLb53STV_rKEdz8wPWgtA`+
		`","kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}}`, outcome == "allow", text, id, outcome, id, exp)
}

const never = 9007199254740991

// server is a writ server of the test. It holds intents until approve is called, and answers each
// redemption after the first as replayed.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	answer   http.HandlerFunc // about an intent without an approval
	status   string           // of the approval
	polled   chan struct{}    // gets a value for each long poll
	intents  []map[string]any
	redeemed []map[string]any
	records  []map[string]any
	redeem   http.HandlerFunc // in place of the first redemption's answer
}

func newServer(t *testing.T, answer http.HandlerFunc) *server {
	s := &server{answer: answer, status: "pending", polled: make(chan struct{}, 100)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+apiKey:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v1/actions/record":
		s.records = append(s.records, body)
		fmt.Fprint(w, "{}")
	case strings.HasPrefix(r.URL.Path, "/v1/approvals/"):
		if r.URL.Query().Get("wait") != "0" {
			s.polled <- struct{}{}
		}
		fmt.Fprintf(w, `{"approval_id":%q,"status":%q}`, strings.TrimPrefix(r.URL.Path, "/v1/approvals/"), s.status)
	case body["approval_id"] != nil:
		s.redeemed = append(s.redeemed, body)
		switch {
		case s.redeem != nil:
			again := s.redeem
			s.redeem = nil
			again(w, r)
			return
		case len(s.redeemed) > 1:
			w.Header().Set("Idempotent-Replayed", "true")
		}
		if s.status == "approved" {
			fmt.Fprint(w, result(redeemedID, "allow", "approval.granted: it was approved", never))
		} else {
			fmt.Fprint(w, result(redeemedID, "deny", "approval."+s.status+": it was "+s.status, never))
		}
	default:
		s.intents = append(s.intents, body)
		s.answer(w, r)
	}
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

var (
	allows = says(200, result(decisionID, "allow", "policy.allowed: version 1 of the policy allows it", never))
	denies = says(200, result(decisionID, "deny", "action.denied: the policy denies it\nand\x1b[2J more", never))
	holds  = says(200, result(decisionID, "approval_required", "rule.approval_required: a person decides", never))
)

// calls has a call of each harness, as it is handed to the hook before and after.
var calls = map[toolcall.Harness]string{
	toolcall.Claude: `{"session_id":"s","hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"ls"}}`,
	toolcall.Codex:  `{"session_id":"s","hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash","tool_use_id":"t1","tool_input":{"command":"ls"}}`,
	toolcall.Gemini: `{"session_id":"s","hook_event_name":"BeforeTool","cwd":"/w","tool_name":"run_shell_command","tool_input":{"command":"ls"}}`,
	toolcall.Cursor: `{"conversation_id":"s","hook_event_name":"beforeShellExecution","cwd":"/w","command":"ls"}`,
}

// newHook returns a hook with state of its own.
func newHook(t *testing.T, harness toolcall.Harness, url string) hook.Hook {
	return hook.Hook{
		Harness: harness, Held: hook.HeldDeny, Settings: plug.Settings{
			URL: url, APIKey: apiKey, PolicyID: "0198f3c2-7a10-7c3e-9d41-000000000001", AgentID: "a",
			Timeout: 20 * time.Second, Wait: time.Second, State: filepath.Join(t.TempDir(), "state"),
		},
	}
}

// ran is what became of a process.
type ran struct {
	code     int
	out, err string
}

func run(h hook.Hook, call string) ran {
	var out, errw bytes.Buffer
	code := h.Run(context.Background(), hook.Decide, strings.NewReader(call), &out, &errw)
	return ran{code, out.String(), errw.String()}
}

// loopback matches an address of a test.
var loopback = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// TestRun holds the exit code and the outputs for each harness, each answer and each way of holding a call.
func TestRun(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	answers := []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"allow", allows},
		{"deny", denies},
		{"held", holds},
		{"500", says(500, `{"status":500,"code":"internal","detail":"an error"}`)},
		{"403", says(403, `{"status":403,"code":"forbidden","detail":"the key lacks the scope facts:assert"}`)},
		{"hang", nil},
		{"closed port", nil},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		}},
		{"no JSON", says(200, "<html>ok</html>")},
		{"nothing", says(200, "")},
		{"approved is a text", says(200, strings.Replace(result(decisionID, "allow", "r", never), `"approved":true`, `"approved":"true"`, 1))},
		{"approved beside a deny", says(200, strings.Replace(result(decisionID, "deny", "r", never), `"approved":false`, `"approved":true`, 1))},
		{"no receipt", says(200, `{"ok":true,"approved":true,"reasons":["r"],"decision_id":"`+decisionID+`"}`)},
		{"an expired allow", says(200, result(decisionID, "allow", "r", 1))},
		{"201", says(201, result(decisionID, "allow", "r", never))},
	}
	for _, harness := range []toolcall.Harness{toolcall.Claude, toolcall.Codex, toolcall.Gemini, toolcall.Cursor} {
		t.Run(string(harness), func(t *testing.T) {
			var golden strings.Builder
			add := func(name string, h hook.Hook) {
				got := run(h, calls[harness])
				if got.code != 0 && got.code != 2 || got.code == 2 && got.err == "" || strings.Count(got.err, "\n") > 1 {
					t.Errorf("%s: exit code %d, standard error %q", name, got.code, got.err)
				}
				text := fmt.Sprintf("# %s\nexit %d\n%s%s", name, got.code, got.out, got.err)
				golden.WriteString(loopback.ReplaceAllString(text, "LOOPBACK") + "\n")
			}
			for _, a := range answers {
				h := newHook(t, harness, closed.URL)
				switch a.name {
				case "closed port":
				case "hang":
					release := make(chan struct{})
					s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
					h.URL, h.Timeout = s.URL, 100*time.Millisecond
					add(a.name, h)
					close(release)
					s.Close()
					continue
				default:
					h.URL = newServer(t, a.answer).URL
				}
				add(a.name, h)
			}
			for _, held := range []string{hook.HeldAsk, hook.HeldDefer} {
				h := newHook(t, harness, newServer(t, holds).URL)
				h.Held = held
				add("--held="+held, h)
			}
			h := newHook(t, harness, newServer(t, allows).URL)
			h.AutoApprove = true
			add("--auto-approve", h)
			name := filepath.Join("testdata", string(harness)+".golden")
			if *update {
				if err := os.WriteFile(name, []byte(golden.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), golden.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// TestRun_Refuses holds that bad input and bad settings block, and name what is wrong.
func TestRun_Refuses(t *testing.T) {
	s := newServer(t, allows)
	file := func(text string) string {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*hook.Hook, *string)
		want   string
	}{
		{"no JSON", func(_ *hook.Hook, call *string) { *call = "ls" }, "not one JSON object"},
		{"nothing", func(_ *hook.Hook, call *string) { *call = "" }, "not one JSON object"},
		{"a long call", func(_ *hook.Hook, call *string) { *call += strings.Repeat(" ", toolcall.MaxInput) }, "longer than"},
		{"no URL", func(h *hook.Hook, _ *string) { h.URL = "" }, "--url is missing"},
		{"no key", func(h *hook.Hook, _ *string) { h.APIKey = "" }, "--api-key-file is missing"},
		{"no policy", func(h *hook.Hook, _ *string) { h.PolicyID = "" }, "--policy-id is missing"},
		{"no key file", func(h *hook.Hook, _ *string) { h.APIKey, h.APIKeyFile = "", "/nonexistent" }, "--api-key-file"},
		{"an empty key file", func(h *hook.Hook, _ *string) { h.APIKey, h.APIKeyFile = "", file("\n") }, "--api-key-file"},
		{"another key", func(h *hook.Hook, _ *string) { h.APIKey = "other" }, "401"},
		{"a URL of files", func(h *hook.Hook, _ *string) { h.URL = "file:///etc" }, "URL"},
		{"no timeout", func(h *hook.Hook, _ *string) { h.Timeout = 0 }, ""}, // either it is refused, or the time is over
		{"a long wait", func(h *hook.Hook, _ *string) { h.Wait = time.Hour }, "--wait"},
		{"state for others", func(h *hook.Hook, _ *string) { h.State = open }, "--state: others"},
		{"state that is a file", func(h *hook.Hook, _ *string) { h.State = file("") }, "--state"},
		{"no keys to verify with", func(h *hook.Hook, _ *string) { h.Keys = "/nonexistent" }, "--verify-keys"},
		{"keys that are none", func(h *hook.Hook, _ *string) { h.Keys = file("{}") }, "keys"},
		{"keys of another server", func(h *hook.Hook, _ *string) {
			h.Keys = file(`{"keys":[{"kid":"k","kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`)
		}, "receipt does not verify"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, call := newHook(t, toolcall.Claude, s.URL), calls[toolcall.Claude]
			c.change(&h, &call)
			got := run(h, call)
			if got.code != 2 || got.out != "" || !strings.HasPrefix(got.err, "writ could not decide: ") || !strings.Contains(got.err, c.want) {
				t.Errorf("Run = %+v, want exit code 2 and %q", got, c.want)
			}
			if strings.Contains(got.err, apiKey) {
				t.Errorf("the API key is in %q", got.err)
			}
		})
	}
}

// failing fails at each use.
type failing struct{}

func (failing) Read([]byte) (int, error)  { panic("a defect") }
func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestRun_Fails holds that a panic, an output that takes nothing and an input that never ends block.
func TestRun_Fails(t *testing.T) {
	h := newHook(t, toolcall.Claude, newServer(t, allows).URL)
	var out, errw bytes.Buffer
	if code := h.Run(context.Background(), hook.Decide, failing{}, &out, &errw); code != 2 || !strings.Contains(errw.String(), "a defect") {
		t.Errorf("a panic: exit code %d, %q", code, errw.String())
	}
	errw.Reset()
	if code := h.Run(context.Background(), hook.Decide, strings.NewReader(calls[toolcall.Claude]), failing{}, &errw); code != 2 || errw.Len() == 0 {
		t.Errorf("no output: exit code %d, %q", code, errw.String())
	}
	errw.Reset()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	h.Timeout = 50 * time.Millisecond
	if code := h.Run(context.Background(), hook.Decide, r, &out, &errw); code != 2 || !strings.Contains(errw.String(), "within 50ms") {
		t.Errorf("an endless input: exit code %d, %q", code, errw.String())
	}
	if out.Len() > 0 {
		t.Errorf("standard output has %q", out.String())
	}
}

// TestRun_Sends holds what the server is asked.
func TestRun_Sends(t *testing.T) {
	s := newServer(t, allows)
	h := newHook(t, toolcall.Claude, s.URL)
	for range 2 {
		if got := run(h, calls[toolcall.Claude]); got.code != 0 {
			t.Fatalf("Run = %+v", got)
		}
	}
	first, _ := s.intents[0]["intent"].(map[string]any)
	if first["action_type"] != "shell.exec" || first["resource"] != "/w" || first["agent_id"] != "a" {
		t.Errorf("the intent is %v", first)
	}
	if diff := cmp.Diff(s.intents[0], s.intents[1]); diff != "" {
		t.Errorf("a repeated hook is not a replay (-first +second):\n%s", diff)
	}
}

// TestRun_Protects holds that tools do not reach the files on which the hook rests, though the server allows it.
func TestRun_Protects(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, ".claude"))
	h := newHook(t, toolcall.Claude, newServer(t, allows).URL)
	h.APIKey, h.APIKeyFile = "", filepath.Join(home, "key")
	if err := os.WriteFile(h.APIKeyFile, []byte(apiKey), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"soft": home, "hard": ""} {
		var err error
		if to != "" {
			err = os.Symlink(to, filepath.Join(project, link))
		} else {
			err = os.Link(h.APIKeyFile, filepath.Join(project, link))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		h.APIKeyFile, filepath.Join(home, ".claude/settings.json"), filepath.Join(project, ".claude/settings.local.json"),
		".claude/settings.json", "./x/../.Claude/Settings.json", filepath.Join(h.State, "held-x"), h.State, program, "soft/key", "hard",
		"soft/.claude/settings.json", ".claude", filepath.Join(home, ".claude"), "/etc/claude-code/managed-settings.json",
	} {
		for tool, arg := range map[string]string{"Write": "file_path", "Read": "file_path", "mcp__fs__write": "target"} {
			call, err := json.Marshal(map[string]any{"tool_name": tool, "cwd": project, "tool_input": map[string]string{arg: path}})
			if err != nil {
				t.Fatal(err)
			}
			if got := run(h, string(call)); got.code != 2 || !strings.HasPrefix(got.err, "writ denied this") {
				t.Errorf("%s of %s = %+v, want a deny", tool, path, got)
			}
		}
	}
	call := fmt.Sprintf(`{"tool_name":"Write","cwd":%q,"tool_input":{"file_path":"a.txt","content":"x"}}`, project)
	if got := run(h, call); got.code != 0 {
		t.Errorf("a file of the project: %+v", got)
	}
}
