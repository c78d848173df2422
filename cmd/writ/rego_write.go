package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

func (c *regoCmd) load(s streams, o engine.Options) (policies []*engine.ActionPolicy, rules ruleFile, err error) {
	for _, name := range c.Policy {
		p, err := readPolicy(s, name)
		if err != nil {
			return nil, rules, err
		}
		policies = append(policies, p)
	}
	if c.Rules != "" {
		rules, err = readRules(s, c.Rules, o)
	}
	return policies, rules, err
}

// intents reads the intents of --input. It returns them by the names of their files.
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
		if intents[name] = inputs[0].Input; c.Now == "" {
			intents[name].DecidedAt = time.Time{} // it follows from issued_at, and the input says so
		}
	}
	return intents, nil
}

// printInput prints the input for the only intent.
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

// write writes the modules into the directory and prints their names.
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
