package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage/receipt"
)

type demo struct {
	out      io.Writer
	colors   colors
	operator workspace.Client
	agent    workspace.Client // the gateway of an agent has such a key, which can only evaluate
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

// register stores the example policies and the missing rules.
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

// table evaluates every case and prints a line for each. A heading comes before the cases of
// each policy.
func (d *demo) table(ctx context.Context) error {
	policy := ""
	for i, c := range d.set.Cases {
		if c.Policy != policy {
			policy = c.Policy
			fmt.Fprintf(d.out, "\n%s, by %s\n", d.colors.bold(policy), d.set.Policies[policy].AgentID)
		}
		in := *d.set.Intents[i]
		in.IntentID = uuid.NewString() // an intent is decided only once, so each run needs new ids
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
