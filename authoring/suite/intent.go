package suite

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
)

// value is the value of an intent's member. Its other field names the suite's field that set the
// value.
type value struct {
	json jsontext.Value
	from string
}

// members has the members of an intent by path, such as action_type, cost.currency or metadata.env.
// For an object, each of its members is stored. Only an empty object is stored itself.
type members map[string]value

// objects has the names of the members that are objects. A key of metadata may contain dots.
var objects = []string{"cost", "metadata"}

// intentMembers has the names of an intent's members.
var intentMembers = engine.MemberNames(reflect.TypeFor[engine.Intent]())

// isPath reports whether an intent can have a member with this path.
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

// set sets or removes the member at path.
func (m members) set(path string, v value) {
	m.remove(path)
	if name, _, nested := strings.Cut(path, "."); nested {
		delete(m, name) // it may be there as an empty object or as another value
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

// merge works like set. If v is an object, merge sets each member of v and keeps all other members.
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

// membersOf returns the members of v. ok is false if v is not an object.
func membersOf(v jsontext.Value) (map[string]jsontext.Value, bool) {
	var nested map[string]jsontext.Value
	if v.Kind() != '{' || json.Unmarshal(v, &nested) != nil {
		return nil, false
	}
	return nested, true
}

// json returns the intent as JSON.
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

// encode returns the JSON of v. v was decoded from JSON, so encoding cannot fail.
func encode(v any) jsontext.Value {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return data
}

// origin returns the field of the suite that set the member at path. If no field did, it returns a
// field that set a part of that member, or an object around the member.
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
