package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"writ.example/writ/bench"
	"writ.example/writ/engine"
)

// work returns the work that the flags describe, with the documents in their files.
func (w benchWork) work(s streams) (_ bench.Work, err error) {
	all := bench.Work{Organization: w.Org, Organizations: w.Orgs, Policies: w.Policies, Rego: w.Rego,
		History: w.History, Deny: w.Deny}
	if all, err = all.Sending(w.Send); err != nil {
		return all, &usageError{"--send " + err.Error()}
	}
	if w.Policy != "" {
		if all.Policy, err = readPolicy(s, w.Policy); err != nil {
			return all, err
		}
	}
	if n, err := strconv.Atoi(w.Rules); err == nil {
		all.Rules = n
	} else if all.Own, err = ownRules(s, w.Rules); err != nil {
		return all, err
	}
	if w.Intents != "" {
		text, err := readInput(s, w.Intents)
		if err != nil {
			return all, err
		}
		id := ""
		if all.Policy != nil {
			id = all.Policy.PolicyID
		}
		if all.Mix, err = bench.ReadIntents(text, id); err != nil {
			return all, &inputError{name: w.Intents, err: err}
		}
		for _, in := range all.Mix {
			if all.Approvals && in.Want != engine.ApprovalRequired.String() {
				return all, &inputError{name: w.Intents, err: fmt.Errorf(
					"%s: want: got %q: --send approvals wants approval_required of each", in.Name, in.Want)}
			}
		}
	}
	all.Documents, err = all.Digest()
	return all, err
}

// ownRules reads the active rules of a file, which are registered before anything is measured.
func ownRules(s streams, name string) ([]engine.Rule, error) {
	f, err := readRules(s, name, conditions())
	if err != nil {
		return nil, err
	}
	lists := engine.CompileRules(f.rules, conditions()).ListNames()
	if len(lists) > 0 {
		return nil, &inputError{name: name, err: fmt.Errorf("a rule looks in the list %s: writ bench registers no "+
			"lists; put the rules in a server, and give its URL and --intents without --rules",
			strings.Join(lists, ", "))}
	}
	return slices.DeleteFunc(f.rules, func(r engine.Rule) bool { return !r.IsActive }), nil
}

func (w benchWork) Validate() error {
	if n, err := strconv.Atoi(w.Rules); w.Rules == "" || err == nil && n < 0 {
		return errors.New("--rules: want a number of at least 0, or a file of rules")
	}
	if w.Org == "" || w.Orgs < 1 || w.Policies < 1 || w.Conns < 1 || w.Rego < 0 || w.History < 0 {
		return errors.New("--org: want a name; --orgs, --policies, --conns: at least 1; --rego, --history: at least 0")
	}
	switch {
	case w.Policy != "" && w.Intents == "":
		return errors.New("--policy: needs --intents FILE, whose intents it decides")
	case w.Policies > 1 && w.Policy+w.Intents != "":
		return errors.New("--policies: are copies of the reference policy, which --policy and --intents replace")
	}
	return nil
}
