package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"writ/authoring/document"
	"writ/authoring/lint"
	"writ/authoring/suite"
	"writ/engine"
)

type checkCmd struct {
	Files  []string `arg:"" name:"files" help:"Files of policies, rules, lists, intents and suites, in YAML or JSON, or directories of them; what a file holds is told by its members. - is standard input."`
	Strict bool     `help:"Fail on warnings, too."`
	JSON   bool     `name:"json" help:"Print a JSON object for each problem and each warning, and nothing else."`
}

func (c *checkCmd) Help() string {
	return `Validates files exactly as the service does: members, types, globs, CEL and Rego
conditions. Prints every problem as file:line:column: field: message, with the line
and a caret; exits 3 when a file is invalid. Warns of what is valid and may do other
than its author means; with --strict a warning is exit code 1. The rules of all files
are looked at together, as those of one organization.

  writ check examples/policies/*.yaml examples/rules.yaml
  writ check --strict policies

In YAML a comment at the end of the line, or above it, silences a warning:

  condition: {metadata.ticket: {$exists: false}}  # writ:ignore unguarded-key a ticket is optional

With --json each line has file, line, column, severity (error or warning), rule (of
the warning), document, field, message and instead.`
}

func (c *checkCmd) Run(_ context.Context, s streams) error {
	files, err := documentFiles(c.Files)
	if err != nil {
		return err
	}
	ch := checker{streams: s}
	for _, name := range files {
		ch.file(name)
	}
	ch.lint()
	for _, r := range ch.reports {
		if err := r.print(s, c.JSON); err != nil {
			return err
		}
	}
	switch {
	case ch.has("error"):
		return errReportedInvalid
	case c.Strict && ch.has("warning"):
		return errReported
	}
	return nil
}

type checker struct {
	streams
	reports []*report
	rules   []checkedRule
	lists   []string // the names of those in the files
}

type report struct {
	name  string
	holds string // such as "3 rules"
	found []finding
}

type checkedRule struct {
	*engine.CompiledRule
	doc *document.Document
	in  *report
}

// finding is a problem or a warning, as --json prints it.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Rule     string `json:"rule,omitzero"`
	Document string `json:"document,omitzero"`
	Field    string `json:"field"`
	Message  string `json:"message"`
	Instead  string `json:"instead,omitzero"`

	problem document.Problem
}

func (r *report) add(severity, rule, instead string, problems ...document.Problem) {
	for _, p := range problems {
		r.found = append(r.found, finding{
			File: p.File, Line: p.Line, Column: p.Column, Severity: severity, Rule: rule,
			Document: p.Document, Field: p.Field, Message: p.Message, Instead: instead, problem: p,
		})
	}
}

func (c *checker) file(name string) {
	r := &report{name: name}
	c.reports = append(c.reports, r)
	data, err := readInput(c.streams, name)
	if err != nil {
		r.failed(err)
		return
	}
	docs, err := document.Parse(name, data)
	r.failed(err)
	if slices.ContainsFunc(docs, func(d *document.Document) bool {
		return d.Kind == document.Suite && d.Check(conditions()) == nil
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

func (r *report) failed(err error) {
	var placed *document.Error
	switch {
	case err == nil:
	case errors.As(err, &placed):
		r.add("error", "", "", placed.Problems...)
	default:
		r.add("error", "", "", document.Problem{File: r.name, Message: problem(err).Error()})
	}
}

func (c *checker) suites(name string, data []byte) error {
	l := suite.Loader{ReadFile: func(path string) ([]byte, error) {
		if path == name {
			return data, nil
		}
		return os.ReadFile(path)
	}}
	_, err := l.Load(name)
	return err
}

func (c *checker) document(d *document.Document, r *report) {
	switch d.Kind {
	case document.Rule:
		rule, err := d.Rule(conditions())
		r.failed(err)
		if err == nil {
			c.rules = append(c.rules, checkedRule{rule, d, r})
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
		r.failed(d.Check(conditions()))
	}
}

// list notes a list, whose name no other has.
func (c *checker) list(name string, d *document.Document, r *report) {
	if slices.Contains(c.lists, name) {
		p := d.Problem("list.name", "is that of another list, too")
		r.failed(&document.Error{Problems: []document.Problem{p}})
		return
	}
	c.lists = append(c.lists, name)
}

// lint warns of the rules of all files together.
func (c *checker) lint() {
	rules := make([]*engine.CompiledRule, len(c.rules))
	for i, r := range c.rules {
		rules[i] = r.CompiledRule
	}
	for _, w := range append(lint.Rules(rules), lint.Lists(rules, c.lists)...) {
		var i int
		if _, err := fmt.Sscanf(w.Field, "rules[%d]", &i); err != nil || i >= len(c.rules) {
			continue
		}
		c.rules[i].in.warn(c.rules[i].doc, fmt.Sprintf("rules[%d].", i), []lint.Warning{w})
	}
}

// warn adds the warnings that no comment silences. prefix is what their fields begin with.
func (r *report) warn(d *document.Document, prefix string, warnings []lint.Warning) {
	for _, w := range warnings {
		field := strings.TrimSuffix(strings.TrimPrefix(w.Field+".", prefix), ".")
		if !d.Ignores(field, w.Rule) {
			r.add("warning", w.Rule, w.Instead, d.Problem(field, w.Message))
		}
	}
}

// warningNames are the names that a comment can silence.
func warningNames() (names []string) {
	for _, k := range lint.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

func (c *checker) has(severity string) bool {
	return slices.ContainsFunc(c.reports, func(r *report) bool { return r.has(severity) })
}

func (r *report) has(severity string) bool {
	return slices.ContainsFunc(r.found, func(f finding) bool { return f.Severity == severity })
}

// print prints what was found, or that the file is fine.
func (r *report) print(s streams, asJSON bool) error {
	if !asJSON && !r.has("error") {
		fmt.Fprintf(s.out, "%s: ok: %s\n", r.name, r.holds)
	}
	for _, f := range r.found {
		if asJSON {
			if err := json.NewEncoder(s.out).Encode(f); err != nil {
				return fmt.Errorf("printing: %w", err)
			}
			continue
		}
		p := f.problem
		if f.Severity == "warning" {
			p.Message = "warning: " + p.Message + " [" + f.Rule + "]"
		}
		if p.Line == 0 {
			fmt.Fprintf(s.out, "%s: %s\n", p.File, p.Message)
			continue
		}
		printProblem(s.out, p)
		if f.Instead != "" {
			fmt.Fprintf(s.out, "  instead: %s\n", f.Instead)
		}
	}
	return nil
}

// counted says what a file holds: "policy" or "2 policies, 3 rules".
func counted(docs []*document.Document) string {
	var parts []string
	for _, k := range []struct {
		kind document.Kind
		many string
	}{{document.Policy, "policies"}, {document.Rule, "rules"}, {document.List, "lists"}, {document.Intent, "intents"},
		{document.Suite, "suites"}} {
		n := 0
		for _, d := range docs {
			if d.Kind == k.kind {
				n++
			}
		}
		switch {
		case n == 1:
			parts = append(parts, string(k.kind))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, k.many))
		}
	}
	return strings.Join(parts, ", ")
}
