package suite

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/engine"
)

// value is the value of a member of an intent. from is the field of the suite that set it.
type value struct {
	json jsontext.Value
	from string
}

// members has the members of an intent by their paths: action_type, cost.currency, metadata.env. An
// object is stored as its members. An empty object is stored as itself.
type members map[string]value

// objects has the names of the intent's members that are objects. Keys of metadata may have dots.
var objects = []string{"cost", "metadata"}

// intentMembers has the names of the members of an intent.
var intentMembers = engine.MemberNames(reflect.TypeFor[engine.Intent]())

// isPath reports whether an intent can have a member at path.
func isPath(path string) bool {
	name, of, nested := strings.Cut(path, ".")
	switch {
	case !nested:
		return slices.Contains(intentMembers, name)
	case name == "cost":
		return slices.Contains(engine.MemberNames(reflect.TypeFor[engine.Cost]()), of)
	}
	return name == "metadata" && of != ""
}

// set gives the member at path another value, or removes it.
func (m members) set(path string, v value) {
	m.remove(path)
	if name, _, nested := strings.Cut(path, "."); nested {
		delete(m, name) // it may be an empty object, or not an object
	}
	switch nested, ok := membersOf(v.json); {
	case isAbsent(v.json):
	case ok && slices.Contains(objects, path) && len(nested) > 0:
		for name, part := range nested {
			m[path+"."+name] = value{part, v.from + "." + name}
		}
	default:
		m[path] = v
	}
}

// merge is like set. If v is an object, merge sets the members of v one by one and keeps the
// others.
func (m members) merge(path string, v value) {
	nested, ok := membersOf(v.json)
	if !ok || isAbsent(v.json) || len(nested) == 0 || !slices.Contains(objects, path) {
		m.set(path, v)
		return
	}
	for name, part := range nested {
		m.set(path+"."+name, value{part, v.from + "." + name})
	}
}

func (m members) remove(path string) {
	delete(m, path)
	if slices.Contains(objects, path) {
		maps.DeleteFunc(m, func(p string, _ value) bool { return strings.HasPrefix(p, path+".") })
	}
}

// membersOf returns the members of v, if it is an object.
func membersOf(v jsontext.Value) (map[string]jsontext.Value, bool) {
	var nested map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &nested) != nil {
		return nil, false
	}
	return nested, true
}

// json returns the intent in JSON.
func (m members) json() []byte {
	intent := map[string]any{}
	for path, v := range m {
		name, of, nested := strings.Cut(path, ".")
		if !nested {
			intent[path] = v.json
			continue
		}
		object, ok := intent[name].(map[string]jsontext.Value)
		if !ok {
			object = map[string]jsontext.Value{}
			intent[name] = object
		}
		object[of] = v.json
	}
	return encode(intent)
}

// encode writes v in JSON. v was decoded from JSON, so this cannot fail.
func encode(v any) jsontext.Value {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return data
}

// origin returns the field of the suite that set the member at path. If no field did, it returns a
// field that set a member of path, or an object around path.
func (m members) origin(path string) (field string, ok bool) {
	for {
		if v, ok := m[path]; ok {
			return v.from, true
		}
		for _, p := range slices.Sorted(maps.Keys(m)) {
			if strings.HasPrefix(p, path+".") {
				return m[p].from, true
			}
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return "", false
		}
		path = path[:i]
	}
}
