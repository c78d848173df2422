package condition

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
)

// jsonNode is a JSON value with its place in the document, which messages name.
type jsonNode struct {
	kind jsontext.Kind
	// at is the value's JSON pointer. It is empty for the root.
	at string
	// text is a string's value or a number's literal.
	text    string
	members []jsonMember
	items   []jsonNode
}

type jsonMember struct {
	name  string
	value jsonNode
}

func (n jsonNode) member(name string) (jsonNode, bool) {
	for _, m := range n.members {
		if m.name == name {
			return m.value, true
		}
	}
	return jsonNode{}, false
}

// describe returns the kind of n's value, for messages.
func (n jsonNode) describe() string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "a boolean"
}

// decode parses doc as one JSON object. It refuses duplicate names, invalid UTF-8, null, and
// anything after the object.
func decode(doc string) (jsonNode, error) {
	if len(doc) > MaxCondition {
		return jsonNode{}, refuse("", "is %d bytes long, at most %d are allowed", len(doc), MaxCondition)
	}
	dec := jsontext.NewDecoder(strings.NewReader(doc))
	if kind := dec.PeekKind(); kind != '{' {
		return jsonNode{}, refuse("", "is not a JSON object; %s", forms)
	}
	root, err := decodeNode(dec)
	if err != nil {
		return jsonNode{}, err
	}
	if strings.TrimLeft(doc[dec.InputOffset():], " \t\r\n") != "" {
		return jsonNode{}, refuse("", "something follows the JSON object; %s", forms)
	}
	return root, nil
}

func decodeNode(dec *jsontext.Decoder) (jsonNode, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return jsonNode{}, badJSON(err)
	}
	n := jsonNode{kind: token.Kind(), at: string(dec.StackPointer())}
	if dec.StackDepth() > maxDepth {
		return n, refuse("", "is nested deeper than %d levels", maxDepth)
	}
	switch n.kind {
	case '"', '0':
		n.text = token.String()
	case '{', '[':
		return n, n.decodeKids(dec)
	case 'n':
		return n, refuse(n.at, `null is not a value here; a missing field is {"$exists": false}`)
	}
	return n, nil
}

// decodeKids decodes the members of an object or the items of an array, up to its end.
func (n *jsonNode) decodeKids(dec *jsontext.Decoder) error {
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		var member jsonMember
		if n.kind == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return badJSON(err)
			}
			member.name = name.String()
		}
		var err error
		if member.value, err = decodeNode(dec); err != nil {
			return err
		}
		if n.kind == '{' {
			n.members = append(n.members, member)
		} else {
			n.items = append(n.items, member.value)
		}
	}
	_, err := dec.ReadToken()
	return badJSON(err)
}

// badJSON returns an error that names the place where a document stops being JSON.
func badJSON(err error) error {
	if err == nil {
		return nil
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return refuse("", "is not JSON: %v; %s", err, forms)
	}
	return refuse(string(syntax.JSONPointer), "is not JSON at byte %d: %v; %s", syntax.ByteOffset, syntax.Err, forms)
}

// Quote returns s as a string literal that JSON, CEL and Rego read in the same way. It escapes
// invisible characters.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case !unicode.IsPrint(r) && r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
