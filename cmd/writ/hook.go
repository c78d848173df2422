package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"github.com/alecthomas/kong"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/hook"
	"writ.example/writ/plugs/plug"
)

type hookCmd struct {
	Claude hookRunCmd `cmd:"" help:"Decide a call of a tool of Claude Code."`
	Codex  hookRunCmd `cmd:"" help:"Decide a call of a tool of Codex."`
	Gemini hookRunCmd `cmd:"" help:"Decide a call of a tool of Gemini CLI."`
	Cursor hookRunCmd `cmd:"" help:"Decide a call of a tool of Cursor."`

	Install hookInstallCmd `cmd:"" help:"Have a harness ask writ before each call of a tool."`
	Check   hookCheckCmd   `cmd:"" help:"Say whether an installed hook would block now."`
}

// plugFlags are the settings that every plug works with.
type plugFlags struct {
	URL        string `name:"url" placeholder:"URL" help:"The server."`
	APIKey     string `name:"api-key" placeholder:"KEY" help:"API key with the scopes policy:evaluate and facts:assert, and actions:record for a hook's --record. Prefer the variable or the file: a flag shows in the list of processes."`
	APIKeyFile string `name:"api-key-file" placeholder:"FILE" help:"File with the API key, if there is no --api-key."`
	PolicyID   string `placeholder:"UUID" help:"The policy that decides."`
	AgentID    string `placeholder:"ID" help:"The agent. Default: the harness and the user, such as claude/ana."`

	Timeout time.Duration `default:"5s" help:"How long a decision may take, but for --wait. A harness must wait longer for its hook."`
	Wait    time.Duration `default:"50s" help:"How long --held=wait waits."`
	State   string        `placeholder:"DIR" help:"Directory of held calls. Default: writ/hook or writ/mcp in XDG_STATE_HOME or in ~/.local/state."`
	Mapping string        `placeholder:"FILE" help:"YAML of what calls of tools are: actions, resources and costs."`

	VerifyKeys string `placeholder:"FILE" help:"JWKS with which each receipt is verified."`

	trustFlags `embed:""`
}

func (f plugFlags) settings() plug.Settings {
	return plug.Settings{
		URL: f.URL, APIKey: f.APIKey, APIKeyFile: f.APIKeyFile, PolicyID: f.PolicyID, AgentID: f.AgentID,
		Timeout: f.Timeout, Wait: f.Wait, State: f.State, Mapping: f.Mapping, Keys: f.VerifyKeys, CA: f.CA,
	}
}

// hookFlags are the settings that a hook works with.
type hookFlags struct {
	plugFlags   `embed:""`
	Held        string `default:"deny" enum:"deny,ask,wait,defer" help:"What becomes of a held call: deny blocks it, ask asks the local user (not in Codex), wait waits for the verdict, defer ends a headless Claude Code until it is resumed."`
	AutoApprove bool   `env:"-" help:"Let an allow spare the user Claude Code's own question."`

	SessionTTL     time.Duration `name:"session-ttl" placeholder:"12h" help:"Open a writ session of this length for each session of the harness, in which its calls are decided. The key needs sessions:write, too."`
	SessionActions []string      `placeholder:"TYPE,…" help:"The types of actions that such a session allows, such as shell.exec,file.**. The default is all."`

	Sources bool `env:"-" help:"State where the arguments of calls come from. Claude Code and Codex tell their hooks the user's words and what tools returned: they are kept in --state until the session ends, for a day at most."`
}

// hook returns the hook of a harness with these settings.
func (f hookFlags) hook(harness string) hook.Hook {
	h := hook.Hook{
		Harness: toolcall.Harness(harness), Settings: f.settings(), Held: f.Held, AutoApprove: f.AutoApprove,
		SessionActions: f.SessionActions, Sources: f.Sources,
	}
	h.SessionTTL = f.SessionTTL
	return h
}

type hookRunCmd struct {
	hookFlags `embed:""`
	Record    bool `env:"-" xor:"use" help:"Record a call that was made, instead of deciding one."`
	Keep      bool `env:"-" xor:"use" help:"Keep the user's words, or what a call returned, for --sources, instead of deciding a call."`
	End       bool `env:"-" xor:"use" help:"Close the writ session of a harness's session that has ended, instead of deciding a call."`
}

func (c *hookRunCmd) use() hook.Use {
	switch {
	case c.Record:
		return hook.Record
	case c.Keep:
		return hook.Keep
	case c.End:
		return hook.End
	}
	return hook.Decide
}

func (c *hookRunCmd) Help() string {
	return `Reads one call from standard input, as the harness hands it to its hooks, decides it
and answers in the harness's words. The exit code is 0 for an allow and 2, with a line
on standard error, for everything else: a deny, a held call, any failure.

A held call is kept in --state. The same call again redeems its approval, once.`
}

// asksHook reports whether a command line is a hook's and a harness seems to wait for its answer, which a
// terminal never does. Help is no answer, and a harness would let the call run.
func asksHook(args []string, in io.Reader) bool {
	if len(args) < 2 || args[0] != "hook" || toolcall.Before(toolcall.Harness(args[1])) == nil {
		return false
	}
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice == 0
}

// errBlocked means that the verb has said why a call is blocked.
var errBlocked = errors.New("blocked")

func (c *hookRunCmd) Run(ctx context.Context, s streams, k *kong.Context) error {
	ctx, stop := signal.NotifyContext(ctx, deadly...)
	defer stop()
	debug.SetGCPercent(400) // the process lives for one call
	if code := c.hook(k.Selected().Name).Run(ctx, c.use(), s.in, s.out, s.err); code != exitOK {
		return errBlocked
	}
	return nil
}
