package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"writ.example/writ/authoring/document/schema"
)

type schemaCmd struct {
	Kind  string `arg:"" enum:"policy,rule,rules,list,intent,suite,config,rego-capabilities,rego-input" help:"What the documents are: policy, rule, rules (an array of them), list, intent or suite; config, the settings of writ serve; or what opa check reads: rego-capabilities, rego-input."`
	Tests bool   `help:"With rego-capabilities: print those of test files."`
}

func (c *schemaCmd) Help() string {
	return `Prints the JSON Schema (2020-12) of policies, rules, lists, intents or suites as files
hold them, for editors and generators. A server serves the same at /schemas/KIND.schema.json.
Name it in the first line of a YAML file, and editors complete and check the file:

  writ schema rule > rule.schema.json
  # yaml-language-server: $schema=rule.schema.json

A schema knows the structure; writ check also reads patterns, CEL and Rego.

OPA's tools read rego-capabilities, the functions that conditions can call, and
rego-input, the schema of their input:

  writ schema rego-capabilities > capabilities.json
  writ schema rego-input > input.json
  opa check --capabilities capabilities.json --schema input.json team.rego`
}

func (c *schemaCmd) Validate() error {
	if c.Tests && c.Kind != "rego-capabilities" {
		return errors.New("--tests: goes with rego-capabilities alone")
	}
	return nil
}

func (c *schemaCmd) Run(_ context.Context, s streams) error {
	text, err := schema.JSON(c.Kind)
	switch {
	case c.Kind == "config":
		text, err = configSchema()
	case slices.Contains(schema.RegoKinds, c.Kind):
		text, err = schema.Rego(c.Kind, c.Tests)
	}
	if err != nil {
		return &usageError{err.Error()}
	}
	if _, err := s.out.Write(text); err != nil {
		return fmt.Errorf("printing the schema: %w", err)
	}
	return nil
}
