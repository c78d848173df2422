package document

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// formatRegoFile formats a file of Rego.
func formatRegoFile(name string, data []byte) ([]byte, error) {
	out, err := rego.FormatFile(name, string(data))
	var bad *condition.Error
	if !errors.As(err, &bad) {
		return []byte(out), err
	}
	f, found := newFile(name, data), new(Error)
	for _, m := range bad.Mistakes {
		at := Place{max(m.Line, 1), max(m.Column, 1)}
		found.Problems = append(found.Problems, f.problem(at, "", m.Message))
	}
	return nil, found
}

// checkRego returns the mistakes in the Rego of rules that cannot be parsed.
func checkRego(docs []*Document) error {
	all := new(Error)
	for _, d := range docs {
		source := d.root.withObjects(d.Kind).regoText()
		if d.Kind != Rule || source == nil {
			continue
		}
		_, err := rego.FormatCondition(source.text)
		var bad *condition.Error
		if !errors.As(err, &bad) {
			continue
		}
		invalid := new(engine.InvalidError)
		for _, m := range bad.In("/rego").Mistakes {
			invalid.Fields = append(invalid.Fields, engine.FieldError{Field: "condition", Message: m.Message, In: m})
		}
		if err := all.Add(d.Locate(invalid)); err != nil {
			return err
		}
	}
	return all.Err()
}

// regoText returns the text of the condition of a rule that is in Rego, or nil.
func (n *node) regoText() *node {
	if n.kind != '{' {
		return nil
	}
	c := n.member("condition")
	if c == nil || c.kind != '{' {
		return nil
	}
	if text := c.member("rego"); text != nil && text.kind == '"' {
		return text
	}
	return nil
}

// withRego returns a rule whose Rego is formatted. keep reports whether the formatted text can take the
// place of the text before.
func (n *node) withRego(keep func(before, after string) bool) *node {
	text := n.regoText()
	if text == nil {
		return n
	}
	out, err := rego.FormatCondition(text.text)
	if err != nil || !keep(text.text, out) {
		return n
	}
	return n.replaced(nil, func(n *node, path []string) *node {
		if slices.Equal(path, []string{"condition", "rego"}) {
			return &node{kind: '"', text: out, at: n.at}
		}
		return nil
	})
}

// onOneLine reports whether after has no more lines than one, unless before has several.
func onOneLine(before, after string) bool {
	return isLine(after) || !isLine(before)
}

func isLine(s string) bool { return !strings.Contains(strings.TrimSuffix(s, "\n"), "\n") }

// equalFormatted is [Document.Equal] of documents whose Rego is formatted.
func equalFormatted(d, e *Document) bool {
	formatted := func(d *Document) []byte {
		n := d.root.withObjects(d.Kind)
		if d.Kind == Rule {
			n = n.withRego(func(string, string) bool { return true })
		}
		return n.canonical()
	}
	return d.Kind == e.Kind && bytes.Equal(formatted(d), formatted(e))
}

// formatRegoIn formats the Rego of rules in YAML. A text that is not written as a block stays on its
// line.
func (f *file) formatRegoIn(pages []*yaml.Node) {
	for _, page := range pages {
		each := []*yaml.Node{page.Content[0]}
		if page.Content[0].Kind == yaml.SequenceNode {
			each = page.Content[0].Content
		}
		for _, y := range each {
			n, err := (&yamlReader{file: f}).value(y)
			text := memberOf(memberOf(y, "condition"), "rego")
			if err != nil || kindOf(n) != Rule || text == nil || text.Tag != "!!str" || text.Anchor != "" {
				continue
			}
			out, err := rego.FormatCondition(text.Value)
			if err == nil && (isLine(out) || text.Style&yaml.LiteralStyle != 0) {
				text.Value = out
			}
		}
	}
}

// memberOf returns the value of a member of y, or nil.
func memberOf(y *yaml.Node, name string) *yaml.Node {
	if y == nil || y.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if y.Content[i].Value == name {
			return y.Content[i+1]
		}
	}
	return nil
}
