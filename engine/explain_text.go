package engine

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// WriteText writes the explanation for people: the codes that decided, the readings of the
// resource, the checks, and the rules. It does not repeat the reasons of the findings.
func (x *Explanation) WriteText(w io.Writer) error {
	var b bytes.Buffer
	var codes []string
	for _, f := range x.Findings {
		if f.Decides && !slices.Contains(codes, string(f.Code)) {
			codes = append(codes, string(f.Code))
		}
	}
	fmt.Fprintf(&b, "decided by: %s\n\n", strings.Join(codes, ", "))
	x.Resource.write(&b)
	if len(x.Checks) > 0 {
		fmt.Fprintln(&b, "\nchecks of the policy:")
	}
	for i := range x.Checks {
		x.Checks[i].write(&b)
	}
	if len(x.Rules) > 0 {
		fmt.Fprintln(&b, "\nactive rules, highest priority first:")
	}
	for i := range x.Rules {
		x.Rules[i].write(&b)
	}
	if x.RulesLeftOut > 0 {
		fmt.Fprintf(&b, "  and %d more, which are left out here\n", x.RulesLeftOut)
	}
	_, err := w.Write(b.Bytes())
	return err //nolint:wrapcheck // the caller knows the writer
}

func (x *ExplainedResource) write(w io.Writer) {
	fmt.Fprintf(w, "resource, as written: %s\n", x.Written)
	if x.Error != "" {
		fmt.Fprintf(w, "resource, unreadable: %s\n", x.Error)
	}
	for _, r := range x.Allow {
		fmt.Fprintf(w, "resource, as read:    %s\n", r)
	}
	for _, r := range x.Block {
		asWell := func(a ExplainedReading) bool { return a.Text == r.Text }
		if r.Text != x.Written && !slices.ContainsFunc(x.Allow, asWell) {
			fmt.Fprintf(w, "resource, to a block: %s\n", r)
		}
	}
}

// String returns the reading with its readers.
func (x ExplainedReading) String() string {
	return fmt.Sprintf("%s (%s)", x.Text, strings.Join(x.Readers, ", "))
}

func (x *ExplainedCheck) write(w io.Writer) {
	result := map[string]string{"pass": "ok", "fail": "FAILS", "not_asked": "-", "unknown": "?"}[x.Result]
	fmt.Fprintf(w, "  %-5s %-20s %s\n", result, x.Code, x.Holds)
	if detail := x.detail(); detail != "" {
		fmt.Fprintf(w, "        %s\n", detail)
	}
}

// detail returns a line that says which value decided.
func (x *ExplainedCheck) detail() string {
	got := x.Got
	if len(x.Readers) > 0 {
		got = ExplainedReading{x.Got, x.Readers}.String()
	}
	field := strings.TrimPrefix(x.Field, "policy.")
	switch {
	case x.Result == "not_asked":
		return "not asked: the resource cannot be read"
	case field == "":
		return ""
	case x.Value == "" && x.Result == "pass":
		return ""
	case x.Value == "":
		return fmt.Sprintf("no entry of %s is of %s", field, got)
	case got == "":
		return fmt.Sprintf("%s: %s", field, x.Value)
	}
	return fmt.Sprintf("%s: %s; got %s", field, x.Value, got)
}

func (x *ExplainedRule) write(w io.Writer) {
	decides := ""
	if x.Decides {
		decides = " (reported)"
	}
	result := map[string]string{"match": "matches", "no_match": "no match", "error": "error",
		"not_asked": "not asked", "unknown": "unknown"}[x.Result]
	fmt.Fprintf(w, "  %-9s %4d %-17s %s%s\n", result, x.Priority, x.Outcome, x.Name, decides)
	inRego := len(x.Leaves) > 0 && x.Leaves[0].Line > 0
	if !inRego {
		fmt.Fprintf(w, "       %s\n", strings.ReplaceAll(strings.TrimSpace(x.Condition), "\n", "\n       "))
	}
	if x.Error != "" {
		fmt.Fprintf(w, "       error: %s\n", x.Error)
	}
	if x.Reading != nil {
		fmt.Fprintf(w, "       of the resource as %s\n", x.Reading)
	}
	if len(x.Leaves) < 2 && !inRego {
		return // it says what the rule does
	}
	indent := ""
	for i := range x.Leaves {
		if x.Leaves[i].Rule {
			indent = ""
		}
		x.writeLeaf(w, i, indent)
		if x.Leaves[i].Rule {
			indent = "  "
		}
	}
}

// writeLeaf writes a leaf. It marks the leaf that Because names.
func (x *ExplainedRule) writeLeaf(w io.Writer, i int, indent string) {
	leaf, mark := &x.Leaves[i], " "
	if x.Because != nil && *x.Because == i {
		mark = ">"
	}
	result, cause := leaf.Result, ""
	switch {
	case result == "not_asked":
		result = "-"
	case leaf.Line > 0:
		result = fmt.Sprintf("%-11s%s", strings.ReplaceAll(result, "_", " "), indent)
	}
	if leaf.Error != "" {
		cause = ": " + leaf.Error
	}
	fmt.Fprintf(w, "     %s %-5s %s%s\n", mark, result, leaf.Text, cause)
}
