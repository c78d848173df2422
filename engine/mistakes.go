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
)

// maxMistakes bounds how many mistakes of one document are named.
const maxMistakes = 50

// mistakes walks a document that the decoder has refused, beside the type that it
// is read into, and names every member that does not fit. The decoder itself stops
// at the first.
type mistakes struct {
	dec  *jsontext.Decoder
	root string
	problems
}

// allMistakes returns first, what the decoder said of data, with every other
// mistake that t shows.
func allMistakes(data []byte, root string, t reflect.Type, first error) error {
	var refused *InvalidError
	if !errors.As(first, &refused) {
		return first
	}
	m := &mistakes{dec: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true)), root: root}
	if err := m.value(t); err != nil || len(m.fields) == 0 {
		return first // the decoder proper says better where a document stops being JSON
	}
	for _, f := range refused.Fields {
		if !slices.ContainsFunc(m.fields, func(g FieldError) bool { return g.Field == f.Field }) {
			m.fields = append(m.fields, f)
		}
	}
	return m.err()
}

// found names a mistake at the decoder's place.
func (m *mistakes) found(message string) {
	if len(m.fields) < maxMistakes {
		m.add(fieldPath(m.root, m.dec.StackPointer()), "%s", message)
	}
}

// value reads the next value, which belongs into a t.
func (m *mistakes) value(t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	kind := m.dec.PeekKind()
	switch {
	case kind == '{' && t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]():
		seen, err := m.object(func(name string) (reflect.Type, bool) { return memberType(t, name) }, memberNames(t))
		if err == nil && t == reflect.TypeFor[Cost]() {
			m.required(seen, "amount_minor", "currency")
		}
		return err
	case kind == '{' && t.Kind() == reflect.Map:
		_, err := m.object(func(string) (reflect.Type, bool) { return t.Elem(), true }, "")
		return err
	case kind == '[' && t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return m.array(t.Elem())
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
	if errors.As(json.Unmarshal(raw, reflect.New(t).Interface()), &semantic) {
		m.found(wanted(semantic))
	}
	return nil
}

// required names the members that the object just read lacks.
func (m *mistakes) required(seen map[string]bool, names ...string) {
	for _, name := range names {
		if !seen[name] {
			m.add(fieldPath(m.root, m.dec.StackPointer())+"."+name, "is required")
		}
	}
}

// object reads an object and returns the names in it.
func (m *mistakes) object(member func(name string) (reflect.Type, bool), known string) (map[string]bool, error) {
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
		t, ok := member(name)
		switch {
		case !ok:
			m.found("unknown field: want " + known)
			err = m.dec.SkipValue()
		case seen[name]:
			m.found(givenTwice)
			err = m.dec.SkipValue()
		default:
			err = m.value(t)
		}
		if err != nil {
			return seen, err
		}
		seen[name] = true
	}
	_, err := m.dec.ReadToken()
	return seen, err
}

func (m *mistakes) array(t reflect.Type) error {
	if _, err := m.dec.ReadToken(); err != nil {
		return err
	}
	for m.dec.PeekKind() != ']' {
		if err := m.value(t); err != nil {
			return err
		}
	}
	_, err := m.dec.ReadToken()
	return err
}

// memberType returns the type of the member of t that is called name.
func memberType(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && tag == name && tag != "-" {
			return f.Type, true
		}
	}
	return nil, false
}
