package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads data, which is one JSON document, into v. It refuses everything that two readers
// could read differently or that a reader could overlook: unknown members (even if only their case
// differs), duplicate names, invalid UTF-8, text after the document, and null. Null is refused
// because JSON decoders read it as an absent or a zero value.
//
// Every error is an [*InvalidError]. It names each field by its path from root, such as
// "intent.cost.amount_minor" for the root "intent". If root is empty, paths start at the
// document's members. The strings in v are copies: Decode keeps no memory of data.
//
// If Decode refuses members, v holds the other members, and the error also has the mistakes that
// checks find in v. If Decode refuses no member, it does not run checks: the caller runs them.
func Decode[T any](data []byte, root string, v *T, checks ...func() error) error {
	all := func(first error) error {
		return allMistakes(data, root, reflect.ValueOf(v).Elem(), first, checks)
	}
	if bytes.Contains(data, []byte("null")) {
		if err := refuseNull(data, root); err != nil {
			return all(err)
		}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return invalid(fieldPath(root, ""), "is empty: want a JSON document")
	}
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return all(decodeError(err, root))
	}
	return nil
}

// The messages about a null, and about a member that is given twice.
const (
	noNull     = "must not be null: give a value, or leave it out if it is optional"
	givenTwice = "is given more than once"
)

// document is a document that is normalised after it is read.
type document[T any] interface {
	*T
	Normalize()
	Validate() error
}

func decodeDocument[T any, D document[T]](data []byte, field string) (*T, error) {
	var v T
	check := func() error {
		D(&v).Normalize()
		return D(&v).Validate()
	}
	if err := Decode(data, field, &v, check); err != nil {
		return nil, err
	}
	D(&v).Normalize()
	return &v, nil
}

// DecodeIntent reads an intent. The intent is normalised but not validated. The paths in errors
// start with field, usually "intent".
func DecodeIntent(data []byte, field string) (*Intent, error) {
	return decodeDocument[Intent](data, field)
}

// DecodePolicy reads a policy. The policy is normalised but not validated. The paths in errors
// start with field, usually "policy".
func DecodePolicy(data []byte, field string) (*ActionPolicy, error) {
	return decodeDocument[ActionPolicy](data, field)
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom]. Both members are required: a cost without
// an amount must not be read as a cost of 0.
func (c *Cost) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var members struct {
		AmountMinor *int64  `json:"amount_minor"`
		Currency    *string `json:"currency"`
	}
	if err := json.UnmarshalDecode(dec, &members); err != nil {
		return err
	}
	if members.AmountMinor == nil || members.Currency == nil {
		return errors.New("a member of the cost is missing") // mistakes names the member
	}
	c.AmountMinor, c.Currency = *members.AmountMinor, *members.Currency
	return nil
}

func invalid(field, format string, args ...any) error {
	return &InvalidError{Fields: []FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}}}
}

// refuseNull returns an error about the first null of a document. It ignores syntax errors: the
// decoder reports them.
func refuseNull(data []byte, root string) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(data))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return nil //nolint:nilerr // the decoder itself reports this error better
		}
		if token.Kind() == 'n' {
			return invalid(fieldPath(root, dec.StackPointer()), "%s", noNull)
		}
	}
}

// fieldPath returns a JSON pointer in the form in which errors name fields, such as
// intent.metadata.env or policy.denied_action_types[2].
func fieldPath(root string, p jsontext.Pointer) string {
	var b strings.Builder
	b.WriteString(root)
	for token := range p.Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	if b.Len() == 0 {
		return "body"
	}
	return b.String()
}

// decodeError turns a decoder's error into an error that tells the document's author what to
// change.
func decodeError(err error, root string) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &syntactic):
		return invalid(fieldPath(root, syntactic.JSONPointer), "%s", syntaxMessage(syntactic))
	case !errors.As(err, &semantic):
		return invalid(fieldPath(root, ""), "is not readable as JSON")
	}
	return invalid(fieldPath(root, semantic.JSONPointer), "%s", wanted(semantic))
}

// MemberNames returns the names of the members that a JSON object for a t can have.
func MemberNames(t reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.IsExported() && name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

func syntaxMessage(e *jsontext.SyntacticError) string {
	if errors.Is(e.Err, jsontext.ErrDuplicateName) {
		return givenTwice
	}
	if errors.Is(e.Err, io.ErrUnexpectedEOF) {
		return fmt.Sprintf("is not valid JSON (at byte %d): it ends too early", e.ByteOffset)
	}
	if e.Err == nil {
		return fmt.Sprintf("is not valid JSON (at byte %d)", e.ByteOffset)
	}
	return fmt.Sprintf("is not valid JSON (at byte %d): %s", e.ByteOffset,
		strings.TrimPrefix(e.Err.Error(), "jsontext: "))
}

// wanted describes the value that the decoder expected.
func wanted(e *json.SemanticError) string {
	if e.GoType == nil {
		return "has the wrong type"
	}
	if e.GoType == reflect.TypeFor[time.Time]() {
		return "want an RFC 3339 time such as \"2026-01-31T09:30:00Z\""
	}
	switch e.GoType.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if e.JSONKind == '0' {
			return "want an integer without fraction or exponent, at most 9007199254740991"
		}
		return "want an integer, got " + kindName(e.JSONKind)
	case reflect.String:
		return "want a string, got " + kindName(e.JSONKind)
	case reflect.Bool:
		return "want true or false, got " + kindName(e.JSONKind)
	case reflect.Slice, reflect.Array:
		return "want an array, got " + kindName(e.JSONKind)
	default:
		return "want an object, got " + kindName(e.JSONKind)
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 't', 'f':
		return "true or false"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "something else"
	}
}
