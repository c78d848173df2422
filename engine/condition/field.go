package condition

import (
	"fmt"
	"slices"
	"strings"
)

// FieldID is the index of a field in the table of fields.
type FieldID uint8

// The fields of an evaluation.
const (
	IntentID FieldID = iota
	PolicyID
	AgentID
	ActionType
	Resource
	Cost
	CostAmount
	CostCurrency
	Metadata
	IssuedAt
	// DecidedAt is the time of the decision, which no member of the intent sets.
	DecidedAt
	GovernedAgentID
	GovernedAgentStatus
	PolicyPolicyID
	PolicyVersion
	PolicyOrganizationID
	PolicyAgentID
	PolicyStatus
	// Only the checks of policies and sessions read UsageExceeded, OrganizationStopped, RequireRegistered,
	// SessionClosed, SessionExpired and SessionOwn.
	UsageExceeded
	OrganizationStopped
	RequireRegistered
	SessionClosed
	SessionExpired
	SessionOwn

	// AgentNames has all names of the agent: see [Node.AsksNames]. AgentName is the one of them for
	// which a condition in CEL is evaluated.
	AgentNames
	AgentName

	// MetadataValue is the value of one metadata key. Item is one item of a metadata value that is
	// read as a list.
	MetadataValue
	Item
	// CounterValue is the value of a [Counter].
	CounterValue

	fieldCount
)

// Kind is the way in which a condition reads a field.
type Kind uint8

// The kinds.
const (
	Text Kind = iota
	Int
	// Time is a text that is an RFC 3339 time. It is compared as a time.
	Time
	// Bool is true or false.
	Bool
	// Digits is a text that CEL's int() can read: a decimal integer of 64 bits. It is compared as a
	// number. If int() cannot read the text, a condition treats the field as absent.
	Digits
	// Decimal is a text that is compared as a decimal number. The comparison is an error if the
	// text is not a decimal.
	Decimal
	// Size is the number of items of a text that is read as a list.
	Size
	// Object can only be tested for existence.
	Object
)

// fieldRow holds the facts about a field.
type fieldRow struct {
	// name is the field's name in match objects and trees. It is empty if they cannot name the
	// field.
	name string
	// path is the field's path in CEL and, below input, in Rego.
	path string
	kind Kind
	// size is the greatest length of a text in bytes, or the greatest number of members of an
	// object.
	size uint64
	// owner is a field without which this field cannot exist. For most fields owner is the field
	// itself.
	owner FieldID
	// optional says that some intents lack the field.
	optional bool
	// literal says that the field's texts never contain a `*`. A `*` in a constant can then only
	// be meant as a pattern.
	literal bool
	// glob is the operator for a glob over the field in match objects and trees.
	glob Operator
	// form is the form of the field's texts in an intent.
	form Form
	// enum has all texts that the field can have. It is nil if the field can have any text.
	enum []string
	// admits returns an error if the field can never equal a text. The error says why. If admits is
	// nil, the field can equal any text.
	admits func(string) error
}

// Form is the form that a text of an intent must have.
type Form uint8

// The forms of texts.
const (
	// NameForm is one line without control characters or invisible characters.
	NameForm Form = iota
	UUIDForm
	ActionForm
	ResourceForm
	TimeForm
)

// Member is a text member of an intent's document.
type Member struct {
	ID       FieldID
	Name     string // the name in the document
	Path     string // the path in CEL and Rego, such as "intent.agent_id"
	Form     Form
	Size     int // the greatest length in bytes
	Optional bool
}

// Members has all text members of an intent, in the order of the table.
var Members = members()

func members() (all []Member) {
	for id := range UsageExceeded {
		row := &fields[id]
		name, isIntent := strings.CutPrefix(row.path, "intent.")
		if isIntent && !strings.Contains(name, ".") && (row.kind == Text || row.kind == Time) {
			//nolint:gosec // bounded by the table
			all = append(all,
				Member{ID: id, Name: name, Path: row.path, Form: row.form, Size: int(row.size), Optional: row.optional})
		}
	}
	return all
}

// MemberNamed returns the member called name.
func MemberNamed(name string) (*Member, bool) {
	for i := range Members {
		if Members[i].Name == name {
			return &Members[i], true
		}
	}
	return nil, false
}

// fields is the table of fields. It has each value of an intent, its agent and its policy that a
// condition or a check can read.
var fields = [fieldCount]fieldRow{
	IntentID: {name: "intent_id", path: "intent.intent_id", size: 36, glob: Glob, form: UUIDForm,
		admits: admitsUUID},
	PolicyID: {name: "policy_id", path: "intent.policy_id", size: 36, glob: Glob, form: UUIDForm,
		admits: admitsUUID},
	AgentID: {name: "agent_id", path: "intent.agent_id", size: MaxLabel, glob: Glob, literal: true},
	ActionType: {name: "action_type", path: "intent.action_type", size: MaxName, glob: ActionGlob,
		form: ActionForm, literal: true},
	Resource: {name: "resource", path: "intent.resource", size: MaxText, glob: ResourceGlob,
		form: ResourceForm, literal: true, admits: admitsResource},
	Cost: {name: "cost", path: "intent.cost", kind: Object, size: 2, optional: true, owner: Cost},
	CostAmount: {name: "cost.amount_minor", path: "intent.cost.amount_minor", kind: Int, size: 1,
		optional: true, owner: Cost},
	CostCurrency: {name: "cost.currency", path: "intent.cost.currency", size: 3, glob: Glob, optional: true,
		owner: Cost, admits: admitsCurrency},
	Metadata: {name: "metadata", path: "intent.metadata", kind: Object, size: MaxMetadataKeys,
		optional: true, owner: Metadata},
	IssuedAt:        {name: "issued_at", path: "intent.issued_at", kind: Time, size: MaxName, form: TimeForm},
	DecidedAt:       {name: "decided_at", path: "decided_at", kind: Time, size: MaxName, form: TimeForm},
	GovernedAgentID: {name: "agent.id", path: "agent.id", size: MaxLabel, glob: Glob, literal: true},
	GovernedAgentStatus: {name: "agent.status", path: "agent.status", size: 16, glob: Glob,
		enum: []string{"active", "disabled", "unregistered"}},
	PolicyPolicyID: {name: "policy.policy_id", path: "policy.policy_id", size: 36, glob: Glob,
		admits: admitsUUID},
	PolicyVersion:        {name: "policy.version", path: "policy.version", kind: Int, size: 1},
	PolicyOrganizationID: {name: "policy.organization_id", path: "policy.organization_id", size: MaxName, glob: Glob},
	PolicyAgentID:        {name: "policy.agent_id", path: "policy.agent_id", size: MaxLabel, glob: Glob},
	PolicyStatus: {name: "policy.status", path: "policy.status", size: 16, glob: Glob,
		enum: []string{"active", "suspended", "revoked"}},
	UsageExceeded:       {path: "usage.exceeded", kind: Bool, size: 1},
	OrganizationStopped: {path: "organization.stopped", kind: Bool, size: 1},
	RequireRegistered:   {path: "deployment.require_registered_agents", kind: Bool, size: 1},
	SessionClosed:       {path: "session.closed", kind: Bool, size: 1},
	SessionExpired:      {path: "session.expired", kind: Bool, size: 1},
	SessionOwn:          {path: "session.own", kind: Bool, size: 1},
	AgentNames:          {path: "agent.names", size: MaxLabel},
	AgentName:           {path: "agent.name", size: MaxLabel},
	MetadataValue:       {path: "intent.metadata", size: MaxText, glob: Glob, optional: true, owner: MetadataValue},
	Item:                {path: "item", size: MaxText, glob: Glob},
	CounterValue:        {path: "counters", kind: Int, size: 1, optional: true, owner: CounterValue},
}

// Field is a field and the kind by which a condition reads the field.
type Field struct {
	ID   FieldID
	Kind Kind
	// Key is the metadata key of a MetadataValue, or the Key of a CounterValue's Counter.
	Key string
	// Counter is the counter of a CounterValue.
	Counter *Counter
}

// FieldOf returns a field with its own kind.
func FieldOf(id FieldID) Field { return Field{ID: id, Kind: fields[id].kind} }

// MetadataKey returns the value of a metadata key.
func MetadataKey(key string) Field { return Field{ID: MetadataValue, Key: key} }

func (f Field) row() *fieldRow { return &fields[f.ID] }

// Path is the field's path in CEL. Rego has the same path below input. A metadata key is not part
// of the path.
func (f Field) Path() string { return f.row().path }

// Optional reports whether some intents lack the field.
func (f Field) Optional() bool { return f.row().optional }

// Owner returns the field without which f cannot exist. For the members of the cost this is the
// cost, for any other field it is f.
func (f Field) Owner() Field {
	if f.isKeyed() {
		return f
	}
	return FieldOf(f.row().owner)
}

func (f Field) as(kind Kind) Field {
	f.Kind = kind
	return f
}

// isKeyed reports whether f is a member of a map.
func (f Field) isKeyed() bool { return f.ID == MetadataValue || f.ID == CounterValue }

func (f Field) isMetadata() bool { return f.ID == MetadataValue }

// isFree reports whether callers can write any text into f.
func (f Field) isFree() bool { return f.ID == MetadataValue || f.ID == Item }

// Label returns f's name in messages to authors.
func (f Field) Label() string {
	switch f.ID {
	case MetadataValue:
		return fields[Metadata].name + "." + f.Key
	case Item:
		return f.Path()
	case CounterValue:
		return f.Key
	case AgentNames, AgentName:
		return fields[AgentID].name
	}
	return f.row().name
}

// describe returns the kind of f's value, for messages.
func (f Field) describe() string {
	switch f.Kind {
	case Int, Size:
		return "an integer"
	case Time:
		return "an RFC 3339 time"
	case Object:
		return "an object"
	}
	return "a string"
}

// lookupField returns the field with a name of match objects and trees.
func lookupField(name string) (Field, error) {
	short := strings.TrimPrefix(name, "intent.")
	if key, ok := strings.CutPrefix(short, fields[Metadata].name+"."); ok && key != "" {
		return MetadataKey(key), nil
	}
	var names []string
	for f := range namedFields {
		if slices.Contains(f.names(), name) {
			return f, nil
		}
		names = append(names, f.row().name)
	}
	want := strings.Join(names, ", ") + ", metadata.<key>"
	if meant := Meant(name, names); meant != "" && name != fields[Metadata].name+"." {
		return Field{}, fmt.Errorf("unknown field %q: %s%s?", name, didYouMean, meant)
	}
	return Field{}, fmt.Errorf("unknown field %q: want one of %s", name, want)
}

// namedFields yields the fields that match objects and trees can name. It does not yield metadata
// keys.
func namedFields(yield func(f Field) bool) {
	for id := range MetadataValue {
		if fields[id].name != "" && !yield(FieldOf(id)) {
			return
		}
	}
}

// names returns the names of f in match objects and trees.
func (f Field) names() []string {
	name := f.row().name
	if strings.HasPrefix(f.row().path, "intent.") {
		return []string{name, "intent." + name}
	}
	return []string{name}
}

// FieldAt returns the field of a member of the input in Rego, such as intent, metadata, env.
func FieldAt(path []string) (Field, bool) {
	if len(path) == 3 && path[0]+"."+path[1] == fields[Metadata].path {
		return MetadataKey(path[2]), true
	}
	if slices.ContainsFunc(path, func(name string) bool { return strings.Contains(name, ".") }) {
		return Field{}, false
	}
	return fieldByPath(strings.Join(path, "."))
}

func fieldByPath(path string) (Field, bool) {
	for id := range MetadataValue {
		if fields[id].path == path {
			return FieldOf(id), true
		}
	}
	return Field{}, false
}
