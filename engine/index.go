package engine

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"writ.example/writ/engine/condition"
)

// ruleIndex finds the rules that can match an intent without evaluating the other rules. A rule is
// filed under one equality or one prefix that its condition demands. If the intent does not meet the
// demand, the condition is false. So the index misses neither a match nor an error. A rule whose
// condition demands nothing is always evaluated.
//
// In CEL a comparison with a missing field is an error. So a rule with such a comparison is filed
// both under the value and under "absent".
type ruleIndex struct {
	// always has the rules that are always evaluated.
	always bitset
	fields []fieldIndex
	// keys has the metadata keys under which rules are filed. absent has the keys under which
	// rules are filed for intents without that key.
	keys      map[string]*valueIndex
	absent    []string
	resources resourceIndex
}

// valueIndex files rules under the values of one field.
type valueIndex struct {
	values   map[string][]int32
	prefixes prefixIndex
	absent   []int32
}

// prefixIndex files rules under the beginnings of a text.
type prefixIndex struct {
	rules map[string][]int32
	// lengths has the lengths of the prefixes in ascending order, each once.
	lengths []int
}

// maxPrefix is the number of bytes of a prefix that the index uses. It bounds the look-ups for one
// text.
const maxPrefix = 32

// fieldIndex is the valueIndex of a field.
type fieldIndex struct {
	id condition.FieldID
	valueIndex
}

// resourceIndex files rules under exact resources, under directories that contain the resource, and
// under its beginnings.
type resourceIndex struct {
	used     bool
	exact    map[string][]int32
	within   map[string][]int32
	prefixes prefixIndex
	// allows says that a rule in Rego that allows is filed. Such a rule is asked for the readings of
	// an allowance.
	allows bool
}

// newRuleIndex files each rule under one of its demands: the one that the fewest intents are
// likely to meet. rules is in the deciding order.
func newRuleIndex(rules []*CompiledRule) ruleIndex {
	seen := demanded{}
	for _, r := range rules {
		for _, d := range r.demands {
			seen.add(d)
		}
	}
	x := ruleIndex{always: make(bitset, (len(rules)+63)/64), keys: map[string]*valueIndex{}}
	for i, r := range rules {
		if len(r.demands) == 0 {
			x.always.add(i)
			continue
		}
		best := slices.MinFunc(r.demands, func(a, b condition.Demand) int {
			return cmp.Compare(seen.likelihood(a), seen.likelihood(b))
		})
		x.file(int32(i), best) //nolint:gosec // no organization has 2^31 rules
		if best.Field.ID == condition.Resource && r.rego != nil && r.outcome == Allow {
			x.resources.allows = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(x.keys)) {
		if len(x.keys[key].absent) > 0 {
			x.absent = append(x.absent, key)
		}
	}
	return x
}

func (x *ruleIndex) file(i int32, d condition.Demand) {
	switch d.Field.ID {
	case condition.Resource:
		x.resources.file(i, d)
	case condition.MetadataValue:
		if x.keys[d.Field.Key] == nil {
			x.keys[d.Field.Key] = &valueIndex{}
		}
		x.keys[d.Field.Key].file(i, d)
	default:
		x.fieldIndex(d.Field).file(i, d)
	}
}

func (x *ruleIndex) fieldIndex(f condition.Field) *fieldIndex {
	for i := range x.fields {
		if x.fields[i].id == f.ID {
			return &x.fields[i]
		}
	}
	x.fields = append(x.fields, fieldIndex{id: f.ID})
	return &x.fields[len(x.fields)-1]
}

func (v *valueIndex) file(i int32, d condition.Demand) {
	if v.values == nil {
		v.values = map[string][]int32{}
	}
	for _, value := range d.Values {
		v.values[value] = append(v.values[value], i)
	}
	v.prefixes.file(i, d)
	if d.Absent {
		v.absent = append(v.absent, i)
	}
}

func (x *resourceIndex) file(i int32, d condition.Demand) {
	if !x.used {
		*x = resourceIndex{used: true, exact: map[string][]int32{}, within: map[string][]int32{}}
	}
	for _, value := range d.Values {
		x.exact[value] = append(x.exact[value], i)
	}
	for _, dir := range d.Within {
		x.within[dir] = append(x.within[dir], i)
	}
	x.prefixes.file(i, d)
}

func (x *prefixIndex) file(i int32, d condition.Demand) {
	for _, prefix := range d.Prefixes {
		if x.rules == nil {
			x.rules = map[string][]int32{}
		}
		prefix = prefix[:min(len(prefix), maxPrefix)]
		x.rules[prefix] = append(x.rules[prefix], i)
		if at, found := slices.BinarySearch(x.lengths, len(prefix)); !found {
			x.lengths = slices.Insert(x.lengths, at, len(prefix))
		}
	}
}

// demanded counts the texts that rules demand of each field.
type demanded map[condition.Field]*demandedTexts

type demandedTexts struct {
	times map[string]int
	all   int
}

func (s demanded) add(d condition.Demand) {
	f := s[d.Field]
	if f == nil {
		f = &demandedTexts{times: map[string]int{}}
		s[d.Field] = f
	}
	for text := range texts(d) {
		f.times[text]++
		f.all++
	}
}

// likelihood estimates how likely an intent meets d. It assumes that a text is as frequent among
// intents as among rules, and that half of the intents lack an optional field.
func (s demanded) likelihood(d condition.Demand) float64 {
	f, times := s[d.Field], 0
	for text := range texts(d) {
		times += f.times[text]
	}
	p := float64(times) / float64(f.all+1)
	if d.Absent {
		p += 0.5
	}
	return p
}

// texts yields the texts with which d compares a field.
func texts(d condition.Demand) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range [][]string{d.Values, d.Prefixes, d.Within} {
			for _, text := range list {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// size returns the approximate size of the index in memory, in bytes.
func (x *ruleIndex) size() int {
	size := 8 * len(x.always)
	for i := range x.fields {
		size += x.fields[i].size()
	}
	for key, v := range x.keys {
		size += mapEntryBytes + len(key) + v.size()
	}
	return size + filedSize(x.resources.exact) + filedSize(x.resources.within) + filedSize(x.resources.prefixes.rules)
}

func (v *valueIndex) size() int {
	return filedSize(v.values) + filedSize(v.prefixes.rules) + 4*len(v.absent)
}

// mapEntryBytes is the approximate size of an entry in a map of strings to slices.
const mapEntryBytes = 64

func filedSize(m map[string][]int32) int {
	size := 0
	for value, list := range m {
		size += mapEntryBytes + len(value) + 8*len(list)
	}
	return size
}
