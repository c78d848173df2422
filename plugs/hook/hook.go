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
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
)

// Hook has the settings of a hook. Its Timeout bounds the whole process, but for Wait.
type Hook struct {
	plug.Settings
	Harness     toolcall.Harness
	Held        string // HeldDeny, HeldAsk, HeldWait or HeldDefer
	AutoApprove bool   // an allow spares the user the harness's own question
	// SessionActions narrows writ sessions to these types of actions, if it is not empty.
	SessionActions []string
	// Sources states where the arguments of calls come from. The user's words and what tools returned are kept in
	// the state until the session ends.
	Sources bool

	plug *plug.Plug
	now  func() time.Time
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

// Use is what a process of a hook is for.
type Use string

// The uses of a hook, and their flags.
const (
	Decide Use = ""         // a call that is about to be made is decided
	Record Use = "--record" // a call that was made is recorded
	End    Use = "--end"    // the writ session of a harness's session is closed, and its sources are erased
	Keep   Use = "--keep"   // the user's words, or what a call returned, are kept
)

// Run reads what the harness says, does what the process is for, and returns its exit code.
func (h Hook) Run(ctx context.Context, use Use, in io.Reader, out, errw io.Writer) int {
	limit := h.Timeout
	if h.Held == HeldWait && use == Decide {
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
		done <- h.answer(ctx, use, in)
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
	why := plug.OneLine(strings.TrimPrefix(tlsfiles.Advise(err).Error(), "writ: "))
	return answer{code: blocked, err: "writ could not decide: " + why}
}

func (h Hook) answer(ctx context.Context, use Use, in io.Reader) answer {
	// Bytes beyond the limit make the call too long, not shorter.
	data, err := io.ReadAll(io.LimitReader(in, toolcall.MaxInput+1))
	if err != nil {
		return undecided(fmt.Errorf("reading the call: %w", err))
	}
	if err := h.open(); err != nil {
		return undecided(err)
	}
	if string(bytes.TrimSpace(data)) == probe {
		return h.answerProbe(ctx, use)
	}
	var a answer
	switch use {
	case Keep:
		a, err = h.keep(data)
	case Record:
		if h.Sources {
			_, err = h.keep(data)
		}
		if err == nil {
			a, err = h.record(ctx, data)
		}
	case End:
		if err = h.forget(data); err == nil {
			a, err = h.end(ctx, data)
		}
	default:
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
	case h.Held == HeldAsk && h.Harness == toolcall.Codex:
		return errors.New("--held=ask: Codex runs a call that its hook asks about: want deny or wait")
	case h.Held == HeldDefer && h.Harness != toolcall.Claude:
		return errors.New("--held=defer: only Claude Code defers a call: want deny, ask or wait")
	case h.AutoApprove && h.Harness != toolcall.Claude:
		return errors.New("--auto-approve: only Claude Code has it")
	case h.Sources && toolcall.Prompt(h.Harness) == "":
		return errors.New("--sources: only Claude Code and Codex tell a hook the user's words")
	case len(h.SessionActions) > 0 && h.SessionTTL == 0:
		return errors.New("--session-actions wants --session-ttl, such as 12h")
	}
	return h.Settings.Check()
}

// open fills in the defaults and makes the client.
func (h *Hook) open() (err error) {
	h.now = time.Now
	if err := h.Check(); err != nil {
		return err
	}
	h.plug, err = h.Open("hook", string(h.Harness))
	return err
}
