package scrub

import "regexp/syntax"

// demand has lower bounds that every text meets if an expression matches it. The bounds
// are quick to check.
type demand struct {
	length int // bytes
	run    int // word characters in a row
	dashed int // word characters and dashes in a row
}

// meets reports whether a text with these measures meets d.
func (d demand) meets(text demand) bool {
	return text.length >= d.length && text.run >= d.run && text.dashed >= d.dashed
}

// demandsOf returns the demands of the expression re. Each text that re matches meets at
// least one of them.
func demandsOf(re *syntax.Regexp) []demand {
	switch re.Op {
	case syntax.OpLiteral:
		return []demand{{len(re.Rune), longestRun(re.Rune, isWord), longestRun(re.Rune, isDashed)}}
	case syntax.OpCharClass:
		d := demand{length: 1}
		if consistsOf(re.Rune, isWord) {
			d.run = 1
		}
		if consistsOf(re.Rune, isDashed) {
			d.dashed = 1
		}
		return []demand{d}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return []demand{{length: 1}}
	case syntax.OpCapture, syntax.OpPlus:
		return demandsOf(re.Sub[0])
	case syntax.OpRepeat:
		return demandsOfRepeat(re)
	case syntax.OpConcat:
		return demandsOfConcat(re.Sub)
	case syntax.OpAlternate:
		var all []demand
		for _, sub := range re.Sub {
			all = append(all, demandsOf(sub)...)
		}
		return bounded(all)
	}
	return []demand{{}}
}

func demandsOfRepeat(re *syntax.Regexp) []demand {
	if re.Min == 0 {
		return []demand{{}}
	}
	all := demandsOf(re.Sub[0])
	if re.Sub[0].Op != syntax.OpCharClass {
		return all
	}
	d := all[0]
	return []demand{{d.length * re.Min, d.run * re.Min, d.dashed * re.Min}}
}

func demandsOfConcat(subs []*syntax.Regexp) []demand {
	all := []demand{{}}
	for _, sub := range subs {
		var joined []demand
		for _, d := range demandsOf(sub) {
			for _, before := range all {
				joined = append(joined,
					demand{before.length + d.length, max(before.run, d.run), max(before.dashed, d.dashed)})
			}
		}
		all = bounded(joined)
	}
	return all
}

// bounded returns all. If all has too many demands, it returns one demand with the lowest
// bounds of all.
func bounded(all []demand) []demand {
	const apart = 8
	if len(all) <= apart {
		return all
	}
	least := all[0]
	for _, d := range all[1:] {
		least = demand{min(least.length, d.length), min(least.run, d.run), min(least.dashed, d.dashed)}
	}
	return []demand{least}
}

func longestRun(runes []rune, in func(rune) bool) (longest int) {
	run := 0
	for _, r := range runes {
		if run++; !in(r) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// consistsOf reports whether all characters of a class, given as ranges, are in
// a set. The set contains all characters beyond ASCII.
func consistsOf(ranges []rune, in func(rune) bool) bool {
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1] && r < 0x80; r++ {
			if !in(r) {
				return false
			}
		}
	}
	return true
}

// isWord reports whether r is a letter, a digit, an underscore or beyond ASCII.
func isWord(r rune) bool {
	return r >= 0x80 || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

func isDashed(r rune) bool { return isWord(r) || r == '-' }
