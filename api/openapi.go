package api

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// descriptionYAML is the OpenAPI document, the one source of all that is served
// of it.
//
//go:embed openapi.yaml
var descriptionYAML []byte

// openAPI returns the OpenAPI document as it was written and as JSON.
func openAPI() (asYAML, asJSON document, err error) {
	text, err := jsonOf(descriptionYAML)
	if err != nil {
		return document{}, document{}, fmt.Errorf("reading openapi.yaml: %w", err)
	}
	return newDocument("application/yaml", descriptionYAML), newDocument(typeJSON, text), nil
}

// jsonOf returns a YAML document as JSON, its members in the same order.
func jsonOf(text []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) != 1 {
		return nil, errors.New("want one document")
	}
	var out bytes.Buffer
	if err := encodeNode(jsontext.NewEncoder(&out), root.Content[0]); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func encodeNode(enc *jsontext.Encoder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		return encodeAll(enc, n, jsontext.BeginObject, jsontext.EndObject)
	case yaml.SequenceNode:
		return encodeAll(enc, n, jsontext.BeginArray, jsontext.EndArray)
	case yaml.ScalarNode:
		return encodeScalar(enc, n)
	}
	return fmt.Errorf("line %d: aliases have no place in it", n.Line)
}

func encodeAll(enc *jsontext.Encoder, n *yaml.Node, begin, end jsontext.Token) error {
	if err := enc.WriteToken(begin); err != nil {
		return err
	}
	for _, child := range n.Content {
		if err := encodeNode(enc, child); err != nil {
			return err
		}
	}
	return enc.WriteToken(end)
}

// encodeScalar writes a scalar as what its tag says. A key and a time are
// strings.
func encodeScalar(enc *jsontext.Encoder, n *yaml.Node) error {
	kind, index := enc.StackIndex(enc.StackDepth())
	name := kind == '{' && index%2 == 0
	if name || n.Tag == "!!str" || n.Tag == "!!timestamp" {
		return enc.WriteToken(jsontext.String(n.Value))
	}
	switch n.Tag {
	case "!!int", "!!float", "!!bool", "!!null":
		return enc.WriteValue(jsontext.Value(n.Value))
	}
	return fmt.Errorf("line %d: a scalar of type %s", n.Line, n.Tag)
}
