package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/internal/freeze"
)

const harnessPolicy = "0c0ffee0-0000-4000-8000-00000000000a"

// site is a server, a home and a project for one harness.
type site struct {
	t                  *testing.T
	harness            string
	home, project, url string
	operator           string
	server             *exec.Cmd
	env                []string
}

// elsewhere matches variables by which programs look for their files, and writ for its settings.
var elsewhere = regexp.MustCompile(`^(XDG_.*|CODEX_HOME|CLAUDE_.*|WRIT_.*)$`)

// newSite starts a server that denies commands with "denied" in them, holds those with "held" and
// allows the rest, installs the hook, and returns where.
func newSite(t *testing.T, harness string, flags ...string) *site {
	bin, err := filepath.Abs("../../bin/harnesses/node_modules/.bin")
	must(t, err)
	if _, err := os.Stat(filepath.Join(bin, harness)); err != nil {
		t.Skipf("SKIPPED %s: it is not installed: run .ci/harnesses", harness)
	}
	s := newServer(t, bin)
	s.harness = harness
	key := s.post("/v1/tokens", members{
		"name": "hook", "scopes": []string{"policy:evaluate", "facts:assert", "actions:record", "sessions:write"},
		"policy_id": harnessPolicy,
	})
	install := exec.Command("writ", append([]string{"hook", "install", harness, "--yes", "--url", s.url}, flags...)...)
	install.Env = slices.Concat(s.env, []string{"WRIT_API_KEY=" + fmt.Sprint(key["token"])})
	if said, err := install.CombinedOutput(); err != nil {
		t.Fatalf("installing: %v\n%s", err, said)
	}
	return s
}

// newServer starts the server of a site. Programs are found in bin, too.
func newServer(t *testing.T, bin string) *site {
	s := &site{t: t, home: t.TempDir(), project: t.TempDir()}
	data := filepath.Join(s.home, "data")
	s.server = exec.Command("writ", "serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--data", data)
	out, err := s.server.StdoutPipe()
	must(t, err)
	must(t, s.server.Start())
	t.Cleanup(func() {
		_ = s.server.Process.Signal(syscall.SIGCONT)
		_ = s.server.Process.Kill()
		_ = s.server.Wait()
	})
	s.url = serving(t, out)
	for _, variable := range os.Environ() { // a variable that is empty is not the same as none
		if name, _, _ := strings.Cut(variable, "="); !elsewhere.MatchString(name) {
			s.env = append(s.env, variable)
		}
	}
	s.env = append(s.env,
		"HOME="+s.home, "PATH="+bin+":"+os.Getenv("PATH"),
		"ANTHROPIC_API_KEY=k", "OPENAI_API_KEY=k", "GEMINI_API_KEY=k", "IS_SANDBOX=1", "CI=true", "NO_COLOR=1",
		"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "GEMINI_CLI_TRUST_WORKSPACE=true")
	token, err := exec.Command("writ", "token", "operator", "--org", "acme", "--data", data).Output()
	must(t, err)
	s.operator = strings.TrimSpace(string(token))
	s.post("/v1/policies/register", members{"policy": members{
		"policy_id": harnessPolicy, "version": 1, "organization_id": "acme", "agent_id": "**", "allowed_action_types": []string{"**"},
		"status": "active", "updated_at": "2026-11-01T09:00:00Z",
	}})
	for word, decision := range map[string]string{"denied": "deny", "held": "approval_required"} {
		var any []members
		for _, key := range []string{"metadata.fact.arg.command", "metadata.fact.arg.target", "resource", "action_type"} {
			any = append(any, members{key: members{"$glob": "**" + word + "**"}})
		}
		condition, err := json.Marshal(members{"$or": any})
		must(t, err)
		s.post("/v1/rules", members{"name": word, "condition": string(condition), "action": `{"decision":"` + decision + `"}`})
	}
	return s
}

// serving returns the URL that a server prints.
func serving(t *testing.T, out io.Reader) string {
	found := make(chan string, 1)
	go func() {
		var all bytes.Buffer
		for buf := make([]byte, 4096); ; {
			n, err := out.Read(buf)
			all.Write(buf[:n])
			if m := regexp.MustCompile(`writ serves on (\S+);`).FindSubmatch(all.Bytes()); m != nil {
				found <- string(m[1])
				_, _ = io.Copy(io.Discard, out)
				return
			}
			if err != nil {
				found <- ""
				return
			}
		}
	}()
	select {
	case url := <-found:
		if url != "" {
			return url
		}
	case <-time.After(patience):
	}
	t.Fatal("the server does not serve")
	return ""
}

// post sends a document to the server as its operator.
func (s *site) post(path string, v any) members { return s.send(http.MethodPost, path, v) }

func (s *site) send(method, path string, v any) (answer members) {
	s.t.Helper()
	body, err := json.Marshal(v)
	must(s.t, err)
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(body))
	must(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.operator)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	defer resp.Body.Close()
	must(s.t, json.NewDecoder(resp.Body).Decode(&answer))
	if resp.StatusCode/100 != 2 {
		s.t.Fatalf("%s %s: %d %v", method, path, resp.StatusCode, answer)
	}
	return answer
}

// session runs the harness headless, with a model that asks for calls. It returns the harness's answers to them.
func (s *site) session(calls ...wanted) []string {
	s.t.Helper()
	m := newModel(s.t, calls...)
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	server, err := filepath.Abs("testdata/harnesses/mcp.js")
	must(s.t, err)
	servers, err := json.Marshal(members{
		"mcpServers": members{"files": members{"command": "node", "args": []string{server}}},
		"security":   members{"auth": members{"selectedType": "gemini-api-key"}},
	})
	must(s.t, err)
	var cmd *exec.Cmd
	switch s.harness {
	case "claude":
		cmd = exec.CommandContext(ctx, "claude", "-p", "go", "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions",
			"--mcp-config", fmt.Sprintf(`{"mcpServers":{"files":{"command":"node","args":[%q]}}}`, server))
	case "codex":
		model := "gpt-5.5" // has apply_patch, and finds MCP tools by a search
		if calls[0].mcp != "" {
			model = "gpt-5"
		}
		cmd = exec.CommandContext(ctx, "codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
			"-c", `model_provider="t"`, "-c", fmt.Sprintf(`model_providers.t={name="t",base_url="%s/v1",wire_api="responses",env_key="OPENAI_API_KEY"}`, m.URL),
			"-c", fmt.Sprintf(`mcp_servers.files={command="node",args=[%q]}`, server), "-m", model, "go")
	case "gemini":
		settings := filepath.Join(s.project, ".gemini", "settings.json")
		must(s.t, os.MkdirAll(filepath.Dir(settings), 0o700))
		must(s.t, os.WriteFile(settings, servers, 0o600))
		cmd = exec.CommandContext(ctx, "gemini", "-p", "go", "--yolo", "-m", "gemini-2.5-flash")
	}
	cmd.Path = filepath.Join("../../bin/harnesses/node_modules/.bin", s.harness)
	cmd.Path, err = filepath.Abs(cmd.Path)
	must(s.t, err)
	cmd.Err = nil
	cmd.Dir = s.project
	cmd.Env = slices.Concat(s.env, []string{"ANTHROPIC_BASE_URL=" + m.URL, "GOOGLE_GEMINI_BASE_URL=" + m.URL})
	cmd.WaitDelay = time.Second
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || len(m.heard) < len(calls) {
		s.t.Fatalf("%s: %v, it heard of %d of %d calls: %q\n%s", s.harness, err, len(m.heard), len(calls), m.heard, said)
	}
	return m.heard
}

// touch is a call that makes a file by a shell.
func touch(name string) wanted { return wanted{shell: "touch " + name} }

// made reports whether a call made its file.
func (s *site) made(name string) bool {
	_, err := os.Stat(filepath.Join(s.project, name))
	return err == nil
}

// harnesses are the harnesses that run here.
var harnesses = []string{"claude", "codex", "gemini"}

// eachHarness runs a test in each harness.
func eachHarness(t *testing.T, test func(t *testing.T, harness string)) {
	for _, harness := range harnesses {
		t.Run(harness, func(t *testing.T) {
			t.Parallel()
			test(t, harness)
		})
	}
}

// TestHarness_Decides holds that what is allowed runs, that what is denied or held does not, by a
// shell, an edit and an MCP tool, and that an approval lets one call run.
func TestHarness_Decides(t *testing.T) {
	eachHarness(t, func(t *testing.T, harness string) {
		s := newSite(t, harness, "--record")
		at := func(name string) string { return filepath.Join(s.project, name) }
		heard := s.session(
			touch("a"), touch("denied"), touch("held"),
			wanted{write: at("b")}, wanted{write: at("b-denied")},
		)
		heard = append(heard, s.session(wanted{mcp: at("c")}, wanted{mcp: at("c-denied")})...)
		for name, want := range map[string]bool{
			"a": true, "b": true, "c": true, "denied": false, "held": false, "b-denied": false, "c-denied": false,
		} {
			if s.made(name) != want {
				t.Errorf("%s: made = %t, want %t; the model heard %q", name, !want, want, heard)
			}
		}
		if !strings.Contains(heard[1], "writ denied this (decision ") {
			t.Errorf("of the deny the model heard %q", heard[1])
		}
		approval := regexp.MustCompile(`held, approval ([0-9a-f-]{36})`).FindStringSubmatch(heard[2])
		if approval == nil {
			t.Fatalf("of the held call the model heard %q", heard[2])
		}
		s.send(http.MethodPatch, "/v1/approvals/"+approval[1], members{"status": "approved"})
		s.session(touch("held"))
		if !s.made("held") {
			t.Error("the approved call did not run")
		}
		must(t, os.Remove(at("held")))
		s.session(touch("held"))
		if s.made("held") {
			t.Error("the approved call ran twice")
		}
	})
}

// TestHarness_Sessions holds that a harness's session is a writ session, which is closed at its end, and that a
// patch of several files is one action.
func TestHarness_Sessions(t *testing.T) {
	eachHarness(t, func(t *testing.T, harness string) {
		s := newSite(t, harness, "--session-ttl", "1h", "--session-actions", "file.write")
		at := func(name string) string { return filepath.Join(s.project, name) }
		calls := []wanted{{write: at("a")}, touch("b")}
		if harness == "codex" {
			and := "\n+x\n*** Add File: "
			calls = append(calls, wanted{write: at("c") + and + at("d")}, wanted{write: at("e") + and + at("f-denied")})
		}
		heard := s.session(calls...)
		for name, want := range map[string]bool{
			"a": true, "b": false, "c": harness == "codex", "d": harness == "codex", "e": false, "f-denied": false,
		} {
			if s.made(name) != want {
				t.Errorf("%s: made = %t, want %t; the model heard %q", name, !want, want, heard)
			}
		}
		if got := s.sessions(); got != "closed" {
			t.Errorf("the sessions are %q, want one that is closed", got)
		}
	})
}

// TestHarness_Fails holds that nothing runs if writ stands still, is gone or is another server, or if
// its program is gone.
func TestHarness_Fails(t *testing.T) {
	eachHarness(t, func(t *testing.T, harness string) {
		s := newSite(t, harness, "--timeout", "500ms")
		freeze.Process(t, s.server.Process)
		heard := s.session(touch("slow"))
		if s.made("slow") || !strings.Contains(heard[0], "could not decide") {
			t.Errorf("a server that stands still: made = %t, the model heard %q", s.made("slow"), heard)
		}
		must(t, s.server.Process.Kill())
		if heard := s.session(touch("dead")); s.made("dead") {
			t.Errorf("a server that is dead: made, the model heard %q", heard)
		}
		ln, err := net.Listen("tcp", strings.TrimPrefix(s.url, "http://"))
		must(t, err)
		other := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: patience}
		defer other.Close()
		go func() { _ = other.Serve(ln) }()
		if heard := s.session(touch("wrong")); s.made("wrong") {
			t.Errorf("another server: made, the model heard %q", heard)
		}
		// The hook names a program that is gone.
		s.edit(`/writ hook`, `/gone hook`)
		if harness == "codex" { // whose trust the change loses
			return
		}
		if heard := s.session(touch("gone")); s.made("gone") {
			t.Errorf("a program that is gone: made, the model heard %q", heard)
		}
	})
}

// TestHarness_ClaudeHTTP holds that Claude Code's HTTP hook decides, and blocks where there is no server.
func TestHarness_ClaudeHTTP(t *testing.T) {
	t.Parallel()
	s := newSite(t, "claude")
	key := s.post("/v1/tokens", members{
		"name": "http", "scopes": []string{"policy:evaluate", "facts:assert"}, "policy_id": harnessPolicy, "agent_id": "claude/ana",
	})
	hook := members{
		"type": "http", "url": s.url + "/v1/hooks/claude", "headers": members{"Authorization": "Bearer $WRIT_API_KEY"},
		"allowedEnvVars": []string{"WRIT_API_KEY"}, "timeout": 5, "onFailure": "block",
	}
	settings, err := json.Marshal(members{"hooks": members{"PreToolUse": []any{members{"matcher": "*", "hooks": []any{hook}}}}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(s.home, ".claude", "settings.json"), settings, 0o600))
	s.env = append(s.env, "WRIT_API_KEY="+fmt.Sprint(key["token"]))
	heard := s.session(touch("a"), touch("denied"), touch("held"))
	for name, want := range map[string]bool{"a": true, "denied": false, "held": false} {
		if s.made(name) != want {
			t.Errorf("%s: made = %t, want %t; the model heard %q", name, !want, want, heard)
		}
	}
	must(t, s.server.Process.Kill())
	if heard := s.session(touch("dead")); s.made("dead") {
		t.Errorf("a server that is dead: made, the model heard %q", heard)
	}
}

// TestHarness_ClaudeDefers holds that a deferred call of Claude Code runs when the session is resumed
// after its approval, and not before.
func TestHarness_ClaudeDefers(t *testing.T) {
	t.Parallel()
	s := newSite(t, "claude", "--held=defer")
	m := newModel(t, touch("held"))
	program, err := filepath.Abs("../../bin/harnesses/node_modules/.bin/claude")
	must(t, err)
	run := func(args ...string) (ended struct {
		Session string `json:"session_id"`
		Stop    string `json:"stop_reason"`
	}) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, append([]string{
			"-p", "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions", "--output-format", "json",
		}, args...)...)
		cmd.Dir, cmd.Env = s.project, slices.Concat(s.env, []string{"ANTHROPIC_BASE_URL=" + m.URL})
		out, err := cmd.Output()
		if err != nil || json.Unmarshal(out, &ended) != nil {
			t.Fatalf("claude: %v\n%s", err, out)
		}
		return ended
	}
	ended := run("go")
	if ended.Stop != "tool_deferred" || s.made("held") {
		t.Fatalf("the run ended with %+v, made = %t", ended, s.made("held"))
	}
	if again := run("--resume", ended.Session); again.Stop != "tool_deferred" || s.made("held") {
		t.Fatalf("resumed before the approval, the run ended with %+v, made = %t", again, s.made("held"))
	}
	pending, _ := s.send(http.MethodGet, "/v1/approvals?status=pending", nil)["data"].([]any)
	if len(pending) != 1 {
		t.Fatalf("%v is pending, want one", pending)
	}
	held, _ := pending[0].(members)
	s.send(http.MethodPatch, "/v1/approvals/"+fmt.Sprint(held["approval_id"]), members{"status": "approved"})
	if run("--resume", ended.Session); !s.made("held") {
		t.Error("resumed after the approval, the call did not run")
	}
}

// edit changes the harness's settings.
func (s *site) edit(from, to string) {
	name := map[string]string{"claude": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}[s.harness]
	name = filepath.Join(s.home, name)
	text, err := os.ReadFile(name)
	must(s.t, err)
	must(s.t, os.WriteFile(name, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o600))
}

// TestHarness_CodexTrust holds that the check finds a hook which Codex does not trust, and so does not run.
func TestHarness_CodexTrust(t *testing.T) {
	t.Parallel()
	s := newSite(t, "codex")
	check := func() error {
		cmd := exec.Command("writ", "hook", "check", "codex")
		cmd.Env = s.env
		return cmd.Run()
	}
	must(t, check())
	s.edit(`"timeout": 10`, `"timeout": 11`)
	if check() == nil {
		t.Error("the check finds nothing wrong with a hook that Codex does not run")
	}
	s.session(touch("denied"))
	if !s.made("denied") {
		t.Log("Codex blocks calls while a hook is not trusted: docs/hook.md says that it does not")
	}
}
