package plug

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	writ "writ.example/writ/sdk/go"
)

// State is the directory in which the processes of a plug leave word for each other. A file appears
// whole or not at all:
//
//	held-KEY          a held call: its intents as they were sent, with their approvals
//	taken-KEY-RANDOM  a held call that a process redeems
//	call-ID           of a hook: when a call was sent, and how it was decided
//	session-ID        of a hook: the writ session of a harness's session. It is a day old a day after its end
//	sources-ID-NAME   of a hook: the user's words and what tools returned in a harness's session
//	swept             when files older than a day were last removed
//
// KEY is [Plug.Key].
type State string

// kept is a held call. An intent of its batch that is not held itself is in Others.
type kept struct {
	Held   []*writ.Held  `json:"held"`
	Others []writ.Intent `json:"others,omitempty"`
}

// OpenState opens the state in dir, which others must not be able to use.
func OpenState(dir string, now time.Time) (State, error) {
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
	st := State(dir)
	return st, st.sweep(now)
}

// Path returns the path of a file.
func (st State) Path(name string) string { return filepath.Join(string(st), name) }

const keptFor = 24 * time.Hour

// sweep removes what is older than a day. It looks once an hour.
func (st State) sweep(now time.Time) error {
	mark := st.Path("swept")
	if info, err := os.Stat(mark); err == nil && now.Sub(info.ModTime()).Abs() < time.Hour {
		return nil
	}
	entries, err := os.ReadDir(string(st))
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < keptFor || !ours(e.Name()) {
			continue // another process has removed it, or it is young or nothing of a plug's
		}
		if err := st.Remove(e.Name()); err != nil {
			return err
		}
	}
	return st.Put("swept", nil, true)
}

// ours reports whether a file is one of a plug's.
func ours(name string) bool {
	for _, prefix := range []string{"held-", "taken-", "call-", "session-", "sources-", newFile} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Remove removes a file, if it is there.
func (st State) Remove(name string) error { return remove(st.Path(name)) }

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// Put writes a file. Unless it may replace one, a file of that name is an error, fs.ErrExist.
func (st State) Put(name string, data []byte, replace bool) error {
	if err := WriteFile(st.Path(name), data, 0o600, replace); err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}

// held returns the held call under key, or nil.
func (st State) held(key string) (*kept, error) {
	h, err := readHeld(st.Path("held-" + key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return h, err
}

func readHeld(path string) (*kept, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	var h kept
	if err := json.Unmarshal(data, &h); err != nil || len(h.Held) == 0 || slices.Contains(h.Held, nil) {
		return nil, fmt.Errorf("--state: %s is damaged: remove it", path)
	}
	return &h, nil
}

// keep keeps a held call until it is redeemed. If an equal call is held, that one stays.
func (st State) keep(key string, h *kept) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := st.Put("held-"+key, data, false); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (st State) drop(key string) error { return st.Remove("held-" + key) }

// taken is a held call that this process alone may redeem.
type taken struct{ path, from string }

// take takes a held call. Of two processes, one gets it.
func (st State) take(key string) (*kept, taken, error) {
	t := taken{path: st.Path("taken-" + key + "-" + rand.Text()), from: st.Path("held-" + key)}
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
