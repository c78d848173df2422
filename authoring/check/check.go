// Package check validates files of policies, rules, lists, intents and suites as the service does.
// It also warns of valid documents that may not do what their author means.
package check

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/lint"
	"writ.example/writ/authoring/suite"
	"writ.example/writ/engine"
)

// Checker checks files. It compares the rules of all files with each other, as if they belonged to
// one organization.
type Checker struct {
	Read       func(name string) ([]byte, error)
	Conditions engine.Options

	reports []*Report
	rules   []rule
	lists   []string // the names of the lists in the files
}

type rule struct {
	*engine.CompiledRule
	doc *document.Document
	in  *Report
}

// Files checks files and returns one report for each file, in the order of names.
func (c *Checker) Files(names []string) []*Report {
	for _, name := range names {
		c.file(name)
	}
	c.lint()
	return c.reports
}

func (c *Checker) file(name string) {
	r := &Report{name: name}
	c.reports = append(c.reports, r)
	data, err := c.Read(name)
	if err != nil {
		r.failed(err)
		return
	}
	docs, err := document.Load(name, data, document.Below(name))
	r.failed(err)
	if slices.ContainsFunc(docs, func(d *document.Document) bool {
		return d.Kind == document.Suite && d.Check(c.Conditions) == nil
	}) {
		r.failed(c.suites(name, data))
	} else {
		for _, d := range docs {
			c.document(d, r)
		}
	}
	if !strings.HasSuffix(name, ".json") {
		r.add("warning", "ignore", "", document.BadIgnores(name, data, warningNames())...)
	}
	r.holds = counted(docs)
}

// suites reads the suites in a file. data is the file's content.
func (c *Checker) suites(name string, data []byte) error {
	l := suite.Loader{Libraries: c.Conditions.Libraries, ReadBelow: document.Below}
	l.ReadFile = func(path string) ([]byte, error) {
		if path == name {
			return data, nil
		}
		return os.ReadFile(path)
	}
	_, err := l.Load(name)
	return err
}

func (c *Checker) document(d *document.Document, r *Report) {
	switch d.Kind {
	case document.Rule:
		compiled, err := d.Rule(c.Conditions)
		r.failed(err)
		if err == nil {
			c.rules = append(c.rules, rule{compiled, d, r})
		}
	case document.Policy:
		p, err := d.Policy()
		r.failed(err)
		if err == nil {
			r.warn(d, "", lint.Policy(p))
		}
	case document.List:
		l, err := d.List()
		r.failed(err)
		if err == nil {
			c.list(l.Name, d, r)
		}
	default:
		r.failed(d.Check(c.Conditions))
	}
}

func (c *Checker) list(name string, d *document.Document, r *Report) {
	if slices.Contains(c.lists, name) {
		p := d.Problem("list.name", "is also the name of another list")
		r.failed(&document.Error{Problems: []document.Problem{p}})
		return
	}
	c.lists = append(c.lists, name)
}

func (c *Checker) lint() {
	rules, docs := make([]*engine.CompiledRule, len(c.rules)), make([]*document.Document, len(c.rules))
	for i, r := range c.rules {
		rules[i], docs[i] = r.CompiledRule, r.doc
	}
	for i, r := range c.rules {
		r.in.failed(document.CheckPackage(r.doc, docs[:i]))
	}
	for _, w := range append(lint.Rules(rules), lint.Lists(rules, c.lists)...) {
		var i int
		if _, err := fmt.Sscanf(w.Field, "rules[%d]", &i); err != nil || i >= len(c.rules) {
			continue
		}
		c.rules[i].in.warn(c.rules[i].doc, fmt.Sprintf("rules[%d].", i), []lint.Warning{w})
	}
}

// warningNames returns the names of the warnings that a comment can silence.
func warningNames() (names []string) {
	for _, k := range lint.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func (r *Report) failed(err error) {
	var placed *document.Error
	switch {
	case err == nil:
	case errors.As(err, &placed):
		r.add("error", "", "", placed.Problems...)
	default:
		r.add("error", "", "", document.Problem{File: r.name, Message: err.Error()})
	}
}
