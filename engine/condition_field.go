package engine

import (
	"fmt"
	"slices"
	"strings"
)

// fieldKind is what a field holds.
type fieldKind uint8

const (
	kindString fieldKind = iota
	kindInt
	// kindTime is a string holding an RFC 3339 time; it is compared as a time.
	kindTime
	// kindDigits is a string holding a decimal integer of 64 bits, as CEL's int()
	// reads it; it is compared as a number, and exists where it can be read.
	kindDigits
	// kindDecimal is a string holding a decimal; it is compared as a number, and
	// is an error where it is none.
	kindDecimal
	// kindSize is how many items a string holds.
	kindSize
	// kindObject can only be asked whether it exists.
	kindObject
)

// field is a field that a condition can ask about.
type field struct {
	// name is the field's name in forms 1 and 2, without the optional "intent."
	// and, for metadata, without the key.
	name string
	// path is the field's path in CEL and, below input, in Rego.
	path string
	kind fieldKind
	// keyed fields are the value of the metadata key named key.
	keyed bool
	key   string
}

const (
	actionField   = "action_type"
	resourceField = "resource"
	metadataField = "metadata"
	metadataPath  = "intent.metadata"
	itemField     = "item"
)

// fields lists every field but the keys of the metadata. All but the metadata,
// the cost and its members are present in every intent.
func fields() []field {
	return []field{
		{name: actionField, path: "intent.action_type"},
		{name: "agent_id", path: "intent.agent_id"},
		{name: "policy_id", path: "intent.policy_id"},
		{name: "intent_id", path: "intent.intent_id"},
		{name: resourceField, path: "intent.resource"},
		{name: "issued_at", path: "intent.issued_at", kind: kindTime},
		cost(),
		{name: "cost.amount_minor", path: "intent.cost.amount_minor", kind: kindInt},
		{name: "cost.currency", path: "intent.cost.currency"},
		{name: metadataField, path: metadataPath, kind: kindObject},
		{name: "agent.id", path: "agent.id"},
		{name: "agent.status", path: "agent.status"},
		{name: "policy.policy_id", path: "policy.policy_id"},
		{name: "policy.version", path: "policy.version", kind: kindInt},
		{name: "policy.organization_id", path: "policy.organization_id"},
		{name: "policy.agent_id", path: "policy.agent_id"},
		{name: "policy.status", path: "policy.status"},
	}
}

// lookupField returns the field that forms 1 and 2 call name.
func lookupField(name string) (field, error) {
	short := strings.TrimPrefix(name, "intent.")
	if key, ok := strings.CutPrefix(short, metadataField+"."); ok && key != "" {
		return metadata(key), nil
	}
	known := fields()
	i := slices.IndexFunc(known, func(f field) bool { return f.name == short })
	if i < 0 || short != name && !strings.HasPrefix(known[i].path, "intent.") {
		return field{}, fmt.Errorf("unknown field %q: want one of %s", name, fieldNames())
	}
	return known[i], nil
}

// fieldByPath returns the field whose path in CEL is path.
func fieldByPath(path string) (field, bool) {
	known := fields()
	i := slices.IndexFunc(known, func(f field) bool { return f.path == path })
	if i < 0 {
		return field{}, false
	}
	return known[i], true
}

func metadata(key string) field {
	return field{name: metadataField, path: metadataPath, keyed: true, key: key}
}

// item is an item of the list that a metadata value is, within opEach and opSome.
func item() field { return field{name: itemField, path: itemField} }

func (f field) as(kind fieldKind) field {
	f.kind = kind
	return f
}

func cost() field {
	return field{name: "cost", path: "intent.cost", kind: kindObject}
}

func fieldNames() string {
	var b strings.Builder
	for _, f := range fields() {
		b.WriteString(f.name + ", ")
	}
	return b.String() + "metadata.<key>"
}

func (f field) inCost() bool { return strings.HasPrefix(f.name, "cost") }

func (f field) optional() bool { return f.name == metadataField || f.inCost() }

// identifies reports whether f names something that is never spelled with a
// `*`, so that one in a constant can only be meant as a pattern.
func (f field) identifies() bool {
	switch f.name {
	case actionField, "agent_id", "agent.id", resourceField:
		return true
	}
	return false
}

func (f field) isUUID() bool {
	return f.name == "intent_id" || f.name == "policy_id" || f.name == "policy.policy_id"
}

// label is f as its author writes it.
func (f field) label() string {
	if f.keyed {
		return f.name + "." + f.key
	}
	return f.name
}

// describe names what f holds, in messages.
func (f field) describe() string {
	switch f.kind {
	case kindInt, kindSize:
		return "an integer"
	case kindTime:
		return "an RFC 3339 time"
	case kindObject:
		return "an object"
	}
	return "a string"
}

// globOperator is the kind of glob that forms 1 and 2 mean of f.
func (f field) globOperator() operator {
	switch f.name {
	case actionField:
		return opActionGlob
	case resourceField:
		return opResourceGlob
	}
	return opGlob
}
