// Package hook decides the calls of tools that an agent's program makes: Claude Code, Codex, Gemini
// CLI and Cursor run writ hook before each call.
//
// A harness lets a call run if its hook exits with 1, is too slow or writes what the harness cannot
// read, and some do if the hook exits with 2 and says nothing. So whatever happens, [Hook.Run] returns
// 2 and writes a line to standard error, unless the call is allowed or the user asked for another way
// of holding it.
package hook

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"writ/internal/toolcall"
	writ "writ/sdk/go"
)

// Hook has the settings of a hook. Empty texts that have a variable are replaced by package writ.
type Hook struct {
	Harness     toolcall.Harness
	URL         string
	APIKey      string
	APIKeyFile  string // a file with the key, if APIKey is empty
	PolicyID    string
	AgentID     string        // the default is HARNESS/USER
	Timeout     time.Duration // of the whole process, but for Wait
	Held        string        // Deny, Ask, Wait or Defer
	Wait        time.Duration // how long HeldWait waits for a verdict
	State       string        // a directory: see state
	Keys        string        // a file with the JWKS that receipts are verified with
	Mapping     string        // a file: see mapping
	AutoApprove bool          // an allow spares the user the harness's own question

	client  *writ.Client
	mapping mapping
	now     func() time.Time
}

// Ways to answer about a held call.
const (
	HeldDeny  = "deny"  // the call is blocked
	HeldAsk   = "ask"   // the harness asks the local user, which is no approval
	HeldWait  = "wait"  // the hook waits for the verdict
	HeldDefer = "defer" // the harness ends, and asks again when it is resumed
)

// answer is what the process answers with.
type answer struct {
	code     int
	out, err string
}

const blocked = 2 // the exit code that blocks a call

// Run decides the call that it reads, or records it if record is set, and returns the exit code of the process.
func (h Hook) Run(ctx context.Context, record bool, in io.Reader, out, errw io.Writer) int {
	limit := h.Timeout
	if h.Held == HeldWait && !record {
		limit += h.Wait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("there was no decision within %v", limit))
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- undecided(fmt.Errorf("a defect of writ: %v", r))
			}
		}()
		done <- h.answer(ctx, record, in)
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		a = undecided(context.Cause(ctx))
	}
	if _, err := io.WriteString(out, a.out); err != nil {
		a = undecided(fmt.Errorf("writing the answer: %w", err))
	}
	if a.err != "" {
		fmt.Fprintln(errw, a.err)
	}
	return a.code
}

// undecided is the answer where there is no decision.
func undecided(err error) answer {
	return answer{code: blocked, err: "writ could not decide: " + oneLine(strings.TrimPrefix(err.Error(), "writ: "))}
}

// oneLine bounds a text, which may be the server's, and takes line ends and control characters out of it.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > 2000 {
		s = strings.ToValidUTF8(s[:2000], "") + "…"
	}
	return s
}

func (h Hook) answer(ctx context.Context, record bool, in io.Reader) answer {
	// Bytes beyond the limit make the call too long, not shorter.
	data, err := io.ReadAll(io.LimitReader(in, toolcall.MaxInput+1))
	if err != nil {
		return undecided(fmt.Errorf("reading the call: %w", err))
	}
	if err := h.open(); err != nil {
		return undecided(err)
	}
	if string(bytes.TrimSpace(data)) == probe {
		return h.answerProbe(ctx, record)
	}
	var a answer
	if record {
		a, err = h.record(ctx, data)
	} else {
		a, err = h.decide(ctx, data)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return undecided(context.Cause(ctx))
	case err != nil:
		return undecided(err)
	}
	return a
}

// Check returns which settings do not fit together.
func (h Hook) Check() error {
	switch {
	case h.Timeout <= 0 || h.Timeout > 10*time.Minute:
		return errors.New("--timeout: want a duration up to 10m, such as 5s")
	case h.Wait <= 0 || h.Wait > 10*time.Minute:
		return errors.New("--wait: want a duration up to 10m, such as 50s")
	case h.Held == HeldAsk && h.Harness == toolcall.Codex:
		return errors.New("--held=ask: Codex runs a call that its hook asks about: want deny or wait")
	case h.Held == HeldDefer && h.Harness != toolcall.Claude:
		return errors.New("--held=defer: only Claude Code defers a call: want deny, ask or wait")
	case h.AutoApprove && h.Harness != toolcall.Claude:
		return errors.New("--auto-approve: only Claude Code has it")
	}
	return nil
}

// open fills in the defaults and makes the client.
func (h *Hook) open() (err error) {
	h.now = time.Now
	if err := h.Check(); err != nil {
		return err
	}
	if h.APIKey == "" && h.APIKeyFile != "" {
		key, err := os.ReadFile(h.APIKeyFile)
		if err != nil {
			return fmt.Errorf("--api-key-file: %w", err)
		}
		if h.APIKey = strings.TrimSpace(string(key)); h.APIKey == "" {
			return fmt.Errorf("--api-key-file: %s is empty", h.APIKeyFile)
		}
	}
	for _, s := range []struct{ value, flag, variable string }{
		{h.URL, "--url", "WRIT_URL"},
		{h.APIKey, "--api-key-file", "WRIT_API_KEY_FILE or WRIT_API_KEY"},
		{h.PolicyID, "--policy-id", "WRIT_POLICY_ID"},
	} {
		if s.value == "" {
			return fmt.Errorf("%s is missing: set it or %s", s.flag, s.variable)
		}
	}
	if h.AgentID == "" {
		name, err := userName()
		if err != nil {
			return err
		}
		h.AgentID = string(h.Harness) + "/" + name
	}
	if h.State == "" {
		dir, err := defaultState()
		if err != nil {
			return err
		}
		h.State = dir
	}
	config := writ.Config{URL: h.URL, APIKey: h.APIKey, PolicyID: h.PolicyID, AgentID: h.AgentID, Timeout: h.Timeout}
	if h.Keys != "" {
		keys, err := os.ReadFile(h.Keys)
		if err != nil {
			return fmt.Errorf("--verify-keys: %w", err)
		}
		config.Keys = keys
	}
	if h.mapping, err = readMapping(h.Mapping); err != nil {
		return err
	}
	h.client, err = writ.New(config)
	return err
}

func userName() (string, error) {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username, nil
	}
	if name := cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME")); name != "" {
		return name, nil
	}
	return "", errors.New("--agent-id is missing, and this user has no name: set it or WRIT_AGENT_ID")
}

// defaultState is where a user's programs keep their state by the XDG Base Directory Specification.
func defaultState() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ", "hook"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("--state is missing, and this user has no home directory: set it or WRIT_STATE")
	}
	return filepath.Join(home, ".local", "state", "writ", "hook"), nil
}
