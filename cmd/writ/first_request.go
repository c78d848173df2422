package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"writ.example/writ/examples"
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

// firstRequest returns commands to paste into a shell. They mint their own token when they run, so
// that no credential is printed. Without --demo the first one registers the policy.
func (n *node) firstRequest(c *serveCmd) (string, error) {
	policy, intent, err := firstExample()
	if err != nil {
		return "", err
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
	curl := func(options, path string, body object) string {
		data, invalid := json.Marshal(body, json.Deterministic(true))
		pretty := jsontext.Value(data)
		err = errors.Join(err, invalid, pretty.Indent(jsontext.WithIndent("  ")))
		return fmt.Sprintf(`curl %s %s%s \
  -H "Authorization: Bearer $(%s token operator \
      --org %s %s %s)" \
  -H 'Content-Type: application/json' \
  -d %s`, options, n.url(), path, shellWord(self), examples.Organization, flag, shellWord(name),
			shellWord(string(pretty)))
	}
	text := curl("-s", "/v1/policy/evaluate", object{"policy_id": intent["policy_id"], "intent": intent})
	if !c.Demo {
		text = curl("-sf -o /dev/null", "/v1/policies/register", object{"policy": policy}) + "\n\n" + text
	}
	if err != nil {
		return "", fmt.Errorf("encoding the first request: %w", err)
	}
	return text, nil
}

// shellWord quotes s for a POSIX shell if s needs quotes.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
