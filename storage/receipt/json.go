package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "boolean"
	kindNumber kind = "number"
	kindString kind = "string"
	kindArray  kind = "array"
	kindObject kind = "object"
)

// value is one JSON value. text is a string's decoded content, or the literal
// of a number, a boolean or null as it was written.
type value struct {
	kind    kind
	text    string
	items   []value
	members []member
}

type member struct {
	name  string
	value value
}

// parseJSON reads exactly one I-JSON value (RFC 7493). Beyond encoding/json, whose
// tokens it reads, it refuses duplicate members, of which json.Unmarshal keeps the
// last, invalid UTF-8 and lone surrogates, which become U+FFFD there: each of these
// would let two readers see two receipts in the same bytes.
func parseJSON(data []byte) (value, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil { // it also bounds nesting, which tokens do not
		return value{}, err
	}
	r := &reader{data: data, tokens: json.NewDecoder(bytes.NewReader(data))}
	r.tokens.UseNumber()
	v, err := r.value()
	if err != nil {
		return value{}, fmt.Errorf("JSON offset %d: %w", r.tokens.InputOffset(), err)
	}
	return v, nil
}

type reader struct {
	data   []byte
	tokens *json.Decoder
}

// token returns the next token. A string is as it was written, but for escapes.
func (r *reader) token() (json.Token, error) {
	start := r.tokens.InputOffset()
	t, err := r.tokens.Token()
	s, ok := t.(string)
	if err != nil || !ok {
		return t, err
	}
	raw := string(r.data[start:r.tokens.InputOffset()])
	if !utf8.ValidString(raw) {
		return nil, errors.New("invalid UTF-8")
	}
	// What is U+FFFD now, but was not written as such, was a lone surrogate.
	escapes := strings.ToLower(strings.ReplaceAll(raw, `\\`, ""))
	if strings.Count(s, "\ufffd") != strings.Count(raw, "\ufffd")+strings.Count(escapes, `\ufffd`) {
		return nil, errors.New("lone surrogate")
	}
	return s, nil
}

func (r *reader) value() (value, error) {
	t, err := r.token()
	if err != nil {
		return value{}, err
	}
	switch t := t.(type) {
	case string:
		return value{kind: kindString, text: t}, nil
	case json.Number:
		return value{kind: kindNumber, text: t.String()}, nil
	case bool:
		return value{kind: kindBool, text: strconv.FormatBool(t)}, nil
	case json.Delim:
		if t == '{' {
			return r.object()
		}
		return r.array()
	}
	return value{kind: kindNull, text: "null"}, nil
}

func (r *reader) object() (value, error) {
	v := value{kind: kindObject}
	seen := make(map[string]bool)
	for r.tokens.More() {
		t, err := r.token()
		if err != nil {
			return value{}, err
		}
		name, _ := t.(string) // the decoder refuses others
		if seen[name] {
			return value{}, fmt.Errorf("duplicate member %q", name)
		}
		seen[name] = true
		item, err := r.value()
		if err != nil {
			return value{}, err
		}
		v.members = append(v.members, member{name, item})
	}
	_, err := r.token() // the closing brace
	return v, err
}

func (r *reader) array() (value, error) {
	v := value{kind: kindArray}
	for r.tokens.More() {
		item, err := r.value()
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := r.token() // the closing bracket
	return v, err
}
