package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
)

type evalCmd struct {
	Policy     string   `required:"" placeholder:"FILE" help:"ActionPolicy to evaluate by."`
	Rules      string   `placeholder:"FILE" help:"The organization's rules: YAML documents, or a JSON array."`
	Lists      string   `placeholder:"FILE" help:"Lists that the rules look in: a JSON object of arrays of strings by the lists' names."`
	Libraries  string   `placeholder:"DIR" help:"Libraries that the rules import: a directory for each, with its .rego files."`
	Session    string   `placeholder:"FILE" help:"Session that the intents are proposed in, as the API shows it."`
	Intent     []string `required:"" sep:"none" placeholder:"FILE" help:"ActionIntent to evaluate, an array of them, or several one after another; - is standard input. Can be repeated."`
	stateFlags `embed:""`
	Engine     string `default:"cel" enum:"cel,rego,both" help:"What decides: cel, the engine of the service; rego, what writ rego exports; both, which fails on a difference."`
	Explain    bool   `help:"Also show how the resource is read, what decided each check, and the rules in order with the parts of their conditions."`
	JSON       bool   `name:"json" help:"Print a line of JSON for each intent."`
	FailOn     string `default:"never" enum:"never,deny,approval_required" help:"Exit 1 if an intent is decided so: never, deny or approval_required, which includes deny."`
}

// stateFlags describe the state that an evaluation needs in addition to the documents.
type stateFlags struct {
	AgentStatus   string `default:"unregistered" enum:"unregistered,active,disabled" help:"Status of the agent: unregistered, active or disabled."`
	Now           string `placeholder:"TIME" help:"Time of the decision, which conditions see as decided_at, in RFC 3339. Left out: each intent is decided at its issued_at."`
	Stopped       bool   `name:"organization-stopped" help:"Evaluate as if the organization were stopped."`
	UsageExceeded bool   `help:"Evaluate as if the plan's meter were used up."`
	Registered    bool   `name:"require-registered-agents" help:"Deny unregistered agents."`
}

func (c *evalCmd) Help() string {
	return `Runs the engine of the service over files: no server, no store, no receipt. Prints
the decision, then a line a finding. A deny is a result, not a failure: the exit
code is 0 whenever the intents could be evaluated and 3 when a file is invalid.
With --fail-on it is 1 when an intent is decided so.

  writ eval --policy examples/policies/payments.yaml --rules examples/rules.yaml \
    --intent examples/intents/payments/payout-over-the-cap.json --explain

A script reads --json; "codes" are those of "reasons", and --explain adds
"explanation":

  writ eval --policy policy.json --rules rules.json --intent intents.json --json \
    --fail-on deny --engine both`
}

func (c *evalCmd) Validate() error {
	if c.Explain && c.Engine == "rego" {
		return errors.New("--explain: what the Rego came past is not known: take --engine cel or both")
	}
	return nil
}

func (c *evalCmd) Run(_ context.Context, s streams) error {
	engines, err := c.load(s)
	if err != nil {
		return err
	}
	inputs, err := c.inputs(s, c.Intent, engines.policy.Document().PolicyID)
	if err != nil {
		return err
	}
	session, err := readSession(s, c.Session)
	if err != nil {
		return err
	}
	for _, in := range inputs {
		in.Session.CompiledSession = session
	}
	failOn, err := engine.ParseDecision(c.FailOn)
	if c.FailOn == "never" {
		failOn, err = engine.Deny+1, nil
	}
	if err != nil {
		return err
	}
	failed := false
	for _, in := range inputs {
		got := engines.evaluate(in, c.Explain)
		failed = failed || got.Decision >= failOn || got.undecided || got.Differs
		if err := c.print(s.out, got, len(inputs) > 1); err != nil {
			return err
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// print prints the result for an intent. If there are many intents, it also prints the intent's
// name.
func (c *evalCmd) print(w io.Writer, got *evaluated, many bool) error {
	if c.JSON {
		if err := json.MarshalWrite(w, got); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
		fmt.Fprintln(w)
		return nil
	}
	if many {
		fmt.Fprintf(w, "%s: ", got.Intent)
	}
	got.write(w)
	if got.Explanation == nil {
		return nil
	}
	fmt.Fprintln(w)
	return got.Explanation.WriteText(w)
}
