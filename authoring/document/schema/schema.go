// Package schema makes JSON Schemas (2020-12) of the documents in files: policies, rules, lists,
// intents and suites. Editors use them to complete and check documents. The schemas follow from the
// Go types, their limits, and package condition's tables of fields and operators.
//
// A schema checks only the structure. Package document checks more: patterns, CEL, Rego and lengths
// in bytes. A document that package document accepts always satisfies its schema.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// Kinds has the kinds of schemas. "rules" is an array of rules. Any other kind is one document.
var Kinds = []string{"policy", "rule", "rules", "list", "intent", "suite"}

// RegoKinds has the names of the two files that tools of OPA read: what conditions can call, and the
// schema of their input.
var RegoKinds = []string{"rego-capabilities", "rego-input"}

// Rego returns one of the files of RegoKinds. If tests is true, the capabilities have the functions that
// test files may call.
func Rego(kind string, tests bool) ([]byte, error) {
	switch kind {
	case "rego-capabilities":
		return rego.Capabilities(tests)
	case "rego-input":
		return rego.InputSchema()
	}
	return nil, fmt.Errorf("there is no file %q for OPA: want one of %s", kind, strings.Join(RegoKinds, ", "))
}

type object = map[string]any

// JSON returns the schema of a kind, indented.
func JSON(kind string) ([]byte, error) {
	var s object
	switch kind {
	case "policy":
		s = policy()
	case "rule":
		s = rule()
		s["$defs"] = condition.Schema()
	case "rules":
		defs := condition.Schema()
		defs["rule"] = rule()
		s = object{"type": "array", "items": ref("rule"), "$defs": defs}
	case "list":
		s = list()
	case "intent":
		s = intent()
	case "suite":
		s = suiteFile()
	default:
		return nil, fmt.Errorf("there is no schema of %q: want one of %s", kind, strings.Join(Kinds, ", "))
	}
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "writ: " + kind
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, fmt.Errorf("writing the schema of %s: %w", kind, err)
	}
	return b.Bytes(), nil
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func describe(s object, text string) object {
	s = maps.Clone(s)
	s["description"] = text
	return s
}

// structure returns the schema of a Go type. The schema of a member follows from the type of its
// field. members has further keywords for the members. A field whose JSON tag has no option is
// required.
func structure(t reflect.Type, members map[string]object) object {
	properties := object{}
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "" || name == "-" {
			continue
		}
		member := typed(f.Type)
		maps.Copy(member, members[name])
		properties[name] = member
		if options == "" {
			required = append(required, name)
		}
	}
	if required != nil {
		s["required"] = required
	}
	return s
}

func typed(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Pointer:
		return typed(t.Elem())
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int64, reflect.Int:
		return object{"type": "integer"}
	case reflect.Slice:
		if t == reflect.TypeFor[jsontext.Value]() {
			return object{}
		}
		return object{"type": "array", "items": typed(t.Elem())}
	case reflect.Struct:
		if t == reflect.TypeFor[time.Time]() {
			return object{"type": "string", "format": "date-time"}
		}
		return object{"type": "object"}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": typed(t.Elem())}
	}
	return object{"type": "string"}
}

func text(limit int) object { return object{"minLength": 1, "maxLength": limit} }

var (
	nonEmpty = object{"type": "string", "minLength": 1}
	uuid     = object{"format": "uuid"}
	amount   = object{"minimum": 0, "maximum": condition.MaxInteger}
	currency = object{"pattern": "^[A-Z]{3}$"}

	listName   = object{"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]*$", "maxLength": condition.MaxName}
	listValues = object{"type": "array", "maxItems": engine.MaxListValues, "items": listValue}
	listValue  = object{"type": "string", "minLength": 1, "maxLength": condition.MaxLabel}
)

func actionTypes(extra string) string {
	return fmt.Sprintf("^[A-Za-z0-9._:/+@%s-]{1,%d}$", extra, condition.MaxName)
}

func policy() object {
	list := func(items object, description string) object {
		return object{"maxItems": condition.MaxEntries, "items": items, "description": description}
	}
	action := object{"type": "string", "pattern": actionTypes("*")}
	return structure(reflect.TypeFor[engine.ActionPolicy](), map[string]object{
		"policy_id":       uuid,
		"version":         {"minimum": 1, "maximum": condition.MaxInteger},
		"organization_id": text(condition.MaxName),
		"agent_id": describe(text(condition.MaxLabel),
			"The agent that the policy governs, or a glob; another agent's intents need an approval."),
		"allowed_action_types": list(action,
			"What is allowed unless it is denied; * stands for any part. An empty list allows nothing."),
		"denied_action_types": list(action, "What is denied; it wins over what is allowed."),
		"allowed_resource_patterns": list(nonEmpty,
			"Where it is not empty, every reading of the resource must match one."),
		"blocked_resource_patterns": list(nonEmpty, "A resource that matches one in any reading is denied."),
		"max_cost_minor":            describe(amount, "The greatest cost that is allowed, inclusive, in minor units."),
		"currency":                  describe(currency, "The currency that costs must have, where a cost is checked."),
		"status": {"enum": []string{string(engine.StatusActive), string(engine.StatusSuspended),
			string(engine.StatusRevoked)}},
	})
}

// list returns the schema of a list in a file. The members that the server adds are optional.
func list() object {
	s := structure(reflect.TypeFor[engine.List](), map[string]object{
		"name":   listName,
		"values": describe(listValues, "Sorted, each once, when they are pulled. Lengths are in bytes."),
		"data": {"not": object{"type": "null"}, "additionalProperties": true,
			"description": "A document of any form without null, in the place of values."},
		"version": {"minimum": 1},
	})
	s["required"] = []string{"name"}
	s["oneOf"] = []any{object{"required": []string{"values"}}, object{"required": []string{"data"}}}
	return s
}

func intent() object {
	members := map[string]object{
		"cost": structure(reflect.TypeFor[engine.Cost](),
			map[string]object{"amount_minor": amount, "currency": currency}),
		"metadata": {
			"maxProperties":        condition.MaxMetadataKeys,
			"propertyNames":        object{"type": "string", "minLength": 1, "maxLength": condition.MaxName},
			"additionalProperties": object{"type": "string", "maxLength": condition.MaxText},
			"description": "What rules may look at. Keys that begin with fact. are statements of the " +
				"integration.",
		},
	}
	for i := range condition.Members {
		m := &condition.Members[i]
		switch m.Form {
		case condition.UUIDForm:
			members[m.Name] = uuid
		case condition.ActionForm:
			members[m.Name] = object{"pattern": actionTypes("")}
		case condition.TimeForm:
			members[m.Name] = object{"format": "date-time"}
		default:
			members[m.Name] = text(m.Size)
		}
	}
	return structure(reflect.TypeFor[engine.Intent](), members)
}

func rule() object {
	wire := func(limit int) object {
		return object{"type": "string", "minLength": 1, "maxLength": limit, "contentMediaType": "application/json"}
	}
	s := structure(reflect.TypeFor[engine.Rule](), map[string]object{
		"name":        text(condition.MaxLabel),
		"description": {"maxLength": condition.MaxText},
		"priority": {
			"minimum": -engine.MaxSetting, "maximum": engine.MaxSetting, "default": engine.DefaultPriority,
			"description": "The greatest among the matching rules decides; on a tie the most restrictive.",
		},
		"isActive": {"default": true},
	})
	properties := s["properties"].(object)
	properties["condition"] = object{
		"anyOf":       []any{ref("condition"), wire(condition.MaxCondition), regoFile()},
		"description": `A match object, a tree, {"cel": …} or {"rego": …}, a text or {"file": "NAME.rego"}; or its JSON in a string, as the API has it.`,
	}
	properties["action"] = object{"anyOf": []any{action(), wire(condition.MaxText)},
		"description": "What the rule decides, and why."}
	s["required"] = []string{"name", "condition", "action"} // the server sets the others, or they have a default
	return s
}

// regoFile returns the schema of a condition whose Rego is in a file.
func regoFile() object {
	name := object{"type": "string", "pattern": `\.rego$`, "not": object{"pattern": `_test\.rego$`},
		"description": "The path of a Rego module, from the directory of this file."}
	one := func(member string, s object) object {
		return object{"type": "object", "additionalProperties": false, "required": []string{member},
			"properties": object{member: s}}
	}
	return one("rego", one("file", name))
}

func action() object {
	decision := object{"enum": []string{"allow", "deny", "approval_required", "block", "wait", "require_approval"}}
	var forms []any
	for _, name := range []string{"decision", "effect", "type", "outcome"} {
		forms = append(forms, object{
			"type": "object", "additionalProperties": false, "required": []string{name},
			"properties": object{name: decision, "reason": object{"type": "string", "maxLength": engine.MaxReason}},
		})
	}
	return object{"anyOf": forms}
}
