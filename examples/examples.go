// Package examples holds the policies, rules and suites that a newcomer runs first. They are for
// believable agents: payments, a warehouse, deploys, outbound HTTP and e-mail. The suites have the
// decision that each intent must get.
package examples

import (
	"embed"
	"fmt"

	"writ.example/writ/authoring/suite"
	"writ.example/writ/engine"
)

//go:embed rules.yaml policies *_test.yaml
var files embed.FS

// Organization is the organization of every policy and rule in the examples.
const Organization = "demo"

// names has the names of the suites and of their policies, in the order of the demo.
var names = []string{"payments", "warehouse", "deploys", "outbound-http", "email"}

// Case is one intent under one policy, with the decision that it must get.
type Case struct {
	Policy string // the name of a file in policies/, and of a suite
	Name   string // the name of the test, and of the case
	Want   engine.Decision
	Codes  []engine.Code // the codes of the findings, sorted
}

// Set has the policies, rules and cases of the examples.
type Set struct {
	Policies map[string]*engine.ActionPolicy // by name
	Rules    []engine.Rule
	Cases    []Case
	Intents  []*engine.Intent // Intents[i] is the intent of Cases[i]
}

// Load reads the examples as writ test does. It leaves out cases that a fresh server would decide
// differently, because they need a registered agent or a plan that is used up.
func Load() (*Set, error) {
	s := &Set{Policies: make(map[string]*engine.ActionPolicy)}
	loader := suite.Loader{ReadFile: files.ReadFile, Glob: func(string) ([]string, error) { return nil, nil }}
	for _, name := range names {
		suites, err := loader.Load(name + "_test.yaml")
		if err != nil {
			return nil, fmt.Errorf("reading the examples: %w", err)
		}
		for _, read := range suites {
			s.Policies[name], s.Rules = read.Policy(), read.Rules()
			s.add(name, read)
		}
	}
	return s, nil
}

func (s *Set) add(policy string, read *suite.Suite) {
	for _, c := range read.Cases {
		in := &c.Input
		if in.Agent != engine.AgentUnregistered || in.RequireRegistered || in.Usage.Exceeded || in.Stopped {
			continue
		}
		want, codes := c.Wanted()
		s.Cases = append(s.Cases, Case{Policy: policy, Name: c.Test + ": " + c.Subject(), Want: want, Codes: codes})
		s.Intents = append(s.Intents, c.Input.Intent)
	}
}
