package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
	writ "writ.example/writ/sdk/go"
)

// The probe is what [Installation.Check] hands to an installed hook. It is no call, so the hook blocks
// it, and says ready if it would decide.
const (
	probe = `{"hook_event_name":"writ hook check"}`
	ready = "writ hook check: ready"
)

// answerProbe answers the probe. It blocks in any case.
func (h *Hook) answerProbe(ctx context.Context, use Use) answer {
	if _, err := openState(h.State, h.now()); err != nil {
		return undecided(err)
	}
	if err := h.usable(ctx, use); err != nil {
		return undecided(err)
	}
	return answer{code: blocked, err: ready}
}

// usable says why the server would not decide with these settings.
func (h *Hook) usable(ctx context.Context, use Use) error {
	own, err := h.plug.Client.Credential(ctx)
	if err != nil {
		return err
	}
	return h.may(own, use)
}

// may says why a key does not do for a use.
func (h *Hook) may(own writ.Credential, use Use) error {
	var need []string
	switch {
	case use == Record:
		need = []string{"actions:record"}
	case use == Keep:
	case use == End:
		need = []string{"sessions:write"}
	case h.SessionTTL > 0:
		need = []string{"policy:evaluate", "facts:assert", "sessions:write"}
	default:
		need = []string{"policy:evaluate", "facts:assert"}
	}
	for _, scope := range need {
		if !slices.Contains(own.Scopes, scope) {
			return fmt.Errorf("the key lacks the scope %s", scope)
		}
	}
	if own.PolicyID != "" && !strings.EqualFold(own.PolicyID, h.PolicyID) {
		return fmt.Errorf("--policy-id: the key is bound to the policy %s", own.PolicyID)
	}
	return nil
}

// Fill fills in the policy that the key is bound to, and checks that the key may do what the hook needs.
func (i *Installation) Fill(ctx context.Context) error {
	h := &i.Hook
	given := h.PolicyID
	if given == "" {
		h.PolicyID = "none" // so that it is not missing yet
	}
	state, agent := h.State, h.AgentID
	err := h.open()
	h.PolicyID, h.State, h.AgentID = given, state, agent // the hook has its defaults itself
	if err != nil {
		return err
	}
	own, err := h.plug.Client.Credential(ctx)
	if err != nil {
		return err
	}
	if h.PolicyID == "" {
		h.PolicyID = own.PolicyID
	}
	if h.PolicyID == "" {
		return errors.New("--policy-id is missing, and the key is bound to no policy: say which policy decides")
	}
	err = h.may(own, Decide)
	if i.Record && err == nil {
		err = h.may(own, Record)
	}
	return err
}

// Check returns nil if the hook of the settings would block a call now that the server denies.
func (i Installation) Check(ctx context.Context) error {
	file, err := i.File()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("no hook is installed: %w", err)
	}
	var settings struct {
		DisableAllHooks bool                         `json:"disableAllHooks"`
		HooksConfig     struct{ Enabled *bool }      `json:"hooksConfig"`
		Hooks           map[string][]json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal(data, &settings); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if settings.DisableAllHooks || settings.HooksConfig.Enabled != nil && !*settings.HooksConfig.Enabled {
		return fmt.Errorf("%s: hooks are switched off", file)
	}
	probed := make(map[string]bool)
	for _, event := range toolcall.Before(i.Hook.Harness) {
		command, err := i.installed(settings.Hooks[event])
		if err != nil {
			return fmt.Errorf("%s: hooks.%s: %w", file, event, err)
		}
		if probed[command] {
			continue
		}
		probed[command] = true
		if err := i.probe(ctx, command); err != nil {
			return fmt.Errorf("%s: hooks.%s: %w", file, event, err)
		}
	}
	if i.Hook.Harness == toolcall.Codex {
		return i.inCodex(ctx, func(_ *codexServer, hooks []codexHook) error { return trusted(hooks) })
	}
	return nil
}

// installed returns the command of an event's hook.
func (i Installation) installed(entries []json.RawMessage) (string, error) {
	for _, e := range entries {
		for _, command := range commandsOf(e) {
			if !i.isWrit(command) || strings.Contains(command, string(Record)) ||
				strings.Contains(command, string(End)) || strings.Contains(command, string(Keep)) {
				continue
			}
			switch {
			case !strings.HasSuffix(command, guard):
				return "", fmt.Errorf("the command does not end with%s: a missing program would let calls run", guard)
			case i.Hook.Harness == toolcall.Claude && !bytes.Contains(e, []byte(`"onFailure"`)):
				return "", errors.New(`onFailure is missing: want "block"`)
			case i.Hook.Harness == toolcall.Cursor && !bytes.Contains(e, []byte(`"failClosed"`)):
				return "", errors.New("failClosed is missing: want true")
			}
			return command, nil
		}
	}
	return "", errors.New("no hook of writ is installed")
}

// probe runs an installed command as the harness does.
func (i Installation) probe(ctx context.Context, command string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = i.Project
	cmd.Stdin = strings.NewReader(probe)
	said, err := cmd.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return errors.New("the command allows what is no call")
	case !errors.As(err, &exit) || exit.ExitCode() != blocked:
		return fmt.Errorf("the command does not block: it ends with %w: %s", err, plug.OneLine(string(said)))
	case !bytes.HasPrefix(said, []byte(ready+"\n")):
		return fmt.Errorf("every call is blocked: %s", plug.OneLine(strings.TrimSpace(string(said))))
	}
	return nil
}
