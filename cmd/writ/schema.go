package main

import (
	"context"
	"fmt"

	"writ/authoring/document/schema"
)

type schemaCmd struct {
	Kind string `arg:"" enum:"policy,rule,rules,list,intent,suite" help:"What the documents are: policy, rule, rules (an array of them), list, intent or suite."`
}

func (c *schemaCmd) Help() string {
	return `Prints the JSON Schema (2020-12) of policies, rules, lists, intents or suites as files
hold them, for editors and generators. A server serves the same at /schemas/KIND.schema.json.
Name it in the first line of a YAML file, and editors complete and check the file:

  writ schema rule > rule.schema.json
  # yaml-language-server: $schema=rule.schema.json

A schema knows the structure; writ check also reads patterns, CEL and Rego.`
}

func (c *schemaCmd) Run(_ context.Context, s streams) error {
	text, err := schema.JSON(c.Kind)
	if err != nil {
		return &usageError{err.Error()}
	}
	if _, err := s.out.Write(text); err != nil {
		return fmt.Errorf("printing the schema: %w", err)
	}
	return nil
}
