// Package examples holds the policies, rules and intents that a newcomer runs
// first: believable agents (payments, a warehouse, deploys, outbound HTTP,
// e-mail) with the decision each intent must get.
package examples

import (
	"embed"
	"fmt"

	"github.com/go-json-experiment/json"

	"writ/engine"
)

//go:embed rules.json cases.json policies intents
var files embed.FS

// Organization owns every policy and rule of the examples.
const Organization = "demo"

// Case is one intent under one policy and what must be decided.
type Case struct {
	Policy string          `json:"policy"` // a name in policies/
	Intent string          `json:"intent"` // a name in intents/<policy>/
	Want   engine.Decision `json:"want"`
	Codes  []engine.Code   `json:"codes"` // of the findings, in order
}

// Set is everything in the directory.
type Set struct {
	Policies map[string]*engine.ActionPolicy // by name
	Rules    []engine.Rule
	Cases    []Case
	Intents  []*engine.Intent // Intents[i] is Cases[i]'s
}

// Load reads the examples, as strictly as the service reads requests.
func Load() (*Set, error) {
	s := &Set{Policies: make(map[string]*engine.ActionPolicy)}
	if err := read("rules.json", &s.Rules); err != nil {
		return nil, err
	}
	if err := read("cases.json", &s.Cases); err != nil {
		return nil, err
	}
	for _, c := range s.Cases {
		if s.Policies[c.Policy] == nil {
			p := new(engine.ActionPolicy)
			if err := read("policies/"+c.Policy+".json", p); err != nil {
				return nil, err
			}
			s.Policies[c.Policy] = p
		}
		in := new(engine.Intent)
		if err := read("intents/"+c.Policy+"/"+c.Intent+".json", in); err != nil {
			return nil, err
		}
		s.Intents = append(s.Intents, in)
	}
	return s, nil
}

func read(name string, v any) error {
	data, err := files.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading example: %w", err)
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("reading example %s: %w", name, err)
	}
	return nil
}
