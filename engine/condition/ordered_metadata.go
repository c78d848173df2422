package condition

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
	metadata map[string]string
	keys     traits.Lister // nil until the first macro asks: most conditions ask for keys by name
}

func newOrderedMetadata(m map[string]string) *orderedMetadata {
	return &orderedMetadata{
		Mapper:   types.NewStringStringMap(types.DefaultTypeAdapter, m),
		metadata: m,
	}
}

// Iterator implements [traits.Iterable].
func (m *orderedMetadata) Iterator() traits.Iterator {
	if m.keys == nil {
		m.keys = types.NewStringList(types.DefaultTypeAdapter, slices.Sorted(maps.Keys(m.metadata)))
	}
	return m.keys.Iterator()
}
