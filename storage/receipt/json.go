package receipt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// parseJSON reads exactly one I-JSON value (RFC 7493): a map[string]any, []any, string,
// json.Number, bool or nil. It takes what encoding/json takes. In addition it refuses duplicate
// members, invalid UTF-8 and lone surrogates. json.Unmarshal keeps the last duplicate, and replaces
// invalid UTF-8 and surrogates by U+FFFD. Two readers could then see two different receipts in the
// same bytes.
func parseJSON(data []byte) (any, error) {
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil { // this also bounds the nesting
		return nil, err
	}
	r := &reader{data: data}
	v, err := r.value()
	if err != nil {
		return nil, fmt.Errorf("JSON offset %d: %w", r.at, err)
	}
	return v, nil
}

// reader reads data, which encoding/json has found to be one value. So it looks only for the ends of
// tokens. The tokens of a json.Decoder would take three times as long.
type reader struct {
	data []byte
	at   int
}

// next moves to the first byte of the next token and returns it.
func (r *reader) next() byte {
	for strings.IndexByte(" \t\r\n,:", r.data[r.at]) >= 0 {
		r.at++
	}
	return r.data[r.at]
}

func (r *reader) value() (any, error) {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.text()
	case 't':
		r.at += len("true")
		return true, nil
	case 'f':
		r.at += len("false")
		return false, nil
	case 'n':
		r.at += len("null")
		return nil, nil
	}
	start := r.at
	for r.at < len(r.data) && strings.IndexByte("+-.0123456789Ee", r.data[r.at]) >= 0 {
		r.at++
	}
	return json.Number(r.data[start:r.at]), nil
}

// text reads a string.
func (r *reader) text() (any, error) {
	start, escaped := r.at, false
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	raw := string(r.data[start:r.at])
	switch {
	case !utf8.ValidString(raw):
		return nil, errors.New("invalid UTF-8")
	case !escaped:
		return raw[1 : len(raw)-1], nil
	}
	var s string
	if err := json.Unmarshal([]byte(raw), &s); err != nil {
		return nil, err
	}
	// If the JSON has no U+FFFD but the string has, Unmarshal replaced a lone surrogate.
	escapes := strings.ToLower(strings.ReplaceAll(raw, `\\`, ""))
	if strings.Count(s, "\ufffd") != strings.Count(raw, "\ufffd")+strings.Count(escapes, `\ufffd`) {
		return nil, errors.New("lone surrogate")
	}
	return s, nil
}

func (r *reader) array() (any, error) {
	items := []any{}
	for r.at++; r.next() != ']'; {
		item, err := r.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	r.at++
	return items, nil
}

func (r *reader) object() (any, error) {
	members := make(map[string]any)
	for r.at++; r.next() != '}'; {
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string) // it is always one
		if _, twice := members[key]; twice {
			return nil, fmt.Errorf("duplicate member %q", key)
		}
		if members[key], err = r.value(); err != nil {
			return nil, err
		}
	}
	r.at++
	return members, nil
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
