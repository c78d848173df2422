package hook

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
	writ "writ.example/writ/sdk/go"
)

// sessionDigest names a harness's session in the names of files.
func sessionDigest(harness toolcall.Harness, session string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(string(harness)+"\n"+session)))
}

func sessionName(harness toolcall.Harness, session string) string {
	return "session-" + sessionDigest(harness, session)
}

// session returns the writ session of a call's harness session. It is empty if the settings ask for none. The
// first process of a session opens it.
func (h *Hook) session(ctx context.Context, st state, call toolcall.Call) (string, error) {
	switch {
	case h.SessionTTL == 0:
		return "", nil
	case call.Session == "":
		return "", errors.New("session_id: is missing: --session-ttl wants it")
	}
	name := sessionName(call.Harness, call.Session)
	id, err := st.opened(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	ends := h.now().Add(h.SessionTTL)
	s, err := h.plug.Client.OpenSession(ctx, writ.Session{AllowedActionTypes: h.SessionActions}, h.SessionTTL)
	if err != nil {
		return "", fmt.Errorf("opening a session: %w", err)
	}
	switch err := st.Put(name, []byte(s.ID), false); {
	case errors.Is(err, fs.ErrExist): // another process was faster
		if id, err = st.opened(name); err != nil {
			return "", err
		}
		return id, h.plug.Client.CloseSession(ctx, s.ID)
	case err != nil:
		return "", errors.Join(err, h.plug.Client.CloseSession(ctx, s.ID))
	}
	return s.ID, os.Chtimes(st.Path(name), time.Time{}, ends)
}

// opened returns the writ session in a file.
func (st state) opened(name string) (string, error) {
	data, err := plug.ReadFile(st.Path(name))
	switch id := strings.TrimSpace(string(data)); {
	case err != nil:
		return "", fmt.Errorf("--state: %w", err)
	case id == "":
		return "", fmt.Errorf("--state: %s is damaged: remove it", st.Path(name))
	default:
		return id, nil
	}
}

// end closes the writ session of a harness's session that has ended.
func (h *Hook) end(ctx context.Context, data []byte) (answer, error) {
	session, err := toolcall.ParseEnd(h.Harness, data)
	if err != nil {
		return answer{}, err
	}
	st, err := openState(h.State, h.now())
	if err != nil {
		return answer{}, err
	}
	name := sessionName(h.Harness, session)
	id, err := st.opened(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // no call was decided
		return answer{out: "{}\n"}, nil
	case err != nil:
		return answer{}, err
	}
	if err := h.plug.Client.CloseSession(ctx, id); err != nil {
		return answer{}, err
	}
	return answer{out: "{}\n"}, st.Remove(name)
}
