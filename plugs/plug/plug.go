// Package plug has the common parts of the programs that stand in front of an agent's tools. These are the
// settings, the mapping from a call to intents, the way from intents to a decision, and the state of held
// calls.
package plug

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"writ.example/writ/internal/printable"
	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
)

// Settings has the settings of a plug.
type Settings struct {
	URL        string
	APIKey     string
	APIKeyFile string // a file with the key, if APIKey is empty
	PolicyID   string
	AgentID    string        // the default is PROGRAM/USER
	Timeout    time.Duration // of a decision
	Wait       time.Duration // how long a held call waits for its verdict, where it waits
	State      string        // a directory: see State
	Keys       string        // a file with the JWKS that receipts are verified with
	Mapping    string        // a file: see Mapping
	CA         string        // a file with authorities that the process trusts beside the system's

	SessionTTL time.Duration // how long a writ session lasts, where there are any; zero is none
}

// longest bounds the durations of settings, and longestSession that of a session, as the server does.
const (
	longest        = 10 * time.Minute
	longestSession = 7 * 24 * time.Hour
)

// idle is how many connections to the server stay open when calls come at once, of which Go keeps 2.
const idle = 100

// Check returns which settings do not fit.
func (s Settings) Check() error {
	switch {
	case s.Timeout <= 0 || s.Timeout > longest:
		return errors.New("--timeout: want a duration up to 10m, such as 5s")
	case s.Wait <= 0 || s.Wait > longest:
		return errors.New("--wait: want a duration up to 10m, such as 50s")
	case s.SessionTTL != 0 && (s.SessionTTL < time.Second || s.SessionTTL > longestSession):
		return errors.New("--session-ttl: want a duration from 1s to 168h, such as 12h")
	}
	return nil
}

// Plug decides calls with the settings that it was opened with.
type Plug struct {
	Client   *writ.Client
	Mapping  Mapping
	settings Settings
}

// Open fills in the defaults of s and makes the client. The state of a kind of plug is in a directory of
// that name, and its agent is program and the user.
func (s *Settings) Open(kind, program string) (*Plug, error) {
	if s.APIKey == "" && s.APIKeyFile != "" {
		key, err := os.ReadFile(s.APIKeyFile)
		if err != nil {
			return nil, fmt.Errorf("--api-key-file: %w", err)
		}
		if s.APIKey = strings.TrimSpace(string(key)); s.APIKey == "" {
			return nil, fmt.Errorf("--api-key-file: %s is empty", s.APIKeyFile)
		}
	}
	for _, m := range []struct{ value, flag, variable string }{
		{s.URL, "--url", "WRIT_URL"},
		{s.APIKey, "--api-key-file", "WRIT_API_KEY_FILE or WRIT_API_KEY"},
		{s.PolicyID, "--policy-id", "WRIT_POLICY_ID"},
	} {
		if m.value == "" {
			return nil, fmt.Errorf("%s is missing: set it or %s", m.flag, m.variable)
		}
	}
	if s.AgentID == "" {
		name, err := userName()
		if err != nil {
			return nil, err
		}
		s.AgentID = program + "/" + name
	}
	if s.State == "" {
		dir, err := defaultState(kind)
		if err != nil {
			return nil, err
		}
		s.State = dir
	}
	config := writ.Config{URL: s.URL, APIKey: s.APIKey, PolicyID: s.PolicyID, AgentID: s.AgentID, Timeout: s.Timeout}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxIdleConnsPerHost = idle
		config.Transport = t
	}
	if s.Keys != "" {
		keys, err := os.ReadFile(s.Keys)
		if err != nil {
			return nil, fmt.Errorf("--verify-keys: %w", err)
		}
		config.Keys = keys
	}
	m, err := readMapping(s.Mapping)
	if err != nil {
		return nil, err
	}
	client, err := writ.New(config)
	return &Plug{Client: client, Mapping: m, settings: *s}, err
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
func defaultState(kind string) (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "writ", kind), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("--state is missing, and this user has no home directory: set it or WRIT_STATE")
	}
	return filepath.Join(home, ".local", "state", "writ", kind), nil
}

// OneLine bounds a text, which may be the server's, and puts it on one line. Other characters that show
// nothing are escapes.
func OneLine(s string) string {
	s = printable.Text(strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ").Replace(s))
	if len(s) > 2000 {
		s = strings.ToValidUTF8(s[:2000], "") + "…"
	}
	return s
}

// Key is a digest of the server, the agent, the policy, the session, the call and its directory.
func (p *Plug) Key(call toolcall.Call, session string) string {
	args := make(map[string]string, len(call.Args))
	for k, v := range call.Args {
		args[k] = string(v) // number for number
	}
	text, err := json.Marshal(struct {
		URL, Agent, Policy, Session, Server, Tool, CWD string
		Args                                           map[string]string
	}{p.settings.URL, p.settings.AgentID, p.settings.PolicyID, session, call.Server(), call.Tool, call.CWD, args})
	if err != nil {
		panic(err) // texts alone
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}
