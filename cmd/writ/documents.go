package main

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// readDocuments reads the documents in a file. "-" is standard input. If kind is not empty,
// each document must be of that kind. The empty JSON array has no rules; for other kinds it is an
// error. The error is an [inputError] or a *[document.Error].
func readDocuments(s streams, name string, kind document.Kind) ([]*document.Document, error) {
	data, err := readInput(s, name)
	if err != nil {
		return nil, err
	}
	if kind == document.Rule && noRules.Match(data) {
		return nil, nil
	}
	docs, err := document.Load(name, data, document.Below(name))
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		if err := d.Want(kind); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// noRules matches the empty JSON array, which is what GET /v1/rules answers without rules.
var noRules = regexp.MustCompile(`^\s*\[\s*\]\s*$`)

// readPolicy reads a file with one policy.
func readPolicy(s streams, name string) (*engine.ActionPolicy, error) {
	docs, err := readDocuments(s, name, document.Policy)
	if err != nil {
		return nil, err
	}
	if len(docs) > 1 {
		return nil, &inputError{name: name, err: fmt.Errorf("has %d policies: want one", len(docs))}
	}
	return docs[0].Policy()
}

// compiledPolicy reads and compiles a file with one policy.
func compiledPolicy(s streams, name string) (*engine.Policy, error) {
	doc, err := readPolicy(s, name)
	if err != nil {
		return nil, err
	}
	p, err := engine.CompilePolicy(doc)
	if err != nil {
		return nil, &inputError{name: name, err: err}
	}
	return p, nil
}

// readIntent reads a file with one intent.
func readIntent(s streams, name string) (*engine.Intent, error) {
	intents, err := readIntents(s, name)
	if err == nil && len(intents) > 1 {
		err = &inputError{name: name, err: fmt.Errorf("has %d intents: want one", len(intents))}
	}
	if err != nil {
		return nil, err
	}
	return intents[0], nil
}

// readIntents reads the intents in a file. The file has one intent, an array of intents, or
// several documents.
func readIntents(s streams, name string) ([]*engine.Intent, error) {
	return readAll(s, name, document.Intent, (*document.Document).Intent)
}

// ruleFile has the rules in a file and their documents.
type ruleFile struct {
	name  string // empty if no file was given
	docs  []*document.Document
	rules []engine.Rule
}

// readRules reads the rules in a file. It fails if one of them does not compile.
func readRules(s streams, name string, o engine.Options) (f ruleFile, err error) {
	f.name = name
	f.rules, err = readAll(s, name, document.Rule, func(d *document.Document) (engine.Rule, error) {
		f.docs = append(f.docs, d)
		r, err := d.Rule(o)
		if err != nil {
			return engine.Rule{}, err
		}
		return r.Rule(), nil
	})
	for i := 0; i < len(f.docs) && err == nil; i++ {
		err = document.CheckPackage(f.docs[i], f.docs[:i])
	}
	return f, err
}

// notRendered returns the error for rules that package rego cannot render. policy is the file
// of the policy. The error has the places of the rules that err names.
func (f ruleFile) notRendered(policy string, err error) error {
	var unrendered *rego.UnrenderedError
	if !errors.As(err, &unrendered) {
		return &inputError{name: cmp.Or(f.name, policy), err: err}
	}
	all := new(document.Error)
	for _, r := range unrendered.Rules {
		var placed *document.Error
		if errors.As(f.docs[r.Index].Locate(r.Err), &placed) {
			all.Problems = append(all.Problems, placed.Problems...)
		}
	}
	return all
}
