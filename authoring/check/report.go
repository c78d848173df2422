package check

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/lint"
)

// Report has the errors and the warnings of one file.
type Report struct {
	name  string
	holds string // what the file has, such as "3 rules"
	found []finding
}

// finding is an error or a warning.
type finding struct {
	document.Problem
	severity, rule, instead string
}

func (r *Report) add(severity, rule, instead string, problems ...document.Problem) {
	for _, p := range problems {
		r.found = append(r.found, finding{p, severity, rule, instead})
	}
}

// warn adds the warnings that no comment of the author silences. It cuts prefix from the start of
// each warning's field.
func (r *Report) warn(d *document.Document, prefix string, warnings []lint.Warning) {
	for _, w := range warnings {
		field := strings.TrimSuffix(strings.TrimPrefix(w.Field+".", prefix), ".")
		if !d.Ignores(field, w.Rule) {
			r.add("warning", w.Rule, w.Instead, d.Problem(field, w.Message))
		}
	}
}

// Has reports whether the report has a finding of the given severity, "error" or "warning".
func (r *Report) Has(severity string) bool {
	return slices.ContainsFunc(r.found, func(f finding) bool { return f.severity == severity })
}

// Write writes the findings as text. A file without errors gets a line that says ok.
func (r *Report) Write(w io.Writer) {
	if !r.Has("error") {
		fmt.Fprintf(w, "%s: ok: %s\n", r.name, r.holds)
	}
	for _, f := range r.found {
		p := f.Problem
		if f.severity == "warning" {
			p.Message = "warning: " + p.Message + " [" + f.rule + "]"
		}
		if p.Line == 0 {
			fmt.Fprintf(w, "%s: %s\n", p.File, p.Message)
			continue
		}
		WriteProblem(w, p)
		if f.instead != "" {
			fmt.Fprintf(w, "  instead: %s\n", f.instead)
		}
	}
}

// WriteProblem writes a problem, then the line of the file, then a caret below the problem's place.
func WriteProblem(w io.Writer, p document.Problem) {
	fmt.Fprintf(w, "%v\n", p)
	for line := range strings.SplitSeq(p.Caret(), "\n") {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// WriteJSON writes each finding as a JSON object on its own line.
func (r *Report) WriteJSON(w io.Writer) error {
	for _, f := range r.found {
		err := json.NewEncoder(w).Encode(struct {
			File     string `json:"file"`
			Line     int    `json:"line"`
			Column   int    `json:"column"`
			Severity string `json:"severity"`
			Rule     string `json:"rule,omitzero"`
			Document string `json:"document,omitzero"`
			Field    string `json:"field"`
			Message  string `json:"message"`
			Instead  string `json:"instead,omitzero"`
		}{f.File, f.Line, f.Column, f.severity, f.rule, f.Document, f.Field, f.Message, f.instead})
		if err != nil {
			return err
		}
	}
	return nil
}

// counted returns how many documents of each kind there are: "policy" or "2 policies, 3 rules".
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
