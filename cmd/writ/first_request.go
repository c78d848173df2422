package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"writ/examples"
)

// firstExample returns an example policy and an intent that the policy allows.
func firstExample() (policy any, intent object, err error) {
	set, err := examples.Load()
	if err != nil {
		return nil, nil, err
	}
	c, in := set.Cases[0], set.Intents[0]
	return set.Policies[c.Policy], object{
		"intent_id": uuid.NewString(), "policy_id": in.PolicyID, "agent_id": in.AgentID, "action_type": in.ActionType,
		"resource": in.Resource, "cost": in.Cost, "issued_at": time.Now().UTC().Format(time.RFC3339),
	}, nil
}

// firstRequest returns a command to paste into a shell. The command mints its own token when it
// runs, so that no credential is printed.
func (n *node) firstRequest(c *serveCmd) (string, error) {
	_, intent, err := firstExample()
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(object{"policy_id": intent["policy_id"], "intent": intent}, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("encoding the first request: %w", err)
	}
	pretty := jsontext.Value(body)
	if err := pretty.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", fmt.Errorf("encoding the first request: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		self = "writ"
	}
	flag, name := "--data", string(c.Data)
	if c.OperatorSecret != "" {
		flag, name = "--operator-secret", c.OperatorSecret
	}
	if name, err = filepath.Abs(name); err != nil {
		return "", fmt.Errorf("naming what signs operators' tokens: %w", err)
	}
	return fmt.Sprintf(`curl -s %s/v1/policy/evaluate \
  -H "Authorization: Bearer $(%s token operator \
      --org %s %s %s)" \
  -H 'Content-Type: application/json' \
  -d %s`, n.url(), shellWord(self), examples.Organization, flag, shellWord(name), shellWord(string(pretty))), nil
}

// shellWord quotes s for a POSIX shell if s needs quotes.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// url returns the address at which this machine reaches the API.
func (n *node) url() string {
	host, port, err := net.SplitHostPort(n.api.Addr().String())
	if err != nil {
		return "http://" + n.api.Addr().String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
