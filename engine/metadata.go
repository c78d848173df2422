package engine

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
)

// orderedMetadata is the metadata as a CEL map that macros walk in the order of
// its keys. Go's order differs each time, and with it how much of the work is done
// before a macro ends early: the same intent could be decided differently.
type orderedMetadata struct {
	traits.Mapper
	keys traits.Lister
}

func newOrderedMetadata(m map[string]string) *orderedMetadata {
	return &orderedMetadata{
		Mapper: types.NewStringStringMap(types.DefaultTypeAdapter, m),
		keys:   types.NewStringList(types.DefaultTypeAdapter, slices.Sorted(maps.Keys(m))),
	}
}

// Iterator implements [traits.Iterable].
func (m *orderedMetadata) Iterator() traits.Iterator { return m.keys.Iterator() }
