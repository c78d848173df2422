package api

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ/engine"
)

// refuseSecrets returns nil if no string of the JSON document body looks like a
// secret, or an error that names each field that does and the kind found. A
// document is stored as it was written, so a secret in it can't be replaced.
// Strings that are JSON documents themselves, as a rule's condition is, are
// searched like the rest. What is no JSON is left to the decoder.
func (s *Server) refuseSecrets(body []byte) error {
	search := secretSearch{scrub: s.cfg.Scrub, find: s.cfg.Scrub.Search()}
	search.value(jsontext.NewDecoder(bytes.NewBuffer(body)), "", "")
	if len(search.found) == 0 {
		return nil
	}
	return &engine.InvalidError{Fields: search.found}
}

// secretSearch collects the fields that hold secrets.
type secretSearch struct {
	scrub Scrubber
	find  func(name, value string) (kind string, found bool)
	found []engine.FieldError
}

// value searches the next value, which is that of the member name at path. It
// returns false where the document ends or is broken.
func (s *secretSearch) value(dec *jsontext.Decoder, path, name string) bool {
	token, err := dec.ReadToken()
	if err != nil {
		return false
	}
	switch token.Kind() {
	case '"':
		s.text(path, name, token.String())
	case '{':
		return s.members(dec, path)
	case '[':
		for i := 0; dec.PeekKind() != ']'; i++ {
			if !s.value(dec, path+"["+strconv.Itoa(i)+"]", name) {
				return false
			}
		}
		_, err = dec.ReadToken()
	}
	return err == nil
}

// members searches the rest of an object, its names too.
func (s *secretSearch) members(dec *jsontext.Decoder, path string) bool {
	for {
		token, err := dec.ReadToken()
		if err != nil || token.Kind() == '}' {
			return err == nil
		}
		name := token.String()
		below := strings.TrimPrefix(path+"."+name, ".")
		if _, found := s.find("", name); found {
			s.text(below, "", name)
		}
		if !s.value(dec, below, name) {
			return false
		}
	}
}

// text searches a string, and what it holds if that is a document.
func (s *secretSearch) text(path, name, text string) {
	before := len(s.found)
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		s.value(jsontext.NewDecoder(bytes.NewBufferString(t)), path, name)
	}
	if len(s.found) > before {
		return
	}
	if kind, found := s.find(name, text); found {
		s.found = append(s.found, engine.FieldError{
			Field:   s.scrub.Text(path),
			Message: fmt.Sprintf("looks like a secret (%s): secrets are never stored, so leave it out or refer to it by name", kind),
		})
	}
}
