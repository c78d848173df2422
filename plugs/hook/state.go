package hook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"writ/internal/toolcall"
	writ "writ/sdk/go"
)

// state is the directory in which the processes of a hook leave word for each other. A file appears
// whole or not at all:
//
//	held-KEY          a held call, as the JSON of a [writ.Held]: the intent as it was sent, with its approval
//	taken-KEY-RANDOM  a held call that a process redeems
//	call-ID           when a call was sent, and how it was decided
//	swept             when files older than a day were last removed
//
// KEY is a digest of the agent, the policy, the call and its directory: see Hook.key.
type state string

func openState(dir string, now time.Time) (state, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("--state: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("--state: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("--state: others may use %s: chmod 700 it", dir)
	}
	st := state(dir)
	return st, st.sweep(now)
}

func (st state) path(name string) string { return filepath.Join(string(st), name) }

const keptFor = 24 * time.Hour

// sweep removes what is older than a day. It looks once an hour.
func (st state) sweep(now time.Time) error {
	mark := st.path("swept")
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()).Abs() < time.Hour {
		return nil
	}
	entries, err := os.ReadDir(string(st))
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < keptFor || !kept(e.Name()) {
			continue // another process has removed it, or it is young or nothing of the hook's
		}
		if err := remove(st.path(e.Name())); err != nil {
			return err
		}
	}
	return st.put("swept", nil, true)
}

// kept reports whether a file is one of the hook's.
func kept(name string) bool {
	for _, prefix := range []string{"held-", "taken-", "call-", "new-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// put writes a file. Unless it may replace one, a file of that name is an error, fs.ErrExist.
func (st state) put(name string, data []byte, replace bool) error {
	f, err := os.CreateTemp(string(st), "new-") // 0600
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		if replace {
			err = os.Rename(f.Name(), st.path(name))
		} else {
			err = os.Link(f.Name(), st.path(name))
		}
	}
	if err == nil && replace {
		return nil
	}
	if gone := remove(f.Name()); err == nil {
		return gone
	}
	return fmt.Errorf("--state: %w", err)
}

// key is a digest of the server, the agent, the policy, the call and its directory.
func (h *Hook) key(call toolcall.Call) string {
	text, err := json.Marshal(struct {
		URL, Agent, Policy, Tool, CWD string
		Args                          map[string]string
	}{h.URL, h.AgentID, h.PolicyID, call.Tool, call.CWD, rawArgs(call)})
	if err != nil {
		panic(err) // texts alone
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// rawArgs returns the arguments as their JSON, number for number.
func rawArgs(call toolcall.Call) map[string]string {
	args := make(map[string]string, len(call.Args))
	for k, v := range call.Args {
		args[k] = string(v)
	}
	return args
}

// callName returns the name of a call's file. A harness that gives calls no id has one file for equal
// calls of a session.
func callName(call toolcall.Call, key string) string {
	id := call.ID
	if id == "" {
		id = key
	}
	text := strings.Join([]string{string(call.Harness), call.Session, id}, "\n")
	return fmt.Sprintf("call-%x", sha256.Sum256([]byte(text)))
}

// made is how a call was decided.
type made struct {
	IssuedAt   string `json:"issued_at"`
	DecisionID string `json:"decision_id,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
}

// issuedAt returns the time of a call's intent. A hook that is asked about a call again sends the time
// of the first time: another one would be another intent under the same id.
func (st state) issuedAt(call toolcall.Call, key string, now time.Time) (string, error) {
	m := made{IssuedAt: now.UTC().Format(time.RFC3339Nano)}
	if call.ID == "" || call.Session == "" {
		return m.IssuedAt, nil
	}
	data, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	name := callName(call, key)
	if err := st.put(name, data, false); !errors.Is(err, fs.ErrExist) {
		return m.IssuedAt, err
	}
	m, err = st.readCall(name)
	return m.IssuedAt, err
}

func (st state) note(name string, m made) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return st.put(name, data, true)
}

func (st state) readCall(name string) (m made, err error) {
	data, err := os.ReadFile(st.path(name))
	if err != nil {
		return m, fmt.Errorf("--state: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil || m.IssuedAt == "" {
		return made{}, fmt.Errorf("--state: %s is damaged: remove it", st.path(name))
	}
	return m, nil
}

// made returns how a call was decided.
func (st state) made(name string) (made, error) {
	m, err := st.readCall(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && m.DecisionID == "" {
		return made{}, errors.New("--state has no decision about this call: was it made by another hook, or a day ago?")
	}
	return m, err
}

// held returns the held call under key, or nil.
func (st state) held(key string) (*writ.Held, error) {
	h, err := readHeld(st.path("held-" + key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return h, err
}

func readHeld(path string) (*writ.Held, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	var h writ.Held
	if err := json.Unmarshal(data, &h); err != nil {
		return nil, fmt.Errorf("--state: %s is damaged: remove it: %w", path, err)
	}
	return &h, nil
}

// keep keeps a held call until it is redeemed. If an equal call is held, that one stays.
func (st state) keep(key string, h *writ.Held) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := st.put("held-"+key, data, false); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (st state) drop(key string) error { return remove(st.path("held-" + key)) }

// taken is a held call that this process alone may redeem.
type taken struct{ path, from string }

// take takes a held call. Of two processes, one gets it.
func (st state) take(key string) (*writ.Held, taken, error) {
	t := taken{path: st.path("taken-" + key + "-" + rand.Text()), from: st.path("held-" + key)}
	if err := os.Rename(t.from, t.path); errors.Is(err, fs.ErrNotExist) {
		return nil, t, errors.New("another call uses this approval")
	} else if err != nil {
		return nil, t, fmt.Errorf("--state: %w", err)
	}
	h, err := readHeld(t.path)
	return h, t, err
}

func (t taken) remove() error { return remove(t.path) }

// putBack gives a held call back, unless an equal call is held by now.
func (t taken) putBack() error {
	if err := os.Link(t.path, t.from); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--state: %w", err)
	}
	return t.remove()
}
