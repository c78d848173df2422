package suite

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
)

// absent replaces null while a suite is decoded, because [engine.Decode] refuses null.
var absent = jsontext.Value(`{"$absent":true}`)

// decode reads the document of a suite. It accepts null in the places where null removes a member
// of an intent.
func decode(d *document.Document) (*File, error) {
	if d.Kind != document.Suite {
		p := d.Problem("", "want a suite, which has tests")
		if d.Kind != "" {
			p.Message = "is a " + string(d.Kind) + ": " + p.Message
		}
		return nil, &document.Error{Problems: []document.Problem{p}}
	}
	f := new(File)
	err := d.Locate(engine.Decode(d.WithoutNull(absent, removes), string(document.Suite), f))
	var placed *document.Error
	if errors.As(err, &placed) {
		for i := range placed.Problems {
			explainShape(&placed.Problems[i])
		}
	}
	return f, err
}

// shapes has an example of each member, for errors about the member's type.
var shapes = map[string]string{
	"tests":    "a list: - {name: …, intent: …, want: …}",
	"intent":   "the name of one of the intents",
	"want":     strings.Join(wants, ", "),
	"codes":    "[cost.exceeded]",
	"session":  "{allowed_action_types: [payment.refund], max_cost_minor: 2000}",
	"table":    "{columns: [resource, want], rows: [[…, allow], […, deny]]}",
	"each":     "a list of values for each path",
	"columns":  "[resource, want]",
	"policies": "a list of paths and policies",
}

// explainShape removes the prefix "suite." from the field of p, because no other problem of a suite
// has it. If p is about the type of a member, it adds an example to the message.
func explainShape(p *document.Problem) {
	p.Field = strings.TrimPrefix(p.Field, string(document.Suite)+".")
	member := p.Field[strings.LastIndexByte(p.Field, '.')+1:]
	if shape := shapes[member]; shape != "" && strings.HasPrefix(p.Message, "want a") {
		p.Message += ": " + shape
	}
}

// removes reports whether null at a path removes a member of an intent.
func removes(path []string) bool {
	return len(path) > 2 &&
		(path[0] == "intents" || path[0] == "tests" && slices.Contains([]string{"set", "each", "table"}, path[2]))
}

func isAbsent(v jsontext.Value) bool { return bytes.Equal(v, absent) }
