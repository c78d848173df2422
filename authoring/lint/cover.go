package lint

import (
	"iter"
	"slices"
	"strings"

	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// entries finds the entries of a list that cover another entry. Comparing every two entries takes
// seconds for 1,000 patterns. So an entry is compared only with entries whose prefix is a prefix of
// the entry's own spelling.
type entries[T any] struct {
	list   []T
	covers func(by, entry T) bool
	// prefixes yields the text before the first wildcard, for each spelling of an entry. starts has
	// the indexes of the entries with each such text.
	prefixes func(entry T) iter.Seq[string]
	starts   map[string][]int
}

func entriesOf[T any](list []T, covers func(by, entry T) bool, prefixes func(entry T) iter.Seq[string]) entries[T] {
	e := entries[T]{list, covers, prefixes, make(map[string][]int)}
	for i, entry := range list {
		for prefix := range prefixes(entry) {
			if known := e.starts[prefix]; len(known) == 0 || known[len(known)-1] != i {
				e.starts[prefix] = append(known, i)
			}
		}
	}
	return e
}

// actionsOf returns the entries of a list of action types.
func actionsOf(list []string, covers func(by, entry string) bool) entries[string] {
	return entriesOf(list, covers, func(entry string) iter.Seq[string] {
		return slices.Values([]string{startOf(entry)})
	})
}

// startOf returns the text of an action type before its first * or separator. The text is in lower
// case. It ends before a separator because another separator may mean the same.
func startOf(entry string) string {
	if end := strings.IndexFunc(entry, func(r rune) bool { return strings.ContainsRune("*._-", r) }); end >= 0 {
		entry = entry[:end]
	}
	return strings.ToLower(entry)
}

func shapesOf(patterns []string, side resource.Side) entries[glob.Shape] {
	list := make([]glob.Shape, len(patterns))
	for i, pattern := range patterns {
		list[i] = glob.ShapeOf(pattern, side)
	}
	return entriesOf(list, glob.Shape.Covers, func(s glob.Shape) iter.Seq[string] { return s.Prefixes })
}

// coveredBy returns the index of an entry that covers entry i, or -1. If two entries cover each
// other, the first one does not count as covered.
func (e entries[T]) coveredBy(i int) int {
	entry := e.list[i]
	return e.first(entry, func(by int) bool {
		return by != i && e.covers(e.list[by], entry) && (by < i || !e.covers(entry, e.list[by]))
	})
}

// first returns the index of the first entry for which fits is true, or -1. It looks only at
// entries whose prefix is a prefix of entry's first spelling.
func (e entries[T]) first(entry T, fits func(i int) bool) int {
	least := -1
	for start := range e.prefixes(entry) {
		for n := range len(start) + 1 {
			for _, i := range e.starts[start[:n]] {
				if least >= 0 && i > least {
					break
				}
				if fits(i) {
					least = i
					break
				}
			}
		}
		break
	}
	return least
}
