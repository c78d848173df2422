// Package document reads and writes the files of authors: policies, rules, lists, intents and
// suites. A file is YAML with comments, or JSON. It has one document or several.
//
//	# payments.yaml
//	name: Large payments need a person
//	condition: {action_type: payment.payout, cost.amount_minor: {$gt: 25000}}
//	action: {decision: approval_required, reason: finance looks at these}
//	priority: 200
//	isActive: true
//
// A document is an object with the same members as in the API. Several documents in a file are YAML
// documents with --- between them, JSON values one after another, or elements of an array. The kind
// of a document follows from its members. The condition and the action of a rule are objects in a
// file. On the wire they are strings that hold JSON. [Document.JSON] returns the wire form. A file
// may use either form.
//
// Reading is strict. Errors are: a duplicate key, an unknown member, null, a number that JSON does
// not have, a YAML tag and a merge key. A mistake is a [Problem] in an [Error]. Its place is
// file:line:column.
package document

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
)

// Kind is the kind of a document.
type Kind string

// The kinds.
const (
	Policy Kind = "policy"
	Rule   Kind = "rule"
	List   Kind = "list"
	// Library is the kind of a directory of modules in Rego. No document in a file is of this kind.
	Library Kind = "library"
	Intent  Kind = "intent"
	Suite   Kind = "suite"
)

const (
	// MaxValues is the greatest number of values in a file. A value counts again for each alias of
	// the value.
	MaxValues = 1_000_000
	// MaxLine is the greatest length of a line with a whole object or array. An error shows at most
	// MaxLine characters of a line. When writ puts an object on one line by itself, the line has at
	// most four fifths of MaxLine.
	MaxLine = 100
	// MaxPasses bounds repetitions. Formatting a file, and reading a server that other clients
	// change, are repeated until two results are equal, at most MaxPasses times.
	MaxPasses = 5
)

// Document is one document of a file.
type Document struct {
	Kind Kind
	file *file
	root *node
}

// file is the source of a document.
type file struct {
	name string
	text []byte
	yaml bool
	// lines splits text at the first call.
	lines func() [][]byte
	// includes says that the file names Rego files.
	includes bool
}

func newFile(name string, data []byte) *file {
	split := func() [][]byte { return bytes.Split(data, []byte("\n")) }
	f := &file{name: name, text: data, yaml: !strings.HasSuffix(name, ".json"), lines: sync.OnceValue(split)}
	if begin := bytes.TrimSpace(data); name == "-" && len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
		f.yaml = false
	}
	return f
}

// Parse reads the documents in data. Errors name the file name. The name also selects the format. A
// name that ends in .json means JSON. The name "-" means standard input: JSON if the text begins
// with { or [, otherwise YAML. Any other name means YAML. Every error is an *[Error]. The Kind of a
// document is empty if its members fit no kind.
func Parse(name string, data []byte) ([]*Document, error) {
	f := newFile(name, data)
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, f.refuse(Place{1, 1}, "the file is empty")
	}
	read := f.readJSON
	if f.yaml {
		read = f.readYAML
	}
	roots, err := read()
	if err != nil {
		return nil, err
	}
	var docs []*Document
	for _, root := range roots {
		for _, n := range root.documents() {
			docs = append(docs, &Document{Kind: kindOf(n), file: f, root: n})
		}
	}
	if len(docs) == 0 {
		return nil, f.refuse(Place{1, 1}, "the file has no document")
	}
	return docs, nil
}

// Policy decodes and validates a policy.
func (d *Document) Policy() (*engine.ActionPolicy, error) {
	return decode(d, Policy, func(data []byte) (*engine.ActionPolicy, error) {
		p, err := engine.DecodePolicy(data, "policy")
		if err == nil {
			err = p.Validate()
		}
		return p, err
	})
}

// List decodes and validates a list.
func (d *Document) List() (*engine.List, error) {
	return decode(d, List, func(data []byte) (*engine.List, error) {
		l := new(engine.List)
		check := func() error {
			bad := fieldsOf(l.Validate())
			if d.root.member("values") == nil && d.root.member("data") == nil {
				bad = append(bad, engine.FieldError{Field: "values",
					Message: "is required: want a list of texts, which may be empty, or data with any document"})
			}
			return invalid(bad)
		}
		if err := engine.Decode(data, "", l, check); err != nil {
			return nil, err
		}
		return l, check()
	})
}

// Intent decodes and validates an intent.
func (d *Document) Intent() (*engine.Intent, error) {
	return decode(d, Intent, func(data []byte) (*engine.Intent, error) {
		in, err := engine.DecodeIntent(data, "intent")
		if err == nil {
			err = in.Validate()
		}
		return in, err
	})
}

// Rule decodes, validates and compiles a rule. The API has the same defaults: priority is
// [engine.DefaultPriority], and isActive is true.
func (d *Document) Rule(o engine.Options) (*engine.CompiledRule, error) {
	compiled, err := decode(d, Rule, func(data []byte) (*engine.CompiledRule, error) {
		var r engine.Rule
		check := func() error { return checkRule(r, o) }
		if err := engine.Decode(data, "", &r, check); err != nil {
			return nil, err
		}
		if d.root.member("priority") == nil {
			r.Priority = engine.DefaultPriority
		}
		if d.root.member("isActive") == nil {
			r.IsActive = true
		}
		if err := check(); err != nil {
			return nil, err
		}
		return engine.CompileRule(r, o)
	})
	if err != nil {
		return nil, err
	}
	return compiled, d.checkPackage()
}

func checkRule(r engine.Rule, o engine.Options) error {
	bad := fieldsOf(r.Validate())
	err := engine.ValidateRule(r, o)
	found := fieldsOf(err)
	if err != nil && found == nil {
		return err
	}
	for _, f := range found {
		// The problems in bad already include a missing condition or action.
		if f.Field == "condition" && r.Condition != "" || f.Field == "action" && r.Action != "" {
			bad = append(bad, f)
		}
	}
	return invalid(bad)
}

func fieldsOf(err error) []engine.FieldError {
	var found *engine.InvalidError
	if errors.As(err, &found) {
		return found.Fields
	}
	return nil
}

func invalid(fields []engine.FieldError) error {
	if fields == nil {
		return nil
	}
	return &engine.InvalidError{Fields: fields}
}

// Check returns the mistakes of a policy, a rule, a list or an intent. It refuses a document
// without a kind. It accepts suites, which package suite checks.
func (d *Document) Check(o engine.Options) (err error) {
	switch d.Kind {
	case Policy:
		_, err = d.Policy()
	case Rule:
		_, err = d.Rule(o)
	case List:
		_, err = d.List()
	case Intent:
		_, err = d.Intent()
	case Suite:
		if d.root.member("tests") == nil && d.root.member("suite") == nil {
			return d.file.refuse(d.root.at,
				"is neither a suite, which has tests, nor a policy, a rule, a list or an intent, whose members "+
					"stand at the top of a file or of a list: leave out %s:", d.root.keys[0].name)
		}
	default:
		_, err = d.wire(d.Kind)
	}
	return err
}

// Want returns an error unless d is of kind k. An empty k admits every kind.
func (d *Document) Want(k Kind) error {
	if k == "" {
		return nil
	}
	_, err := d.wire(k)
	return err
}

func decode[T any](d *Document, k Kind, read func([]byte) (T, error)) (v T, err error) {
	data, err := d.wire(k)
	if err != nil {
		return v, err
	}
	if v, err = read(data); err != nil {
		return v, d.Locate(err)
	}
	return v, nil
}

// JSON returns the wire form of d.
func (d *Document) JSON() jsontext.Value {
	data, err := d.wire(d.Kind)
	if err != nil {
		return d.inlined().json()
	}
	return data
}

// Written returns the document in JSON as it stands in its file: a rule that names a Rego file has
// the name, not the text.
func (d *Document) Written() jsontext.Value { return d.root.json() }

// WithoutNull returns the document in JSON. It replaces a null by as if at returns true for the
// null's path. The path has the names of members and the indexes that lead to the null.
func (d *Document) WithoutNull(as jsontext.Value, at func(path []string) bool) jsontext.Value {
	return d.inlined().replaced(nil, func(n *node, path []string) *node {
		if n.kind == 'n' && at(path) {
			return &node{kind: '0', text: string(as)} // the JSON of a node of this kind is its text, unchanged
		}
		return nil
	}).json()
}

// Child returns the value at a path, such as "policy" or "intents.refund", as a document. The
// errors of the child have places in the same file.
func (d *Document) Child(path string) (*Document, bool) {
	n, rest := d.root.find(path)
	if rest != "" {
		return nil, false
	}
	return &Document{Kind: kindOf(n), file: d.file, root: n}, true
}

// Name returns the name of the file that d was read from.
func (d *Document) Name() string { return d.file.name }
