package hook

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// codexHook is a hook as Codex lists it.
type codexHook struct {
	Key         string `json:"key"`
	Event       string `json:"eventName"`
	Command     string `json:"command"`
	Source      string `json:"sourcePath"`
	Enabled     bool   `json:"enabled"`
	CurrentHash string `json:"currentHash"`
	TrustStatus string `json:"trustStatus"`
}

func (h codexHook) runs() bool {
	return h.Enabled && (h.TrustStatus == "trusted" || h.TrustStatus == "managed")
}

// byHand is what to do where Codex cannot be asked.
const byHand = "start codex, enter /hooks and trust the hook of writ; " +
	"until then Codex makes every call without asking it"

// Trust has Codex trust the hook, which it would not run otherwise, and reads back whether it does.
func (i Installation) Trust(ctx context.Context) error {
	err := i.inCodex(ctx, func(c *codexServer, hooks []codexHook) error {
		trust := make(map[string]any)
		for _, h := range hooks {
			if !h.runs() {
				trust[h.Key] = map[string]any{"enabled": true, "trusted_hash": h.CurrentHash}
			}
		}
		if len(trust) == 0 {
			return nil
		}
		edit := map[string]any{"keyPath": "hooks.state", "value": trust, "mergeStrategy": "upsert"}
		if err := c.call("config/batchWrite", map[string]any{"edits": []any{edit}}, nil); err != nil {
			return err
		}
		hooks, err := c.hooks(i)
		return errors.Join(err, trusted(hooks))
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, byHand)
	}
	return nil
}

// trusted says which hook Codex does not run.
func trusted(hooks []codexHook) error {
	for _, h := range hooks {
		if !h.runs() {
			return fmt.Errorf("the hook %s is not run by Codex: it is %s", h.Key, h.TrustStatus)
		}
	}
	return nil
}

// inCodex runs f with Codex's server and its list of writ's hooks of the file, of which there is one
// for each event.
func (i Installation) inCodex(ctx context.Context, f func(*codexServer, []codexHook) error) (err error) {
	c, err := startCodex(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	hooks, err := c.hooks(i)
	if err != nil {
		return err
	}
	return f(c, hooks)
}

// codexServer is a process of codex app-server, which speaks JSON-RPC in lines.
type codexServer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

func startCodex(ctx context.Context) (*codexServer, error) {
	cmd := exec.CommandContext(ctx, "codex", "app-server")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting codex app-server: %w", err)
	}
	c := &codexServer{cmd: cmd, in: in, out: bufio.NewReader(out)}
	err = c.call("initialize", map[string]any{
		"clientInfo":   map[string]string{"name": "writ", "version": "1"},
		"capabilities": map[string]bool{"experimentalApi": true},
	}, nil)
	if err == nil {
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"initialized"}`+"\n")
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// stop ends the process. Its exit code says nothing about the answers.
func (c *codexServer) stop() error {
	err := c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait()
	return err
}

func (c *codexServer) call(method string, params, result any) error {
	c.id++
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if _, err := c.in.Write(append(request, '\n')); err != nil {
		return fmt.Errorf("codex app-server: %s: %w", method, err)
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("codex app-server: %s: %w", method, err)
		}
		var answer struct {
			ID     *int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		switch err := json.Unmarshal(line, &answer); {
		case err != nil:
			return fmt.Errorf("codex app-server: %s: %w", method, err)
		case answer.ID == nil || *answer.ID != c.id:
			continue // a notification
		case answer.Error != nil:
			return fmt.Errorf("codex app-server: %s: %s", method, answer.Error.Message)
		case result == nil:
			return nil
		}
		if err := json.Unmarshal(answer.Result, result); err != nil {
			return fmt.Errorf("codex app-server: %s: %w", method, err)
		}
		return nil
	}
}

// hooks returns writ's hooks of the installation's file, as Codex sees them.
func (c *codexServer) hooks(i Installation) ([]codexHook, error) {
	file, err := i.File()
	if err != nil {
		return nil, err
	}
	dir := i.Project
	if dir == "" {
		dir = "/"
	}
	var list struct {
		Data []struct{ Hooks []codexHook }
	}
	if err := c.call("hooks/list", map[string]any{"cwds": []string{dir}}, &list); err != nil {
		return nil, err
	}
	var own []codexHook
	for _, d := range list.Data {
		for _, h := range d.Hooks {
			if real(h.Source) == real(file) && i.isWrit(h.Command) {
				own = append(own, h)
			}
		}
	}
	if !slices.ContainsFunc(own, func(h codexHook) bool { return strings.EqualFold(h.Event, "preToolUse") }) {
		return nil, fmt.Errorf("the hook in %s is not seen by Codex: is the project trusted, are hooks on?", file)
	}
	return own, nil
}
