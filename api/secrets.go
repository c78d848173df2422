package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// refuseSecrets refuses a JSON document if one of its strings or its name looks like a secret. The error names each
// such field and the kind of secret. name is empty if the body has the name. A document is stored as it was written, so
// a secret in it can't be replaced. Some strings are JSON documents themselves, such as the condition of a rule. The
// strings in them are searched too. Invalid JSON is left to the decoder.
func refuseSecrets(scrub Scrubber, body []byte, name string) error {
	search := secretSearch{scrub: scrub, find: scrub.Search()}
	search.value(jsontext.NewDecoder(bytes.NewBuffer(body)), "")
	if kind, found := search.find("", name); found {
		search.found = append(search.found, engine.FieldError{Field: "name", Message: looksSecret(kind)})
	}
	if len(search.found) == 0 {
		return nil
	}
	return &engine.InvalidError{Fields: search.found}
}

type secretSearch struct {
	scrub Scrubber
	find  func(name, value string) (kind string, found bool)
	path  []string // the path to the value that is searched; each step is .name or [0]
	found []engine.FieldError
}

// value searches the next value of dec. name is the name of its member. value returns false at the end of the document,
// if the document is broken, or when enough secrets were found.
func (s *secretSearch) value(dec *jsontext.Decoder, name string) bool {
	token, err := dec.ReadToken()
	if err != nil {
		return false
	}
	switch token.Kind() {
	case '"':
		s.text(name, token.String())
	case '{':
		return s.members(dec)
	case '[':
		for i := 0; dec.PeekKind() != ']'; i++ {
			if !s.below("["+strconv.Itoa(i)+"]", dec, name) {
				return false
			}
		}
		_, err = dec.ReadToken()
	}
	return err == nil && len(s.found) < condition.MaxMistakes
}

// members searches the rest of an object, including the names of its members.
func (s *secretSearch) members(dec *jsontext.Decoder) bool {
	for {
		token, err := dec.ReadToken()
		if err != nil || token.Kind() == '}' {
			return err == nil
		}
		name := token.String()
		if _, found := s.find("", name); found {
			s.path = append(s.path, "."+name)
			s.text("", name)
			s.path = s.path[:len(s.path)-1]
		}
		if !s.below("."+name, dec, name) {
			return false
		}
	}
}

// below searches the next value. step leads to that value from the current path.
func (s *secretSearch) below(step string, dec *jsontext.Decoder, name string) bool {
	s.path = append(s.path, step)
	defer func() { s.path = s.path[:len(s.path)-1] }()
	return s.value(dec, name)
}

// text searches a string. If the string is a JSON document, it searches that document first.
func (s *secretSearch) text(name, text string) {
	before := len(s.found)
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		s.value(jsontext.NewDecoder(bytes.NewBufferString(t)), name)
	}
	if len(s.found) > before {
		return
	}
	if kind, found := s.find(name, text); found {
		s.found = append(s.found, engine.FieldError{
			Field:   s.field(),
			Message: looksSecret(kind),
		})
	}
}

func looksSecret(kind string) string {
	return fmt.Sprintf("looks like a secret (%s): secrets are never stored, so leave it out or refer to it by name",
		kind)
}

// named returns the name in the path under which the body is stored. It returns "" if the name is in the body.
func (rt *route) named(r *request) string {
	if rt.method != http.MethodPut {
		return ""
	}
	return r.param
}

// field returns the path in the form that callers get. It is built only when a secret is found. Building it for every
// value would take time quadratic in the size of the body.
func (s *secretSearch) field() string {
	text := s.scrub.Text(strings.TrimPrefix(strings.Join(s.path, ""), "."))
	if len(text) > condition.MaxLabel {
		text = strings.ToValidUTF8(text[:condition.MaxLabel], "") + "…"
	}
	return text
}
