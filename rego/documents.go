package rego

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// A condition reads every list as a JSON document at data.lists.<name>, as it would read data that was
// loaded into an OPA. A list of texts is a sorted array there.

// dataLists is the reference to the documents.
var dataLists = ast.DefaultRootRef.Append(keyLists)

// ownsDataLists reports whether m is in a package at or below data.lists. Such a condition can be older than
// documents, and reads its own rules there.
func ownsDataLists(m *ast.Module) bool { return m.Package.Path.HasPrefix(dataLists) }

// readsDocuments reports whether m may read a document.
func readsDocuments(m *ast.Module) (reads bool) {
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		reads = reads || ref.HasPrefix(dataLists)
		return false
	})
	return reads
}

// documentsOf returns the names of the lists that a compiled condition reads as documents, sorted. m is
// its module.
func documentsOf(c *ast.Compiler, m *ast.Module) ([]string, error) {
	if ownsDataLists(m) {
		return nil, nil
	}
	names, err := listsOf(c, dataLists)
	var found condition.Error
	ast.WalkWiths(c.Modules[entry], func(w *ast.With) bool {
		if ref, ok := w.Target.Value.(ast.Ref); ok && ref.HasPrefix(dataLists) {
			found.Add(mistake(w.Loc(), "with replaces %v in tests, not in a condition", dataLists))
		}
		return false
	})
	if err := join(&found, err); err != nil {
		return nil, err
	}
	return names, found.Err()
}

// checkListed returns an error if one of the named lists is missing. It would be undefined.
func checkListed(lists condition.Lists, names []string) error {
	for _, name := range names {
		if l := lists[name]; l == nil {
			return fmt.Errorf("there is no list %s", name)
		} else if _, err := documentOf(l); err != nil {
			return fmt.Errorf("list %s: %w", name, err)
		}
	}
	return nil
}

// documentOf returns the document of a list. Evaluations share it.
func documentOf(l *condition.List) (ast.Value, error) {
	switch v := l.Parsed(parseDocument).(type) {
	case ast.Value:
		return v, nil
	case error:
		return nil, v
	}
	return nil, fmt.Errorf("it has no document") // cannot happen
}

// parseDocument returns a valid JSON document as an [ast.Value], or an error. It makes terms at once, which
// takes half as long as OPA's own way through Go's maps.
func parseDocument(document []byte) any {
	v, err := parseValue(jsontext.NewDecoder(bytes.NewReader(document)))
	if err != nil {
		return fmt.Errorf("parsing a document: %w", err)
	}
	v.Value.Hash() // evaluations share the document
	return v.Value
}

// maxColliding bounds the keys of an object whose hashes are equal. OPA compares them one by one. Real keys
// do not collide, but OPA's hash has no secret, so that an author could look for keys that do.
const maxColliding = 4

func parseValue(d *jsontext.Decoder) (*ast.Term, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err //nolint:wrapcheck // parseDocument does
	}
	switch token.Kind() {
	case 't', 'f':
		return ast.InternedTerm(token.Bool()), nil
	case '"':
		return ast.StringTerm(token.String()), nil
	case '0':
		return ast.NumberTerm(json.Number(token.String())), nil
	case '[':
		var elements []*ast.Term
		for d.PeekKind() != ']' {
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			elements = append(elements, v)
		}
		_, err = d.ReadToken()
		return ast.ArrayTerm(elements...), err //nolint:wrapcheck // parseDocument does
	case '{':
		var members [][2]*ast.Term
		equal := make(map[int]int)
		for d.PeekKind() != '}' {
			key, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			if equal[key.Hash()]++; equal[key.Hash()] > maxColliding {
				return nil, errors.New("many keys of an object have one hash")
			}
			v, err := parseValue(d)
			if err != nil {
				return nil, err
			}
			members = append(members, ast.Item(key, v))
		}
		_, err = d.ReadToken()
		return ast.ObjectTerm(members...), err //nolint:wrapcheck // parseDocument does
	}
	return nil, fmt.Errorf("a document has no %v", token.Kind())
}

// budget returns the budget of an evaluation of c, with the documents that it may read.
func (c *sandboxed) budget(in *engine.RegoInput, work *condition.Work) *budget {
	left := inSteps(work)
	left.metadata = in.Intent.Metadata
	if len(c.documents) > 0 {
		left.lists, left.root = in.Lists, listed
	}
	return left
}

// input returns the input document of c. A missing list is an error.
func (c *sandboxed) input(in *engine.RegoInput) (ast.Value, error) {
	if err := checkListed(in.Lists, c.documents); err != nil {
		return nil, err
	}
	return conditionInput(in, c.lists)
}

// documents is a store that is read below root, at root.<name>, and has nothing else. It embeds an empty
// store.
type documents struct {
	storage.Store
	lists condition.Lists
	root  storage.Path
}

// listed is the path of the documents that conditions read.
var listed = storage.Path{listsRule}

// Read implements OPA's storage.Store.
func (d *documents) Read(_ context.Context, _ storage.Transaction, path storage.Path) (any, error) {
	missing := &storage.Error{Code: storage.NotFoundErr, Message: "there is no such document"}
	if len(path) <= len(d.root) || !path.HasPrefix(d.root) || d.lists[path[len(d.root)]] == nil {
		return nil, missing
	}
	v, err := documentOf(d.lists[path[len(d.root)]])
	for _, key := range path[len(d.root)+1:] {
		if err != nil {
			return nil, missing
		}
		at := ast.StringTerm(key)
		if _, isArray := v.(*ast.Array); isArray {
			i, err := strconv.Atoi(key)
			if err != nil {
				return nil, missing
			}
			at = ast.InternedTerm(i)
		}
		v, err = v.Find(ast.Ref{at})
	}
	if err != nil {
		return nil, missing
	}
	return v, nil
}

// documentsFile is the name of the file that holds the documents that a policy's rules read.
const documentsFile = "documents.rego"

// documentsRule begins the names of the rules in that file, such as list_documents["payees"].
const documentsRule = "list_documents"

// documentsAt is the reference to the documents in package pkg.
func documentsAt(pkg string) ast.Ref {
	return ast.MustParseRef("data." + pkg).Append(ast.StringTerm(documentsRule))
}

// nameLists gives an import of data.lists its name, which redirect would change.
func nameLists(m *ast.Module) {
	for _, i := range m.Imports {
		if i.Alias == "" && i.Path.Value.Compare(dataLists) == 0 {
			i.Alias = listsRule
		}
	}
}

// documentsPath returns the path of documentsAt for the package of a policy.
func documentsPath(policyID string) (path storage.Path) {
	for _, t := range documentsAt(PackageName(policyID))[1:] {
		name, _ := t.Value.(ast.String)
		path = append(path, string(name))
	}
	return path
}

// writeDocuments writes the documents that the rules read as one file of package pkg. It returns no file
// if the rules read none. OPA knows the type of a constant and would refuse to compile a rule that reads a
// member which the document does not have. The result of object.get can have any type. `opa fmt` leaves the file as it
// is; to have it write the file would take seconds.
func writeDocuments(pkg string, set *engine.RuleSet) ([]File, error) {
	names := documentsRead(set)
	if len(names) == 0 {
		return nil, nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n", pkg)
	for _, name := range names {
		l := set.Lists()[name]
		if l == nil {
			return nil, fmt.Errorf("a rule reads the list %s, which is not there", name)
		}
		v, err := documentOf(l)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", name, err)
		}
		fmt.Fprintf(&b, "\n%s[%s] := object.get({\"data\": %v}, \"data\", null)\n", documentsRule,
			condition.Quote(name), v)
	}
	return []File{{Name: documentsFile, Source: b.String()}}, nil
}

// documentsRead returns the names of the lists that the rules read as documents, sorted.
func documentsRead(set *engine.RuleSet) []string {
	return engine.ListNames((*engine.CompiledRule).Documents, set.Rules()...)
}
