package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"writ/api"
	"writ/examples"
)

// greet runs the demo if it is asked for, and tells a first user what was made
// and how to evaluate an intent.
func (n *node) greet(ctx context.Context, c *serveCmd, out io.Writer) error {
	if c.Demo {
		err := n.demo(ctx, out)
		switch {
		case errors.Is(err, errReported) && !n.first:
			fmt.Fprintf(out,
				"What the organization %s holds has changed since its first start, and so its decisions have.\n"+
					"A new --data directory shows the examples as they are.\n", examples.Organization)
		case err != nil:
			return fmt.Errorf("demo: %w", err)
		}
	}
	if n.first {
		fmt.Fprintf(out, "\nFirst start: made these keys, which you alone can read:\n  %s  signs receipts\n",
			c.Data.SigningKey())
		if c.OperatorSecret == "" {
			fmt.Fprintf(out, "  %s  signs operators' tokens\n", c.Data.OperatorSecret())
		}
		if c.OperatorAlg == "HS256" && !c.Demo {
			if err := n.registerFirst(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(out, "\nwrit serves on %s; metrics and readiness on http://%s\n", n.url(), n.admin.Addr())
	if (n.first || c.Demo) && c.OperatorAlg == "HS256" {
		curl, err := n.firstRequest(c)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nThree things to try:\n\n"+
			"1. Open %s/openapi in a browser: every endpoint, to read and to call.\n"+
			"2. Write a rule of your own and see what it changes: writ eval --help, writ check --help.\n"+
			"3. Evaluate an intent:\n\n%s\n\n", n.url(), curl)
	}
	return nil
}

// registerFirst registers the policy that the first request is evaluated by.
func (n *node) registerFirst(ctx context.Context) error {
	token, err := api.SignOperatorToken(n.secret, examples.Organization, "first-start", time.Now(), time.Minute)
	if err != nil {
		return err
	}
	p, _, err := firstExample()
	if err != nil {
		return err
	}
	err = newClient(n.url(), token).Do(ctx, http.MethodPost, "/v1/policies/register", object{"policy": p}, nil)
	if err != nil {
		return fmt.Errorf("registering the first policy: %w", err)
	}
	return nil
}

// firstExample returns a policy and an intent that it allows.
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

// firstRequest returns a command to paste into a shell. It mints its token when
// it runs, so that no credential is printed.
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

// shellWord quotes s for a POSIX shell, where that is needed.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// url returns the address of the API as this machine reaches it.
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
