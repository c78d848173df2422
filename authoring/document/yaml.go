package document

import (
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

func (f *file) readYAML() (roots []*node, err error) {
	docs, err := yamlNodes(f.text)
	if err != nil {
		return nil, f.yamlSyntax(err)
	}
	r := &yamlReader{file: f}
	for _, doc := range docs {
		n, err := r.value(doc.Content[0])
		if err != nil {
			return nil, err
		}
		roots = append(roots, n)
	}
	return roots, nil
}

type yamlReader struct {
	*file
	nodes int
}

func (r *yamlReader) value(y *yaml.Node) (*node, error) {
	at := Place{y.Line, y.Column}
	if r.nodes++; r.nodes > MaxValues {
		return nil, r.refuse(at, "the file has more than %d values, those behind aliases counted each time", MaxValues)
	}
	n := &node{at: at}
	switch y.Kind {
	case yaml.AliasNode:
		return r.value(y.Alias)
	case yaml.SequenceNode:
		n.kind = '['
		return n, r.elements(n, y)
	case yaml.MappingNode:
		n.kind = '{'
		return n, r.members(n, y)
	}
	return n, r.scalar(n, y)
}

func (r *yamlReader) elements(n *node, y *yaml.Node) error {
	for _, c := range y.Content {
		kid, err := r.value(c)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, kid)
	}
	return nil
}

func (r *yamlReader) members(n *node, y *yaml.Node) error {
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		at := Place{k.Line, k.Column}
		switch {
		case k.Kind != yaml.ScalarNode:
			return r.refuse(at, "a key is a string")
		case k.Tag == "!!merge":
			return r.refuse(at,
				"merge keys (<<) are not read: write the members out, or use an alias for a whole value")
		case n.member(k.Value) != nil:
			return r.refuse(at, "%s is given more than once", k.Value)
		}
		kid, err := r.value(y.Content[i+1])
		if err != nil {
			return err
		}
		kid.keyAt = at
		if y.Style&yaml.FlowStyle != 0 && i > 0 && isEmpty(y.Content[i+1]) {
			kid.split = n.kids[len(n.kids)-1].splitBefore(k.Value)
		}
		n.keys, n.kids = append(n.keys, key{k.Value, at}), append(n.kids, kid)
	}
	return nil
}

// isEmpty reports whether y is an empty value: nothing is written after a key, or in a document.
func isEmpty(y *yaml.Node) bool {
	return y.Kind == yaml.ScalarNode && y.Tag == "!!null" && y.Value == ""
}

// splitBefore checks whether YAML may have split one text at a comma, into n and a key without a
// value. If so, it returns the joined text. Otherwise it returns "".
func (n *node) splitBefore(key string) string {
	switch {
	case n.split != "":
		return n.split + ", " + key
	case n.kind == '"' && n.textAt == n.at: // the text is not in quotes
		return n.text + ", " + key
	}
	return ""
}

// number matches the numbers of JSON.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (r *yamlReader) scalar(n *node, y *yaml.Node) error {
	n.text = y.Value
	switch y.ShortTag() {
	case "!!str", "!!timestamp":
		n.kind, n.textAt = '"', startOfText(y)
	case "!!bool":
		n.kind, n.text = jsontext.Kind(strings.ToLower(y.Value)[0]), strings.ToLower(y.Value)
	case "!!null":
		n.kind, n.text = 'n', "null"
	case "!!int", "!!float":
		if n.kind = '0'; !number.MatchString(y.Value) {
			return r.refuse(n.at,
				`%s is a number in YAML that JSON does not have: write it in decimal digits, or in quotes if it is text`, y.Value)
		}
	default:
		return r.refuse(n.at, "the tag %s is not read", y.Tag)
	}
	return nil
}

// startOfText returns where the text of a string begins.
func startOfText(y *yaml.Node) Place {
	switch {
	case y.Style&inBlock != 0:
		return Place{y.Line + 1, 1}
	case y.Style&inQuotes != 0:
		return Place{y.Line, y.Column + 1}
	}
	return Place{y.Line, y.Column}
}
