package api

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"writ/engine"
	"writ/engine/resource"
)

// facts refuses the keys of metadata that are facts from who may not assert any,
// and from everybody those that a reader would take for facts.
func (f *fieldErrors) facts(metadata map[string]string, scopes scopeSet) {
	for key := range metadata {
		switch {
		case strings.HasPrefix(key, engine.FactPrefix):
			if !scopes.has(scopeFactsAssert) {
				f.add("intent.metadata."+key, "is a fact, which takes the scope "+scopeFactsAssert.String()+" to send")
			}
		case readsAsFact(key):
			f.add("intent.metadata", fmt.Sprintf("has the key %s, which reads as a fact and is none: write %s as it is or begin the key otherwise",
				strconv.QuoteToASCII(key), engine.FactPrefix))
		}
	}
}

// readsAsFact reports whether key begins with the prefix after folding and without its
// invisible characters.
func readsAsFact(key string) bool {
	key = strings.TrimSpace(key)
	if len(key) >= len(engine.FactPrefix) && !strings.ContainsFunc(key, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.EqualFold(key[:len(engine.FactPrefix)], engine.FactPrefix)
	}
	folded := visible(engine.FoldID(visible(key)))
	return strings.HasPrefix(strings.TrimSpace(folded), engine.FactPrefix)
}

func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if resource.IsInvisible(r) {
			return -1
		}
		return r
	}, s)
}
