package rego

import (
	"math/big"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

// size estimates the bytes of v. It stops counting soon after the total exceeds most.
func size(v ast.Value, most int) int {
	total := termBytes
	more := func(t *ast.Term) bool {
		total += size(t.Value, most-total)
		return total > most
	}
	switch v := v.(type) {
	case ast.String:
		return total + len(v)
	case ast.Number:
		return total + ofNumber(v)
	case *ast.Array:
		v.Until(more)
	case ast.Set:
		var in keys
		v.Until(func(t *ast.Term) bool {
			total += stepsPerProbe * in.compared(t.Value)
			return more(t)
		})
	case ast.Object:
		var in keys
		v.Until(func(k, v *ast.Term) bool {
			total += stepsPerProbe * in.compared(k.Value)
			return more(k) || more(v)
		})
	}
	return total
}

// The prices of reading a value, in steps. A step takes some 6 ns.
const (
	// stepsPerTerm is for each value in it: to compare it, to hash it or to visit it.
	stepsPerTerm = 32
	// stepsPerCopy is added for each list, set or object in it. OPA copies one with variables in it
	// whenever an expression reads it.
	stepsPerCopy = 96
	// textPerStep is how many bytes of a text are compared or hashed in a step.
	textPerStep = 16
	// stepsPerProbe is for each key that is compared with another one of the same hash.
	stepsPerProbe = 64
	// visits is how many times longer than to read it an iteration takes to visit a value.
	visits = 4
	// stepsPerGlobbed is for each byte of a glob, and of the text that OPA matches with it.
	stepsPerGlobbed = 16
	// stepsPerTime is for a call that computes days and hours in a time zone. Each byte of its
	// arguments costs timePerByte: a layout has such bytes.
	stepsPerTime, timePerByte = 512, 4
	// versionPerByte is for each byte of a semantic version, which OPA scans several times.
	versionPerByte = 4
	// stepsPerDecimal is for a number that is not a small integer. To compare or to add it OPA parses
	// its text.
	stepsPerDecimal = 768
)

// ofNumber returns the price of a number. Arithmetic takes time quadratic in its digits.
func ofNumber(n ast.Number) int {
	if isSmall(n) {
		return len(n)
	}
	return stepsPerDecimal + len(n) + len(n)*len(n)/64
}

// isSmall reports whether n is an integer that OPA handles as a machine word.
func isSmall(n ast.Number) bool { return len(n) <= 15 && !strings.ContainsAny(string(n), ".eE") }

// reading returns the price of reading v as a whole once. It stops counting soon after the price
// exceeds most.
func reading(v ast.Value, most int) int {
	if text, ok := v.(ast.String); ok {
		return stepsPerTerm + len(text)/textPerStep
	}
	r := reader{most: most}
	r.value = func(t *ast.Term) bool { return r.read(t.Value) }
	r.key = func(t *ast.Term) bool {
		before := r.total
		r.read(t.Value)
		r.total += r.keys.compared(t.Value) * (stepsPerProbe + r.total - before)
		return r.total > r.most
	}
	r.item = func(k, v *ast.Term) bool { return r.key(k) || r.read(v.Value) }
	r.read(v)
	return r.total
}

// reader adds up the price of a value.
type reader struct {
	total, most int
	keys        keys // of the set or object that is being read
	value, key  func(*ast.Term) bool
	item        func(k, v *ast.Term) bool
}

// read adds the price of v. It reports whether the total exceeds the most.
func (r *reader) read(v ast.Value) bool {
	r.total += stepsPerTerm
	switch v := v.(type) {
	case ast.String:
		r.total += len(v) / textPerStep
	case ast.Number:
		r.total += ofNumber(v)
	case *ast.Array:
		r.total += stepsPerCopy
		return v.Until(r.value)
	case ast.Set:
		r.total += stepsPerCopy
		outer := r.keys
		r.keys = keys{}
		v.Until(r.key)
		r.keys = outer
	case ast.Object:
		r.total += stepsPerCopy
		outer := r.keys
		r.keys = keys{}
		v.Until(r.item)
		r.keys = outer
	}
	return r.total > r.most
}

// comparing returns the price of comparing two values: the price of reading the cheaper one.
func comparing(a, b ast.Value, most int) int {
	if ast.IsScalar(b) {
		a, b = b, a
	}
	price := reading(a, most)
	if ast.IsScalar(a) {
		return price
	}
	return min(price, reading(b, price))
}

// keys counts the keys of a set or an object by how they are found. OPA looks for a key with its
// hash, and compares it with each key of the same or of the next hashes. Texts have good hashes.
// The hash of a number is its whole part, and the hash of a list is the sum of its elements'
// hashes: so thousands of them can have the same one.
type keys struct{ all, colliding int }

// collides reports whether v has the hash of other values.
func collides(v ast.Value) bool {
	switch v := v.(type) {
	case ast.Number:
		return !isSmall(v)
	case *ast.Array, ast.Set, ast.Object:
		return true
	}
	return false
}

// compared counts v and returns with how many keys it may be compared to find its place.
func (k *keys) compared(v ast.Value) (n int) {
	if collides(v) {
		n = k.all
		k.colliding++
	} else if _, ok := v.(ast.Number); ok {
		n = k.colliding
	} else {
		return 0
	}
	k.all++
	return n
}

// insert returns the price of adding v to a collection.
func (b *budget) insert(collection int, v ast.Value) int {
	if b.added == nil {
		b.added = make(map[int]*keys)
	}
	if b.added[collection] == nil {
		b.added[collection] = new(keys)
	}
	n := b.added[collection].compared(v)
	if n == 0 {
		return 0
	}
	return n * (stepsPerProbe + reading(v, b.left()/n))
}

// price returns the least number of steps of a call: the bytes that it reads. If the call can make
// a much larger value, price adds the bytes of that value. A price above most need not be exact.
func (m *meters) price(function string, args []*ast.Term, most int) int {
	if function == ast.Member.Name {
		if set, ok := args[1].Value.(ast.Set); ok { // the function looks the value up
			args = args[:1]
			if _, text := args[0].Value.(ast.String); !text {
				return reading(set, most)
			}
		}
	}
	total := 0
	for _, a := range args {
		if total += size(a.Value, most-total); total > most {
			return total
		}
	}
	if function == ast.Sort.Name {
		total *= 1 + bits.Len(uint(members(args[0])))
	}
	if function == ast.GlobMatch.Name {
		if set := m.globOf(args); set != nil {
			text, _ := args[2].Value.(ast.String)
			return total + set.Steps(string(text))
		}
		return stepsPerGlobbed * total
	}
	if i, ok := patternArgument(function); ok {
		return total + m.matching(args[i], total)
	}
	if function == ast.SemVerCompare.Name || function == ast.SemVerIsValid.Name {
		return versionPerByte * total
	}
	switch function {
	case ast.Sprintf.Name, ast.InternalTemplateString.Name, ast.JSONMarshal.Name:
		for _, a := range args {
			total += writing(a.Value, most-total)
		}
		return total * sorting(total)
	case ast.ObjectSubset.Name:
		return total + subsetting(args[0].Value, args[1].Value, most)
	}
	if zoned(function) > 0 {
		return stepsPerTime + timePerByte*total
	}
	return total + growthOf(function, args, most)
}

// matching returns the price of matching a regular expression with a text. text is its length in
// bytes. For each byte the price counts the expression's instructions and one value for a match.
func (m *meters) matching(pattern *ast.Term, text int) int {
	instructions := condition.MaxInstructions
	if s, ok := pattern.Value.(ast.String); ok {
		if n, ok := m.programs[string(s)]; ok {
			instructions = n
		}
	}
	return text * (instructions + termBytes)
}

// growthOf bounds the bytes that a call makes, if its function can make much more than it reads.
func growthOf(function string, args []*ast.Term, most int) int {
	switch function {
	case ast.NumbersRange.Name, ast.NumbersRangeStep.Name:
		return rangeBytes(args, most)
	case ast.Split.Name:
		return termBytes * occurrences(args[0], args[1])
	case ast.Replace.Name:
		return occurrences(args[0], args[1]) * textBytes(args[2])
	case ast.Concat.Name:
		return textBytes(args[0]) * members(args[1])
	case ast.ReplaceN.Name:
		return (textBytes(args[1]) + 1) * longestValue(args[0])
	case ast.JSONUnmarshal.Name:
		return termBytes * textBytes(args[0])
	}
	return 0
}

// rangeBytes returns the bytes of the numbers from args[0] to args[1]. It stops above most.
func rangeBytes(args []*ast.Term, most int) int {
	from, to := wholeNumber(args[0]), wholeNumber(args[1])
	if from == nil || to == nil {
		return 0 // the function refuses it
	}
	count := new(big.Int).Sub(to, from)
	count.Abs(count)
	if len(args) > 2 {
		if step := wholeNumber(args[2]); step != nil && step.Sign() > 0 {
			count.Quo(count, step)
		}
	}
	if !count.IsInt64() || count.Int64() >= int64(most)/termBytes {
		return most + 1
	}
	return termBytes * int(count.Int64()+1)
}

// wholeNumber returns t as an integer, or nil if t is not an integer. The text of a number is short.
// It has no exponent, because OPA writes exponents out.
func wholeNumber(t *ast.Term) *big.Int {
	n, ok := t.Value.(ast.Number)
	if !ok {
		return nil
	}
	i, ok := new(big.Int).SetString(string(n), 10)
	if !ok {
		return nil
	}
	return i
}

// occurrences bounds how often a function finds part in text.
func occurrences(text, part *ast.Term) int {
	s, ok1 := text.Value.(ast.String)
	p, ok2 := part.Value.(ast.String)
	switch {
	case !ok1 || !ok2:
		return 0 // the function refuses it
	case p == "":
		return utf8.RuneCountInString(string(s)) + 1
	}
	return strings.Count(string(s), string(p)) + 1
}

func textBytes(t *ast.Term) int {
	s, _ := t.Value.(ast.String)
	return len(s)
}

// members counts the elements of a list or a set.
func members(t *ast.Term) int {
	switch v := t.Value.(type) {
	case *ast.Array:
		return v.Len()
	case ast.Set:
		return v.Len()
	}
	return 0
}

// longestValue returns the length of the longest text in the values of an object.
func longestValue(t *ast.Term) int {
	longest := 0
	if o, ok := t.Value.(ast.Object); ok {
		o.Foreach(func(_, v *ast.Term) { longest = max(longest, textBytes(v)) })
	}
	return longest
}
