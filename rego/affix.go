package rego

import (
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
)

// affixes are the patterns of a leaf that are literals with one star, all with the star at the same
// end.
type affixes []glob.Affix

// affixesOf returns the patterns of a leaf of globs. It returns nil if they are not all literals with
// a star at the same end.
func affixesOf(n *condition.Node) (all affixes) {
	of := glob.AffixOf
	switch {
	case n.Kind != condition.Leaf:
		return nil
	case n.Op == condition.ActionGlob:
		of = glob.ActionAffixOf
	case n.Op != condition.Glob:
		return nil
	}
	for _, pattern := range n.Texts() {
		a, ok := of(pattern)
		if !ok || len(all) > 0 && a.Leading != all[0].Leading {
			return nil
		}
		all = append(all, a)
	}
	return all
}

// crosses reports whether all stars match slashes, so that the literals alone decide.
func (a affixes) crosses() bool {
	return !slices.ContainsFunc(a, func(a glob.Affix) bool { return !a.Crosses })
}

// begin returns an expression that text begins, or ends, with one of the literals.
func (a affixes) begin(text string) string {
	if len(a) > 1 {
		return a.anyBegin(text)
	}
	function := "startswith"
	if a[0].Leading {
		function = "endswith"
	}
	return fmt.Sprintf("%s(%s, %s)", function, text, condition.Quote(a[0].Literal))
}

// anyBegin is begin for one of several texts.
func (a affixes) anyBegin(texts string) string {
	function := "strings.any_prefix_match"
	if a[0].Leading {
		function = "strings.any_suffix_match"
	}
	var literals []string
	for _, one := range a {
		literals = appendDistinct(literals, condition.Quote(one.Literal))
	}
	return fmt.Sprintf("%s(%s, [%s])", function, texts, strings.Join(literals, ", "))
}

// stays returns an expression that the star of the only pattern matches no slash.
func (a affixes) stays(text string) string {
	function := "trim_prefix"
	if a[0].Leading {
		function = "trim_suffix"
	}
	return fmt.Sprintf(`not contains(%s(%s, %s), "/")`, function, text, condition.Quote(a[0].Literal))
}
