package proof

import (
	"iter"
	"slices"

	"writ.example/writ/engine/condition"
)

// Index finds the items that may be true in a case. It need not decide each item. The zero value is
// empty.
type Index[T comparable] struct {
	// always has the items that are found for every case. values has items by the value of a field.
	// starts has items by the literal beginning of a pattern for a field.
	always         []T
	values, starts map[entry][]T
}

// entry is a value of a field, or the literal beginning of a pattern for the field.
type entry struct {
	subject
	text string
}

// Add adds an item that can be true only in cases.
func (x *Index[T]) Add(cases []*Case, item T) {
	if texts := common(cases, (*Case).textsOf); texts != nil {
		x.values = file(x.values, texts, item)
	} else if texts := common(cases, (*Case).startsOf); texts != nil {
		x.starts = file(x.starts, texts, item)
	} else {
		x.always = append(x.always, item)
	}
}

func file[T comparable](under map[entry][]T, entries []entry, item T) map[entry][]T {
	if under == nil {
		under = make(map[entry][]T)
	}
	for _, e := range entries {
		if filed := under[e]; len(filed) == 0 || filed[len(filed)-1] != item {
			under[e] = append(filed, item)
		}
	}
	return under
}

// common returns the entries of a subject that every case restricts. It returns nil if there is no
// such subject.
func common(cases []*Case, says func(*Case, subject) []entry) []entry {
	if len(cases) == 0 {
		return nil
	}
	for s := range cases[0].facts {
		var all []entry
		if !slices.ContainsFunc(cases, func(c *Case) bool {
			said := says(c, s)
			all = append(all, said...)
			return len(said) == 0
		}) {
			return all
		}
	}
	return nil
}

// Candidates yields each item that can be true in all intents of c. It may yield an item twice.
func (x *Index[T]) Candidates(c *Case) iter.Seq[T] {
	return func(yield func(T) bool) {
		stops := func(item T) bool { return !yield(item) }
		if slices.ContainsFunc(x.always, stops) {
			return
		}
		for s := range c.facts {
			if texts := c.textsOf(s); texts != nil && slices.ContainsFunc(x.values[texts[0]], stops) {
				return
			}
			for _, text := range c.covered(s) {
				for n := range len(text) + 1 {
					if slices.ContainsFunc(x.starts[entry{s, text[:n]}], stops) {
						return
					}
				}
			}
		}
	}
}

// textsOf returns the possible values of s, or nil if s can have any value.
func (c *Case) textsOf(s subject) (texts []entry) {
	for _, text := range c.about(s).values {
		texts = append(texts, entry{s, text})
	}
	return texts
}

// startsOf returns the literal beginnings of a list of patterns. One pattern of that list matches s
// in every intent of the case. It returns nil if there is no such list.
func (c *Case) startsOf(s subject) (starts []entry) {
	for list := range c.matching(s) {
		for _, text := range list.Texts() {
			for _, prefix := range c.prover.prefixes(list, text) {
				starts = append(starts, entry{s, prefix})
			}
		}
		if len(starts) > 0 {
			break
		}
	}
	return starts
}

// covered returns the texts to look up in starts. Suppose that a list of patterns provably matches
// s in all intents of the case. Then one pattern of that list begins with a prefix of one of these
// texts.
func (c *Case) covered(s subject) (texts []string) {
	if values := c.about(s).values; len(values) > 0 {
		texts = append(texts, values[0])
	}
	for list := range c.matching(s) {
		texts = append(texts, c.prover.prefixes(list, list.Values[0].Str)...)
	}
	return texts
}

// matching yields the lists of patterns that match s in all intents of the case.
func (c *Case) matching(s subject) iter.Seq[*condition.Node] {
	return func(yield func(*condition.Node) bool) {
		for _, l := range c.about(s).literals {
			if l.truth && isMatch(l.leaf) && !yield(l.leaf) {
				return
			}
		}
	}
}

// prefixes returns the literal beginnings of a pattern in all its spellings.
func (p *Prover) prefixes(list *condition.Node, text string) (all []string) {
	for _, side := range sides(list) {
		all = append(all, p.shape(list.Op, text, side).prefixes...)
	}
	return all
}
