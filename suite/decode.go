package suite

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"writ/document"
	"writ/engine"
)

// absent stands for null where a suite may have one, which [engine.Decode] refuses.
var absent = jsontext.Value(`{"$absent":true}`)

// decode reads the document of a suite. Null is read where it removes a member of an
// intent.
func decode(d *document.Document) (*File, error) {
	if d.Kind != document.Suite {
		p := d.Problem("", "want a suite, which has tests")
		if d.Kind != "" {
			p.Message = "is a " + string(d.Kind) + ": " + p.Message
		}
		return nil, &document.Error{Problems: []document.Problem{p}}
	}
	f := new(File)
	err := engine.Decode(markAbsent(d.JSON()), string(document.Suite), f)
	return f, d.Locate(err)
}

// markAbsent writes absent for null where null removes.
func markAbsent(data jsontext.Value) jsontext.Value {
	if !bytes.Contains(data, []byte("null")) {
		return data
	}
	var out bytes.Buffer
	dec, enc := jsontext.NewDecoder(bytes.NewReader(data)), jsontext.NewEncoder(&out)
	for {
		token, err := dec.ReadToken()
		switch {
		case err != nil:
			return out.Bytes() // the end: data is what a document writes
		case token.Kind() == 'n' && removes(dec.StackPointer()):
			err = enc.WriteValue(absent)
		default:
			err = enc.WriteToken(token)
		}
		if err != nil {
			return data
		}
	}
}

// removes reports whether null at p removes a member of an intent.
func removes(p jsontext.Pointer) bool {
	path := slices.Collect(p.Tokens())
	return len(path) > 2 && (path[0] == "intents" || path[0] == "tests" && slices.Contains([]string{"set", "each", "table"}, path[2]))
}

func isAbsent(v jsontext.Value) bool { return bytes.Equal(v, absent) }
