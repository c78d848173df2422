package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/engine"
)

type checkCmd struct {
	Files []string `arg:"" name:"files" help:"Policy, rule or intent files; what a file holds is told by its members."`
}

// Help says what is checked.
func (c *checkCmd) Help() string {
	return `Validates files exactly as the service does: members, types, globs, CEL and Rego
conditions. Prints a line a file and every problem it has; exits 3 when one is
invalid. Warns of what is valid and may do other than its author means.

  writ check examples/policies/*.json examples/rules.json`
}

// Run checks every file.
func (c *checkCmd) Run(_ context.Context, s streams) error {
	var failed error
	for _, name := range c.Files {
		kind, warnings, err := checkFile(s, name)
		if err == nil {
			fmt.Fprintf(s.out, "%s: ok: %s\n", name, kind)
			for _, w := range warnings {
				fmt.Fprintf(s.out, "  warning: %s: %s\n", w.Field, w.Message)
			}
			continue
		}
		failed = errReportedInvalid
		var fields *engine.InvalidError
		if !errors.As(err, &fields) {
			fmt.Fprintf(s.out, "%s: INVALID: %v\n", name, problem(err))
			continue
		}
		fmt.Fprintf(s.out, "%s: INVALID %s:\n", name, kind)
		for _, f := range fields.Fields {
			fmt.Fprintf(s.out, "  %s: %s\n", f.Field, f.Message)
		}
	}
	return failed
}

// checkFile validates one file and says what it holds.
func checkFile(s streams, name string) (kind string, warnings []engine.FieldError, err error) {
	data, err := readInput(s, name)
	if err != nil {
		return "", nil, err
	}
	kind, err = kindOf(data)
	if err != nil {
		return "", nil, &inputError{name: name, err: err}
	}
	switch kind {
	case "policy":
		p, err := engine.DecodePolicy(data, "policy")
		if err == nil {
			_, err = engine.CompilePolicy(p)
		}
		if err != nil {
			return kind, nil, wrapInput(name, err)
		}
		return kind, p.Warnings(), nil
	case "intent":
		in, err := engine.DecodeIntent(data, "intent")
		if err == nil {
			err = in.Validate()
		}
		return kind, nil, wrapInput(name, err)
	default:
		var rules []engine.Rule
		check := func() error {
			_, err := checkRules(rules)
			return err
		}
		if err := engine.Decode(data, "rules", &rules, check); err != nil {
			return kind, nil, wrapInput(name, err)
		}
		warnings, err := checkRules(rules)
		return fmt.Sprintf("%d rules", len(rules)), warnings, wrapInput(name, err)
	}
}

func wrapInput(name string, err error) error {
	if err == nil {
		return nil
	}
	return &inputError{name: name, err: err}
}

// checkRules reports what is wrong with any of the rules and what may do other
// than its author means, each field with its place in the array.
func checkRules(rules []engine.Rule) (warnings []engine.FieldError, err error) {
	all := &engine.InvalidError{}
	placed := func(to, fields []engine.FieldError, i int) []engine.FieldError {
		for _, f := range fields {
			f.Field = fmt.Sprintf("rules[%d].%s", i, f.Field)
			to = append(to, f)
		}
		return to
	}
	for i := range rules {
		rule, err := engine.CompileRule(rules[i], conditions())
		var invalid *engine.InvalidError
		switch {
		case err == nil:
			warnings = placed(warnings, rule.Warnings(), i)
		case errors.As(err, &invalid):
			all.Fields = placed(all.Fields, invalid.Fields, i)
		default:
			return nil, fmt.Errorf("rules[%d]: %w", i, err)
		}
	}
	if len(all.Fields) > 0 {
		return nil, all
	}
	return warnings, nil
}

// kindOf tells policies, intents and rules apart by a member that only one has.
func kindOf(data []byte) (string, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return "rules", nil
	}
	var members map[string]jsontext.Value
	// The strict decoders say where a member is duplicated.
	if err := json.Unmarshal(data, &members, jsontext.AllowDuplicateNames(true)); err != nil {
		return "", fmt.Errorf("want a JSON object or an array of rules: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	for _, k := range []struct{ member, kind string }{
		{"intent_id", "intent"}, {"allowed_action_types", "policy"}, {"version", "policy"}, {"action_type", "intent"},
	} {
		if _, ok := members[k.member]; ok {
			return k.kind, nil
		}
	}
	return "", errors.New("neither a policy (allowed_action_types), an intent (intent_id) nor an array of rules")
}
