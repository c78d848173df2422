package engine

import (
	"cmp"
	"maps"
	"slices"
)

// newRuleIndex files each rule, in the deciding order, under the demand that
// the fewest intents are likely to meet.
func newRuleIndex(rules []*CompiledRule) ruleIndex {
	seen := distinctValues{}
	for _, r := range rules {
		for _, d := range r.cond.demands {
			seen.add(d)
		}
	}
	x := ruleIndex{always: make(bitset, (len(rules)+63)/64), keys: map[string]*valueIndex{}}
	for i, r := range rules {
		if len(r.cond.demands) == 0 {
			x.always.add(i)
			continue
		}
		best := slices.MinFunc(r.cond.demands, func(a, b demand) int {
			return cmp.Compare(seen.likelihood(a), seen.likelihood(b))
		})
		x.file(int32(i), best) //nolint:gosec // no organization has 2^31 rules
	}
	for _, key := range slices.Sorted(maps.Keys(x.keys)) {
		if len(x.keys[key].absent) > 0 {
			x.absent = append(x.absent, key)
		}
	}
	return x
}

// file files rule i under d.
func (x *ruleIndex) file(i int32, d demand) {
	switch {
	case d.field.name == resourceField:
		x.resources.file(i, d)
	case d.field.keyed:
		if x.keys[d.field.key] == nil {
			x.keys[d.field.key] = &valueIndex{}
		}
		x.keys[d.field.key].file(i, d)
	default:
		x.fieldIndex(d.field).file(i, d)
	}
}

func (x *ruleIndex) fieldIndex(f field) *fieldIndex {
	v, _ := findVariable(f.path)
	for i := range x.fields {
		if x.fields[i].id == v.id {
			return &x.fields[i]
		}
	}
	x.fields = append(x.fields, fieldIndex{id: v.id})
	return &x.fields[len(x.fields)-1]
}

func (v *valueIndex) file(i int32, d demand) {
	if v.values == nil {
		v.values = map[string][]int32{}
	}
	for _, value := range d.values {
		v.values[value] = append(v.values[value], i)
	}
	if d.absent {
		v.absent = append(v.absent, i)
	}
}

func (x *resourceIndex) file(i int32, d demand) {
	if !x.used {
		*x = resourceIndex{used: true, exact: map[string][]int32{}, within: map[string][]int32{}}
	}
	for _, value := range d.values {
		x.exact[value] = append(x.exact[value], i)
	}
	for _, dir := range d.within {
		x.within[dir] = append(x.within[dir], i)
	}
}

// distinctValues counts, for each field, the values that any rule demands of it.
type distinctValues map[field]map[string]struct{}

func (s distinctValues) add(d demand) {
	if s[d.field] == nil {
		s[d.field] = map[string]struct{}{}
	}
	for _, list := range [][]string{d.values, d.within} {
		for _, value := range list {
			s[d.field][value] = struct{}{}
		}
	}
}

// likelihood guesses how likely an intent meets d: its values, and any other,
// are taken to be equally frequent, and an optional field to be absent from
// half of the intents.
func (s distinctValues) likelihood(d demand) float64 {
	p := float64(len(d.values)+len(d.within)) / float64(len(s[d.field])+1)
	if d.absent {
		p += 0.5
	}
	return p
}

// size returns about how many bytes the index holds on to.
func (x *ruleIndex) size() int {
	size := 8 * len(x.always)
	for i := range x.fields {
		size += x.fields[i].size()
	}
	for key, v := range x.keys {
		size += mapEntryBytes + len(key) + v.size()
	}
	return size + filedSize(x.resources.exact) + filedSize(x.resources.within)
}

func (v *valueIndex) size() int { return filedSize(v.values) + 4*len(v.absent) }

// mapEntryBytes is about what an entry of a map of strings to slices takes.
const mapEntryBytes = 64

func filedSize(m map[string][]int32) int {
	size := 0
	for value, list := range m {
		size += mapEntryBytes + len(value) + 8*len(list)
	}
	return size
}
