package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseJSON reads exactly one I-JSON value (RFC 7493): a map[string]any, []any, string,
// json.Number, bool or nil. It reads the tokens of encoding/json. In addition it refuses duplicate
// members, invalid UTF-8 and lone surrogates. json.Unmarshal keeps the last duplicate, and replaces
// invalid UTF-8 and surrogates by U+FFFD. Two readers could then see two different receipts in the
// same bytes.
func parseJSON(data []byte) (any, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil { // Unmarshal bounds the nesting; Token does not
		return nil, err
	}
	r := &reader{data: data, tokens: json.NewDecoder(bytes.NewReader(data))}
	r.tokens.UseNumber()
	v, err := r.value()
	if err != nil {
		return nil, fmt.Errorf("JSON offset %d: %w", r.tokens.InputOffset(), err)
	}
	return v, nil
}

type reader struct {
	data   []byte
	tokens *json.Decoder
}

// token returns the next token. If it is a string, only its escapes are decoded.
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
	// If the JSON has no U+FFFD but the string has, the decoder replaced a lone surrogate.
	escapes := strings.ToLower(strings.ReplaceAll(raw, `\\`, ""))
	if strings.Count(s, "\ufffd") != strings.Count(raw, "\ufffd")+strings.Count(escapes, `\ufffd`) {
		return nil, errors.New("lone surrogate")
	}
	return s, nil
}

func (r *reader) value() (any, error) {
	t, err := r.token()
	switch {
	case err != nil || t != json.Delim('{') && t != json.Delim('['):
		return t, err
	case t == json.Delim('{'):
		return r.object()
	}
	items := []any{}
	for r.tokens.More() {
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err = r.token() // consume the closing bracket
	return items, err
}

func (r *reader) object() (any, error) {
	members := make(map[string]any)
	for r.tokens.More() {
		t, err := r.token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string) // the decoder refuses names of other types
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("duplicate member %q", name)
		}
		if members[name], err = r.value(); err != nil {
			return nil, err
		}
	}
	_, err := r.token() // consume the closing brace
	return members, err
}

// kindOf names the JSON type of a value for messages.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
