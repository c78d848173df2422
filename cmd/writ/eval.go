package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"writ/engine"
	"writ/rego"
)

type evalCmd struct {
	Policy        string `required:"" placeholder:"FILE" help:"ActionPolicy to evaluate by."`
	Rules         string `placeholder:"FILE" help:"JSON array of the organization's rules."`
	Intent        string `required:"" placeholder:"FILE" help:"ActionIntent to evaluate; - is standard input."`
	AgentStatus   string `default:"unregistered" enum:"unregistered,active,disabled" help:"Status of the agent: unregistered, active or disabled."`
	UsageExceeded bool   `help:"Evaluate as if the plan's meter were used up."`
	Registered    bool   `name:"require-registered-agents" help:"Deny unregistered agents."`
	Explain       bool   `help:"Also show how the resource is read, every check in CEL, and the rules in order."`
}

// Help says what the exit code means.
func (c *evalCmd) Help() string {
	return `Runs the engine of the service over files: no server, no store, no receipt. Prints
the decision, then a line a finding. A deny is a result, not a failure: the exit
code is 0 whenever the intent could be evaluated and 3 when a file is invalid.

  writ eval --policy examples/policies/payments.json --rules examples/rules.json \
    --intent examples/intents/payments/payout-over-the-cap.json --explain`
}

// Run evaluates and prints.
func (c *evalCmd) Run(_ context.Context, s streams) error {
	p, rules, err := c.load(s)
	if err != nil {
		return err
	}
	in, err := c.input(s)
	if err != nil {
		return err
	}
	if in.Intent.PolicyID != p.Document().PolicyID {
		return &inputError{name: c.Intent, err: fmt.Errorf("intent.policy_id: got %s, want the policy's, %s", in.Intent.PolicyID, p.Document().PolicyID)}
	}
	if c.Explain {
		in.Trace = &engine.Trace{}
	}
	res := engine.Evaluate(p, rules, in)
	fmt.Fprintln(s.out, res.Decision)
	for _, reason := range res.Reasons() {
		fmt.Fprintf(s.out, "  %s\n", reason)
	}
	if c.Explain {
		return explain(s.out, p, in)
	}
	return nil
}

// load reads and compiles the policy and the rules.
func (c *evalCmd) load(s streams) (*engine.Policy, *engine.RuleSet, error) {
	doc, err := readDocument(s, c.Policy, "policy", engine.DecodePolicy)
	if err != nil {
		return nil, nil, err
	}
	p, err := engine.CompilePolicy(doc)
	if err != nil {
		return nil, nil, &inputError{name: c.Policy, err: err}
	}
	if c.Rules == "" {
		return p, nil, nil
	}
	rules, err := readRules(s, c.Rules)
	if err != nil {
		return nil, nil, err
	}
	return p, engine.CompileRules(rules, conditions()), nil
}

// input reads the intent and puts it in the state that the flags describe.
func (c *evalCmd) input(s streams) (*engine.Input, error) {
	intent, err := readDocument(s, c.Intent, "intent", engine.DecodeIntent)
	if err != nil {
		return nil, err
	}
	if err := intent.Validate(); err != nil {
		return nil, &inputError{name: c.Intent, err: err}
	}
	in := &engine.Input{Intent: intent, RequireRegistered: c.Registered, Usage: engine.Usage{Exceeded: c.UsageExceeded}}
	if c.AgentStatus != "unregistered" {
		in.Agent = engine.AgentStatus(c.AgentStatus)
	}
	return in, nil
}

// explain shows what the evaluation of in came past.
func explain(w io.Writer, p *engine.Policy, in *engine.Input) error {
	readings, err := in.Intent.Readings()
	if err != nil {
		return fmt.Errorf("reading the resource: %w", err)
	}
	fmt.Fprintf(w, "\nresource, as written: %s\n", readings.Raw())
	for i := range readings.AllowLen() {
		r := readings.AllowAt(i)
		fmt.Fprintf(w, "resource, as read:    %s (%s)\n", r.Text, r.Readers)
	}
	fmt.Fprintln(w, "\nchecks of the policy:")
	for i, c := range engine.Checks(p.Document()) {
		verdict := "ok   "
		if in.Trace.Checks[i].Finding != nil {
			verdict = "FAILS"
		}
		fmt.Fprintf(w, "  %s %-20s %s\n", verdict, c.Code, c.Holds.CEL())
	}
	if len(in.Trace.Rules) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nactive rules, highest priority first:")
	for _, a := range in.Trace.Rules {
		doc := a.Rule.Rule()
		fmt.Fprintf(w, "  %-9s %4d %-17s %s\n       %s\n", a.Verdict, doc.Priority, a.Rule.Outcome(), doc.Name, strings.TrimSpace(renderingOf(a.Rule)))
		if a.Err != nil {
			fmt.Fprintf(w, "       error: %v\n", a.Err)
		}
	}
	return nil
}

// renderingOf returns what a rule runs: CEL, or Rego where it is written in Rego.
func renderingOf(r *engine.CompiledRule) string {
	if cel, ok := r.CEL(); ok {
		return cel
	}
	src, _ := r.RegoSource() // empty for a broken rule, which Validate has refused
	return src
}

// conditions are the languages that rules may be written in.
func conditions() engine.Options { return engine.Options{CompileRego: rego.CompileCondition} }

// readDocument reads and strictly decodes a file.
func readDocument[T any](s streams, name, field string, decode func([]byte, string) (T, error)) (T, error) {
	var zero T
	data, err := readInput(s, name)
	if err != nil {
		return zero, err
	}
	v, err := decode(data, field)
	if err != nil {
		return zero, &inputError{name: name, err: err}
	}
	return v, nil
}

// readRules reads rules and refuses them unless every one compiles.
func readRules(s streams, name string) ([]engine.Rule, error) {
	rules, err := readDocument(s, name, "rules", engine.DecodeRules)
	if err != nil {
		return nil, err
	}
	for i, r := range rules {
		if err := engine.ValidateRule(r, conditions()); err != nil {
			return nil, &inputError{name: name, err: fmt.Errorf("rules[%d] (%s): %w", i, r.Name, err)}
		}
	}
	return rules, nil
}
