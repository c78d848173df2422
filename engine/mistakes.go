package engine

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine/condition"
)

// mistakes walks a document that the decoder has refused. It stores the members that fit in the
// value and names every other member. The decoder itself stops at the first mistake.
type mistakes struct {
	dec  *jsontext.Decoder
	root string
	problems
}

// allMistakes returns every mistake of a document. It finds mistakes against v's type itself, and
// stores the members that fit in v. Then checks find further mistakes in v. If data is not JSON,
// allMistakes returns first, the decoder's error.
func allMistakes(data []byte, root string, v reflect.Value, first error, checks []func() error) error {
	v.SetZero()
	m := &mistakes{dec: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true)), root: root}
	if err := m.value(v); err != nil || len(m.fields) == 0 {
		return first // the decoder describes a syntax error better
	}
	for _, check := range checks {
		var found *InvalidError
		if errors.As(check(), &found) {
			m.addUnrelated(found.Fields)
		}
	}
	return m.err()
}

// addUnrelated adds the mistakes in found. It skips a mistake about a member that m already
// refuses, that is inside such a member, or that contains such a member.
func (m *mistakes) addUnrelated(found []FieldError) {
	refused := m.fields
	for _, f := range found {
		told := slices.ContainsFunc(refused, func(g FieldError) bool {
			return within(f.Field, g.Field) || within(g.Field, f.Field)
		})
		if !told && len(m.fields) < condition.MaxMistakes {
			m.fields = append(m.fields, f)
		}
	}
}

// within reports whether field is the path outer or a path inside outer.
func within(field, outer string) bool {
	rest, ok := strings.CutPrefix(field, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// found adds a mistake about the value at the decoder's place.
func (m *mistakes) found(message string) {
	if len(m.fields) < condition.MaxMistakes {
		m.add(fieldPath(m.root, m.dec.StackPointer()), "%s", message)
	}
}

// unknown adds a mistake about an unknown member at the decoder's place.
func (m *mistakes) unknown(name string, known []string) {
	if len(m.fields) < condition.MaxMistakes {
		p := fieldPath(m.root, m.dec.StackPointer())
		m.addIn(p, condition.Mistake{Key: true, Message: unknownMember(name, known)})
	}
}

// unknownMember returns a message with the name that the author probably meant, or with all known
// names.
func unknownMember(name string, known []string) string {
	const unknown = "unknown field"
	if guess := didYouMean(name, known...); guess != "" {
		return unknown + guess
	}
	switch len(known) {
	case 0:
		return unknown + ": want none here"
	case 1:
		return unknown + ": want " + known[0]
	}
	return unknown + ": want one of " + strings.Join(known, ", ")
}

// didYouMean returns ": did you mean x?" with the name that the author probably meant, or "".
func didYouMean(name string, names ...string) string {
	if meant := condition.Meant(name, names); meant != "" {
		return ": did you mean " + meant + "?"
	}
	return ""
}

func (m *mistakes) value(v reflect.Value) error {
	kind := m.dec.PeekKind()
	for v.Kind() == reflect.Pointer && kind != 'n' {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	t := v.Type()
	switch {
	case kind == '{' && t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
		seen, err := m.object(func(name string) (func() error, bool) { return m.member(v, name) }, MemberNames(t))
		if err == nil && t == reflect.TypeFor[Cost]() {
			m.required(seen, "amount_minor", "currency")
		}
		return err
	case kind == '{' && t.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(t))
		_, err := m.object(func(name string) (func() error, bool) { return m.entry(v, name), true }, nil)
		return err
	case kind == '[' && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return m.array(v)
	}
	raw, err := m.dec.ReadValue()
	if err != nil {
		return err
	}
	if kind == 'n' {
		m.found(noNull)
		return nil
	}
	var semantic *json.SemanticError
	if errors.As(json.Unmarshal(raw, v.Addr().Interface()), &semantic) {
		m.found(wanted(semantic))
	}
	return nil
}

// required adds a mistake for each of names that the object just read does not have.
func (m *mistakes) required(seen map[string]bool, names ...string) {
	for _, name := range names {
		if !seen[name] {
			m.add(fieldPath(m.root, m.dec.StackPointer())+"."+name, "is required")
		}
	}
}

// object reads an object and returns the names in it. member returns a function that reads the
// value of the member name. It returns false if the name is unknown.
func (m *mistakes) object(member func(name string) (func() error, bool), known []string) (map[string]bool, error) {
	seen := map[string]bool{}
	if _, err := m.dec.ReadToken(); err != nil {
		return seen, err
	}
	for m.dec.PeekKind() != '}' {
		token, err := m.dec.ReadToken()
		if err != nil {
			return seen, err
		}
		name := token.String()
		read, ok := member(name)
		switch {
		case !ok:
			m.unknown(name, known)
			err = m.dec.SkipValue()
		case seen[name]:
			m.found(givenTwice)
			err = m.dec.SkipValue()
		default:
			err = read()
		}
		if err != nil {
			return seen, err
		}
		seen[name] = true
	}
	_, err := m.dec.ReadToken()
	return seen, err
}

// member returns a function that reads the value of the member called name into the struct v.
func (m *mistakes) member(v reflect.Value, name string) (func() error, bool) {
	for _, f := range reflect.VisibleFields(v.Type()) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && tag == name && tag != "-" {
			return func() error { return m.value(v.FieldByIndex(f.Index)) }, true
		}
	}
	return nil, false
}

// entry returns a function that reads the value of the key name into the map v.
func (m *mistakes) entry(v reflect.Value, name string) func() error {
	return func() error {
		element := reflect.New(v.Type().Elem()).Elem()
		err := m.value(element)
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), element)
		return err
	}
}

func (m *mistakes) array(v reflect.Value) error {
	if _, err := m.dec.ReadToken(); err != nil {
		return err
	}
	items := reflect.MakeSlice(v.Type(), 0, 0)
	for m.dec.PeekKind() != ']' {
		item := reflect.New(v.Type().Elem()).Elem()
		if err := m.value(item); err != nil {
			return err
		}
		items = reflect.Append(items, item)
	}
	v.Set(items)
	_, err := m.dec.ReadToken()
	return err
}
