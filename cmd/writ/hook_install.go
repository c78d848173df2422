package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/hook"
)

// hookPlace says whose settings a hook is in.
type hookPlace struct {
	Harness string `arg:"" enum:"claude,codex,gemini,cursor" help:"claude, codex, gemini or cursor."`
	User    bool   `env:"-" xor:"place" help:"In the user's own settings, the default."`
	Project bool   `env:"-" xor:"place" help:"In the settings of the project in this directory."`
}

func (p hookPlace) installation(h hook.Hook, record bool) (i hook.Installation, err error) {
	i = hook.Installation{Hook: h, Record: record}
	i.Hook.Harness = toolcall.Harness(p.Harness)
	if i.Program, err = os.Executable(); err != nil {
		return i, err
	}
	if p.Project {
		i.Project, err = os.Getwd()
	}
	return i, err
}

type hookInstallCmd struct {
	hookPlace `embed:""`
	hookFlags `embed:""`
	Record    bool `env:"-" help:"Record the calls that were made, too."`
	Yes       bool `env:"-" help:"Write without asking."`
	Managed   bool `env:"-" help:"Print the managed settings of Claude Code or the requirements.toml of Codex, by which an administrator installs the hook for everybody, and write nothing."`
}

func (c *hookInstallCmd) Help() string {
	return `Shows how the harness's settings change, asks, and writes them. Everything else stays.
Installed again, nothing changes. The policy is the one that the key is bound to, unless
--policy-id says another one. The key goes into a file of its own, which you alone can read.

Codex runs no hook that it does not trust, so it is asked to trust this one.

  writ hook install claude
  writ hook check claude`
}

func (c *hookInstallCmd) Run(ctx context.Context, s streams) error {
	i, err := c.installation(c.hook(c.Harness), c.Record)
	if err != nil {
		return err
	}
	if c.Managed && c.APIKeyFile == "" {
		return &usageError{"--managed wants --api-key-file: a file that the users' harnesses can read"}
	}
	if err := i.Fill(ctx); err != nil {
		return err
	}
	changes, err := c.keyFile(&i)
	if err != nil {
		return err
	}
	if c.Managed {
		text, err := i.Managed()
		fmt.Fprint(s.out, text)
		return err
	}
	settings, err := i.Plan()
	if err != nil {
		return err
	}
	if settings.Changes() {
		fmt.Fprintf(s.out, "%s", settings.Diff())
		changes = append(changes, settings)
	}
	if len(changes) > 0 && !c.Yes && !agreed(s) {
		return errors.New("nothing was written")
	}
	for _, change := range changes {
		if err := change.Write(); err != nil {
			return err
		}
		s.say("wrote %s", change.File)
	}
	if i.Hook.Harness == toolcall.Codex {
		if err := i.Trust(ctx); err != nil {
			return err
		}
		s.say("Codex trusts the hook")
	}
	if err := i.Check(ctx); err != nil {
		return err
	}
	s.say("%s asks writ before each call of a tool", c.Harness)
	return nil
}

// keyFile puts a key that is in no file into one.
func (c *hookInstallCmd) keyFile(i *hook.Installation) ([]hook.Change, error) {
	dir, err := os.UserConfigDir()
	if i.Hook.APIKeyFile != "" || err != nil {
		i.Hook.APIKeyFile, err = filepath.Abs(i.Hook.APIKeyFile)
		return nil, err
	}
	i.Hook.APIKeyFile = filepath.Join(dir, "writ", c.Harness+".key")
	before, _ := os.ReadFile(i.Hook.APIKeyFile) // if it cannot be read it is written, or that fails
	change := hook.Change{File: i.Hook.APIKeyFile, Before: before, After: []byte(i.Hook.APIKey + "\n")}
	if bytes.Equal(change.Before, change.After) {
		return nil, nil
	}
	return []hook.Change{change}, nil
}

// agreed asks the user.
func agreed(s streams) bool {
	fmt.Fprint(s.err, "Write this? [y/N] ")
	line, _ := bufio.NewReader(s.in).ReadString('\n')
	return strings.EqualFold(strings.TrimSpace(line), "y") || strings.EqualFold(strings.TrimSpace(line), "yes")
}

type hookCheckCmd struct {
	hookPlace `embed:""`
}

func (c *hookCheckCmd) Help() string {
	return `Exits 0 if the installed hook would block now: its program is there, the server answers,
the key works, and Codex trusts the hook. Otherwise it says what is wrong and exits 1.`
}

func (c *hookCheckCmd) Run(ctx context.Context, s streams) error {
	i, err := c.installation(hook.Hook{}, false)
	if err != nil {
		return err
	}
	if err := i.Check(ctx); err != nil {
		return err
	}
	s.say("%s asks writ before each call of a tool", c.Harness)
	return nil
}
