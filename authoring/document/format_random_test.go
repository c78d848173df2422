package document

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// hardTexts has texts that are hard to write in YAML.
var hardTexts = []string{
	"a", "a b", "", " x", "x ", "yes", "null", "1", "1.50", "2026-11-01", "2026-11-01T09:00:00Z", "# x", "a # b", "a: b", "- a", "{a}", "[a", "a,b",
	"'", `"`, `\`, "\n", "a\nb", "a\nb\n", "\na", "  a\n b\n", "a\n\nb # c\n", "a \nb", "\t", "é ☃", "\u2028", "<<", "=", "*a", "&a", "!a", "|", "---", "--- #",
}

// randomNode makes a random value of a document, in a random style.
func randomNode(r *rand.Rand, depth int) *yaml.Node {
	styles := []yaml.Style{0, 0, yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle, yaml.LiteralStyle, yaml.FoldedStyle}
	text := func() *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: hardTexts[r.IntN(len(hardTexts))], Style: styles[r.IntN(len(styles))]}
	}
	kind := r.IntN(8)
	switch {
	case depth == 0 || kind < 3:
		return text()
	case kind == 3:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(r.IntN(100))}
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if kind > 5 {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	if r.IntN(3) == 0 {
		n.Style = yaml.FlowStyle
	}
	for i := range r.IntN(4) {
		if n.Kind == yaml.MappingNode {
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: fmt.Sprint(hardTexts[r.IntN(len(hardTexts)-20)], i)})
		}
		n.Content = append(n.Content, randomNode(r, depth-1))
	}
	return n
}

// randomFile writes rules in YAML. It puts comments between lines and at their ends, even where
// they become a part of a text.
func randomFile(r *rand.Rand) string {
	var docs []string
	for range 1 + r.IntN(2) {
		root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		names := []string{"name", "condition", "action", "priority", "isActive", "other", "id"}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names[:2+r.IntN(5)] {
			root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, randomNode(r, 3))
		}
		if r.IntN(4) == 0 {
			root = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{root, root}}
		}
		out, err := yaml.Marshal(root)
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		var b strings.Builder
		for i, line := range lines {
			if r.IntN(5) == 0 {
				fmt.Fprintf(&b, "%s# above %d\n", strings.Repeat(" ", r.IntN(6)), i)
			}
			if r.IntN(8) == 0 {
				b.WriteByte('\n')
			}
			b.WriteString(line)
			if r.IntN(5) == 0 {
				fmt.Fprintf(&b, " # beside %d", i)
			}
			if inside := strings.LastIndexAny(line, ",{["); inside >= 0 && r.IntN(6) == 0 {
				b.Reset()
				b.WriteString(strings.Join(lines[:i], "\n") + "\n" + line[:inside+1] + " # inside\n        " + line[inside+1:])
			}
			b.WriteByte('\n')
		}
		if r.IntN(3) == 0 {
			fmt.Fprintf(&b, "%s# end\n", strings.Repeat(" ", r.IntN(4)))
		}
		docs = append(docs, b.String())
	}
	return strings.Join(docs, "---\n")
}

// TestFormat_OfAnyFile checks that formatting changes no document, and that formatting again
// changes nothing. Comments may stand anywhere, and values may be spelled in any way. If Format
// would lose a comment, it refuses the file.
func TestFormat_OfAnyFile(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 1))
	read, refused := 0, 0
	for range 2000 {
		text := randomFile(r)
		if _, err := Parse("r.yaml", []byte(text)); err != nil {
			continue
		}
		read++
		if _, err := formatted(t, "r.yaml", []byte(text)); err != nil {
			refused++
		}
	}
	if read < 500 || refused > read/3 {
		t.Errorf("%d files could be read, and %d of them not formatted, want more and fewer", read, refused)
	}
}
