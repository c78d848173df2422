package hook

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
)

// state has a file for each call, beside the held calls.
type state struct{ plug.State }

func openState(dir string, now time.Time) (state, error) {
	st, err := plug.OpenState(dir, now)
	return state{st}, err
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
	IssuedAt    string   `json:"issued_at"`
	DecisionIDs []string `json:"decision_ids,omitempty"`
	Outcome     string   `json:"outcome,omitempty"`
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
	if err := st.Put(name, data, false); !errors.Is(err, fs.ErrExist) {
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
	return st.Put(name, data, true)
}

func (st state) readCall(name string) (m made, err error) {
	data, err := plug.ReadFile(st.Path(name))
	if err != nil {
		return m, fmt.Errorf("--state: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil || m.IssuedAt == "" {
		return made{}, fmt.Errorf("--state: %s is damaged: remove it", st.Path(name))
	}
	return m, nil
}

// made returns how a call was decided.
func (st state) made(name string) (made, error) {
	m, err := st.readCall(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(m.DecisionIDs) == 0 {
		return made{}, errors.New("--state has no decision about this call: was it made by another hook, or a day ago?")
	}
	return m, err
}
