package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"writ/api"
	"writ/authoring/workspace"
	"writ/engine"
	"writ/examples"
	"writ/storage/datadir"
	"writ/storage/receipt"
)

type demoCmd struct{}

func (c *demoCmd) Help() string {
	return `Starts a server on a free port with everything in a temporary directory,
registers the policies and rules of examples/, evaluates each sample intent over
HTTP, and verifies each receipt offline. Exits 0 only when every decision is the
expected one and every receipt verifies.`
}

func (c *demoCmd) Run(ctx context.Context, s streams) (err error) {
	dir, err := os.MkdirTemp("", "writ-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	cfg, err := defaultServe()
	if err != nil {
		return err
	}
	cfg.Addr, cfg.AdminAddr, cfg.Data = "127.0.0.1:0", "127.0.0.1:0", datadir.Dir(dir)
	n, err := openNode(ctx, cfg, s.err, slog.LevelWarn, nil)
	if err != nil {
		return err
	}
	stopped := make(chan error, 1)
	go func() { stopped <- n.serve() }()
	demoErr := n.demo(ctx, s.out)
	return errors.Join(demoErr, n.shutdown(), <-stopped)
}

// demo runs the examples against the node over HTTP.
func (n *node) demo(ctx context.Context, out io.Writer) error {
	operator, err := api.SignOperatorToken(n.secret, examples.Organization, "demo", time.Now(), time.Hour)
	if err != nil {
		return err
	}
	set, err := examples.Load()
	if err != nil {
		return err
	}
	d := &demo{out: out, colors: colorsFor(out), operator: newClient(n.url(), operator), trusted: n.trusted,
		set: set}
	return d.run(ctx)
}

type demo struct {
	out      io.Writer
	colors   colors
	operator workspace.Client
	agent    workspace.Client // what an agent's gateway holds: a key that can only evaluate
	trusted  receipt.Keys
	set      *examples.Set
	failed   int
}

func (d *demo) run(ctx context.Context) error {
	if err := d.register(ctx); err != nil {
		return fmt.Errorf("registering the examples: %w", err)
	}
	revoke, err := d.mintKey(ctx)
	if err != nil {
		return fmt.Errorf("minting an API key: %w", err)
	}
	started := time.Now()
	err = d.table(ctx)
	took := time.Since(started)
	if err == nil {
		err = d.approval(ctx)
	}
	if err == nil {
		err = d.killSwitch(ctx)
	}
	if err = errors.Join(err, revoke()); err != nil {
		return err
	}
	if d.failed > 0 {
		fmt.Fprintf(d.out, "\n%d of %d are not as expected.\n", d.failed, len(d.set.Cases))
		return errReported
	}
	fmt.Fprintf(d.out,
		"\n%d decisions over HTTP in %v, each as expected, stored before it was answered,\nand its receipt verified "+
			"offline.\n",
		len(d.set.Cases), took.Round(time.Millisecond))
	return nil
}

// register stores the example policies, and the rules that are not there yet.
func (d *demo) register(ctx context.Context) error {
	for _, p := range d.set.Policies {
		if err := d.operator.Do(ctx, http.MethodPost, "/v1/policies/register", object{"policy": p}, nil); err != nil {
			return err
		}
	}
	var rules []engine.Rule
	if err := d.operator.Do(ctx, http.MethodGet, "/v1/rules?limit=500", nil, &rules); err != nil {
		return err
	}
	for _, r := range d.set.Rules {
		if slices.ContainsFunc(rules, func(have engine.Rule) bool { return have.Name == r.Name }) {
			continue
		}
		body := object{"name": r.Name, "description": r.Description, "condition": r.Condition, "action": r.Action,
			"priority": r.Priority}
		if err := d.operator.Do(ctx, http.MethodPost, "/v1/rules", body, nil); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) mintKey(ctx context.Context) (revoke func() error, err error) {
	var key struct {
		ID    string `json:"id"`
		Token string `json:"token"`
	}
	body := object{"name": "writ demo", "scopes": []string{"policy:evaluate"},
		"expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	if err := d.operator.Do(ctx, http.MethodPost, "/v1/tokens", body, &key); err != nil {
		return nil, err
	}
	d.agent = newClient(d.operator.Base, key.Token)
	return func() error {
		return d.operator.Do(context.WithoutCancel(ctx), http.MethodDelete, "/v1/tokens/"+key.ID, nil, nil)
	}, nil
}

// table evaluates every case and prints a line for each, under a line for each
// policy.
func (d *demo) table(ctx context.Context) error {
	policy := ""
	for i, c := range d.set.Cases {
		if c.Policy != policy {
			policy = c.Policy
			fmt.Fprintf(d.out, "\n%s, by %s\n", d.colors.bold(policy), d.set.Policies[policy].AgentID)
		}
		in := *d.set.Intents[i]
		in.IntentID = uuid.NewString() // an intent is decided once; each run makes its own
		res, err := d.evaluate(ctx, &in, "")
		if err != nil {
			return fmt.Errorf("%s/%s: %w", c.Policy, c.Name, err)
		}
		note := ""
		if err := receipt.Verify(res.Receipt, d.trusted, time.Now()); err != nil {
			note = "  RECEIPT " + err.Error()
		}
		codes := codesOf(res.Reasons)
		if res.Receipt.Decision != c.Want.String() || !slices.Equal(slices.Sorted(slices.Values(codes)), c.Codes) {
			note += fmt.Sprintf("  EXPECTED %v %v", c.Want, c.Codes)
		}
		if note != "" {
			d.failed++
		}
		fmt.Fprintf(d.out, "  %s%s%s\n",
			d.colors.decision(fmt.Sprintf("%-35s", because(res.Receipt.Decision, codes)), res.Receipt.Decision),
			describe(&in, codes), note)
	}
	return nil
}

// killSwitch disables the deploy agent, tries the first deploy again, and
// enables the agent.
func (d *demo) killSwitch(ctx context.Context) error {
	i := slices.IndexFunc(d.set.Cases, func(c examples.Case) bool {
		return c.Policy == "deploys" && c.Want == engine.Allow
	})
	in := *d.set.Intents[i]
	id, err := d.agentID(ctx, in.AgentID)
	if err != nil {
		return err
	}
	path := "/v1/agents/" + id + "/status"
	fmt.Fprintf(d.out, "\nKill switch of %s, the same %s twice:\n", in.AgentID, in.ActionType)
	for _, step := range []struct {
		status engine.AgentStatus
		want   engine.Decision
	}{{engine.AgentDisabled, engine.Deny}, {engine.AgentActive, engine.Allow}} {
		if err := d.operator.Do(ctx, http.MethodPatch, path, object{"status": step.status}, nil); err != nil {
			return err
		}
		in.IntentID = uuid.NewString()
		res, err := d.evaluate(ctx, &in, "")
		if err != nil {
			return err
		}
		d.step(string(step.status), res, step.want)
	}
	return nil
}

// agentID returns the id of the agent with an external id, registering it if
// there is none.
func (d *demo) agentID(ctx context.Context, externalID string) (string, error) {
	var list struct {
		Data []engine.Agent `json:"data"`
	}
	if err := d.operator.Do(ctx, http.MethodGet, "/v1/agents?limit=500", nil, &list); err != nil {
		return "", err
	}
	for _, a := range list.Data {
		if a.ExternalID == externalID {
			return a.ID, nil
		}
	}
	var a engine.Agent
	body := object{"name": "Release bot", "externalId": externalID}
	err := d.operator.Do(ctx, http.MethodPost, "/v1/agents", body, &a)
	return a.ID, err
}

// evaluate sends one intent, under an approval unless that is empty, and reads the answer
// as strictly as a verifier.
func (d *demo) evaluate(ctx context.Context, in *engine.Intent, approvalID string) (receipt.Result, error) {
	body := object{"policy_id": in.PolicyID, "intent": in}
	if approvalID != "" {
		body["approval_id"] = approvalID
	}
	var got jsontext.Value
	if err := d.agent.Do(ctx, http.MethodPost, "/v1/policy/evaluate", body, &got); err != nil {
		return receipt.Result{}, err
	}
	return receipt.ParseResult(got)
}
