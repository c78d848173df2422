package lint

import (
	"strings"

	"writ/engine/glob"
	"writ/engine/resource"
)

// entries finds which entries of a list of action types cover another.
type entries struct {
	list   []string
	covers func(by, entry string) bool
	// starts has the entries by what stands before their first *, in lower case: an
	// entry that covers another starts with the same or less, but for what stands
	// between words.
	starts map[string][]int
}

func listOf(list []string, covers func(by, entry string) bool) entries {
	e := entries{list: list, covers: covers, starts: make(map[string][]int)}
	for i, entry := range list {
		start := startOf(entry)
		e.starts[start] = append(e.starts[start], i)
	}
	return e
}

// startOf returns what an action type has before its first * and its first sign.
func startOf(entry string) string {
	if end := strings.IndexFunc(entry, func(r rune) bool { return strings.ContainsRune("*._-", r) }); end >= 0 {
		entry = entry[:end]
	}
	return strings.ToLower(entry)
}

// beating returns the first entry that covers what is no entry of the list, or -1.
func (e entries) beating(entry string) int {
	return first(e.starts, startOf(entry), func(i int) bool { return e.covers(e.list[i], entry) })
}

// coveredBy returns the entry that covers the entry i, or -1. Of entries that cover
// each other the first stays.
func (e entries) coveredBy(i int) int {
	return first(e.starts, startOf(e.list[i]), func(by int) bool {
		return by != i && e.covers(e.list[by], e.list[i]) && (by < i || !e.covers(e.list[i], e.list[by]))
	})
}

// first returns the least of what starts has under a prefix of start and fits, or -1.
func first(starts map[string][]int, start string, fits func(i int) bool) int {
	least := -1
	for n := range len(start) + 1 {
		for _, i := range starts[start[:n]] {
			if least >= 0 && i > least {
				break
			}
			if fits(i) {
				least = i
				break
			}
		}
	}
	return least
}

// shapes finds which patterns of a list cover another.
type shapes struct {
	shapes []glob.Shape
	// starts has the patterns by what each of their spellings starts with.
	starts map[string][]int
}

func shapesOf(patterns []string, side resource.Side) shapes {
	s := shapes{starts: make(map[string][]int)}
	for i, pattern := range patterns {
		shape := glob.ShapeOf(pattern, side)
		s.shapes = append(s.shapes, shape)
		for prefix := range shape.Prefixes {
			if known := s.starts[prefix]; len(known) == 0 || known[len(known)-1] != i {
				s.starts[prefix] = append(known, i)
			}
		}
	}
	return s
}

// coveredBy is that of entries.
func (s shapes) coveredBy(i int) int {
	return s.first(s.shapes[i], func(by int) bool {
		return by != i && s.shapes[by].Covers(s.shapes[i]) && (by < i || !s.shapes[i].Covers(s.shapes[by]))
	})
}

// beating returns the first pattern of a list that blocks which beats the allowed
// shape, or -1.
func (s shapes) beating(allowed glob.Shape) int {
	return s.first(allowed, func(by int) bool { return s.shapes[by].Beats(allowed) })
}

// first asks those that start with a part of what the first spelling of shape starts with.
func (s shapes) first(shape glob.Shape, fits func(i int) bool) int {
	for start := range shape.Prefixes {
		return first(s.starts, start, fits)
	}
	return -1
}
