package engine

import (
	"math/bits"

	"writ/engine/condition"
)

// ruleIndex finds the rules that an intent can concern without asking the
// others. A rule is filed under one equality that its condition demands: where
// the intent does not have the value, the condition is false, so that neither
// its match nor its error is overlooked. A rule whose condition demands none is
// asked always.
//
// Conditions in CEL can demand a value or else the absence of the field, whose
// comparison is an error then: they are filed under both.
type ruleIndex struct {
	// always holds the rules to ask always.
	always bitset
	fields []fieldIndex
	// keys are the metadata keys that rules are filed under; absent are those
	// of them with rules for an intent without the key.
	keys      map[string]*valueIndex
	absent    []string
	resources resourceIndex
}

// valueIndex files rules under the values of one field.
type valueIndex struct {
	values map[string][]int32
	absent []int32
}

// fieldIndex is the valueIndex of a field.
type fieldIndex struct {
	id condition.FieldID
	valueIndex
}

// candidates adds to set, which is empty, every rule that can match the intent
// or be an error of it.
func (x *ruleIndex) candidates(f *condition.Frame, set bitset) bitset {
	copy(set, x.always)
	for i := range x.fields {
		value, ok := f.Text(x.fields[i].id)
		x.fields[i].add(set, value, ok)
	}
	if len(x.keys) > 0 {
		x.addMetadata(f.Metadata(), set)
	}
	if x.resources.used {
		for i := range f.Readings().BlockLen() {
			x.resources.add(set, f.Readings().BlockAt(i).Text)
		}
	}
	return set
}

func (x *ruleIndex) addMetadata(metadata map[string]string, set bitset) {
	for key, value := range metadata {
		if v := x.keys[key]; v != nil {
			set.addAll(v.values[value])
		}
	}
	for _, key := range x.absent {
		if _, ok := metadata[key]; !ok {
			set.addAll(x.keys[key].absent)
		}
	}
}

func (v *valueIndex) add(set bitset, value string, ok bool) {
	if !ok {
		set.addAll(v.absent)
		return
	}
	set.addAll(v.values[value])
}

// resourceIndex files rules under exact resources and under the directories
// that a resource has to be in.
type resourceIndex struct {
	used   bool
	exact  map[string][]int32
	within map[string][]int32
}

func (x *resourceIndex) add(set bitset, resource string) {
	set.addAll(x.exact[resource])
	if len(x.within) == 0 {
		return
	}
	slashes := 0
	for i := 0; i < len(resource) && slashes < condition.MaxDirectories; i++ {
		if resource[i] == '/' {
			slashes++
			set.addAll(x.within[resource[:i+1]])
		}
	}
}

// bitset is a set of rules by their place in the deciding order.
type bitset []uint64

// bitsetBuffer is room on the stack for the bitset of this many rules.
type bitsetBuffer [64]uint64

// sized returns an empty bitset for n rules, in the buffer where it fits.
func (b *bitsetBuffer) sized(n int) bitset {
	words := (n + 63) / 64
	if words > len(b) {
		return make(bitset, words)
	}
	return b[:words]
}

func (b bitset) add(i int) { b[i>>6] |= 1 << (i & 63) }

func (b bitset) addAll(list []int32) {
	for _, i := range list {
		b.add(int(i))
	}
}

// next returns the least member that is at least i, or -1.
func (b bitset) next(i int) int {
	for word := i >> 6; word < len(b); word++ {
		rest := b[word]
		if word == i>>6 {
			rest &= ^uint64(0) << (i & 63)
		}
		if rest != 0 {
			return word<<6 + bits.TrailingZeros64(rest)
		}
	}
	return -1
}
