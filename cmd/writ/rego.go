package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"writ/engine"
	"writ/rego"
)

type regoCmd struct {
	Policy     []string `required:"" sep:"none" placeholder:"FILE" help:"ActionPolicy to render; - is standard input. With --core it can be repeated."`
	Core       bool     `help:"Write what an OPA needs to be writ's external evaluation core; needs --out."`
	Rules      string   `placeholder:"FILE" help:"Rules to render with it: YAML documents, or a JSON array."`
	Lists      string   `placeholder:"FILE" help:"Lists that the rules look in: a JSON object of arrays of strings by the lists' names. Needs --out."`
	Input      []string `sep:"none" placeholder:"FILE" help:"Print instead the input that the module decides this ActionIntent by. With --out write the module, the inputs and a test of each for opa test; it can be repeated then."`
	Out        string   `placeholder:"DIR" help:"Directory to write the modules to; needed when rules are written in Rego, each of which is a module of its own."`
	stateFlags `embed:""`
}

func (c *regoCmd) Help() string {
	return `Prints the Rego v1 module that decides exactly as the policy does, to read, to
test with opa, or to load into an OPA server.

  writ rego --policy examples/policies/deploys.yaml > deploys.rego
  opa eval -d deploys.rego -i input.json data.writ

A rule whose condition is Rego is a module of its own:

  writ rego --policy policy.json --rules rules.json --out modules
  opa eval -d modules -i input.json data.writ

The input of an intent has how its resource is read, which the module needs and which
is not written by hand:

  writ rego --policy policy.json --input intent.json > input.json

With --out, opa test has the inputs as data.intents, by the names of their files, and
a test that holds the module to what the service decides:

  writ rego --policy policy.json --rules rules.json --input intent.json --out modules
  opa test modules

With --core, an OPA that holds the directory decides for writ serve, by exactly
these versions with exactly these rules, which are all of the organization's:

  writ rego --core --policy a.json --policy b.json --rules rules.json --out core
  opa run --server core
  writ serve --evaluation-core-url http://127.0.0.1:8181/v1/data/writ/core/result`
}

func (c *regoCmd) Run(_ context.Context, s streams) error {
	policies, rules, err := c.load(s)
	if err != nil {
		return err
	}
	lists, err := readLists(s, c.Lists)
	if err != nil {
		return err
	}
	if c.Core {
		modules, err := rego.LowerCore(policies, rules.rules)
		if err != nil {
			return rules.notRendered(c.Policy[0], err)
		}
		return c.write(s, modules)
	}
	intents, err := c.intents(s, policies[0])
	if err != nil {
		return err
	}
	if len(intents) > 0 && c.Out == "" {
		return c.printInput(s, policies[0], intents)
	}
	modules, err := rego.Lower(policies[0], rules.rules, lists)
	if err != nil {
		return rules.notRendered(c.Policy[0], err)
	}
	if len(intents) > 0 {
		tests, err := rego.Tests(policies[0], rules.rules, lists, intents)
		if err != nil {
			return err
		}
		modules = append(modules, tests...)
	}
	if c.Out != "" {
		return c.write(s, modules)
	}
	if len(modules) > 1 {
		return &usageError{fmt.Sprintf(
			"%d files belong to the module, of rules in Rego or of lists: give --out DIR to write them to",
			len(modules)-1,
		)}
	}
	fmt.Fprint(s.out, modules[0].Source)
	return nil
}

func (c *regoCmd) Validate() error {
	switch {
	case c.Core && c.Out == "":
		return errors.New("--core: give --out DIR to write the modules to")
	case !c.Core && len(c.Policy) > 1:
		return errors.New("--policy: more than one needs --core")
	case c.Core && len(c.Input) > 0:
		return errors.New("--input: there is none with --core, which gets its input from writ serve")
	case c.Out == "" && len(c.Input) > 1:
		return errors.New("--input: more than one needs --out")
	}
	return nil
}

func (c *regoCmd) load(s streams) (policies []*engine.ActionPolicy, rules ruleFile, err error) {
	for _, name := range c.Policy {
		p, err := readPolicy(s, name)
		if err != nil {
			return nil, rules, err
		}
		policies = append(policies, p)
	}
	if c.Rules != "" {
		rules, err = readRules(s, c.Rules)
	}
	return policies, rules, err
}

// intents reads those of --input, by the names of their files.
func (c *regoCmd) intents(s streams, p *engine.ActionPolicy) (map[string]*engine.Input, error) {
	intents := make(map[string]*engine.Input)
	for _, file := range c.Input {
		inputs, err := c.inputs(s, []string{file}, p.PolicyID)
		if err != nil {
			return nil, err
		}
		if len(inputs) > 1 {
			return nil, &inputError{name: file, err: fmt.Errorf("has %d intents: want one", len(inputs))}
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		if file == "-" {
			name = "intent"
		}
		if intents[name] != nil {
			return nil, &usageError{fmt.Sprintf("--input: two files are called %s", name)}
		}
		intents[name] = inputs[0].Input
	}
	return intents, nil
}

// printInput prints the input of the one intent.
func (c *regoCmd) printInput(s streams, p *engine.ActionPolicy, intents map[string]*engine.Input) error {
	for _, in := range intents {
		text, err := rego.InputJSON(p, in)
		if err != nil {
			return &inputError{name: c.Input[0], err: err}
		}
		fmt.Fprintf(s.out, "%s", text)
	}
	return nil
}

// write puts the modules into the directory and prints their names.
func (c *regoCmd) write(s streams, modules []rego.File) error {
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return fmt.Errorf("making the directory of the modules: %w", err)
	}
	for _, m := range modules {
		name := filepath.Join(c.Out, m.Name)
		if err := os.WriteFile(name, []byte(m.Source), 0o666); err != nil {
			return fmt.Errorf("writing a module: %w", err)
		}
		fmt.Fprintln(s.out, name)
	}
	return nil
}
