package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/authoring/workspace"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
)

// documentFiles returns the files that names refer to, also those with other given extensions: see
// [workspace.Files]. "-" is standard input.
func documentFiles(names []string, others ...string) (files []string, err error) {
	for _, name := range names {
		found := []string{name}
		if name != "-" {
			found, err = workspace.Files(name, others...)
		}
		if errors.Is(err, fs.ErrNotExist) {
			found, err = []string{name}, nil // the later read reports the error
		}
		if err != nil {
			return nil, &inputError{name: name, err: cause(err)}
		}
		if len(found) == 0 {
			return nil, &inputError{name: name, err: errors.New("the directory has no .yaml, .yml or .json file")}
		}
		files = append(files, found...)
	}
	return files, nil
}

// decodeInput decodes the JSON in a file strictly: see [engine.Decode].
func decodeInput[T any](s streams, name, root string, v *T) error {
	data, err := readInput(s, name)
	if err != nil {
		return err
	}
	if err := engine.Decode(data, root, v); err != nil {
		return &inputError{name: name, err: err}
	}
	return nil
}

// readAll reads the documents in a file. The error has all problems of all documents.
func readAll[T any](s streams, name string, kind document.Kind, read func(*document.Document) (T, error)) ([]T, error) {
	docs, err := readDocuments(s, name, kind)
	if err != nil {
		return nil, err
	}
	all, found := make([]T, len(docs)), new(document.Error)
	for i, d := range docs {
		var placed *document.Error
		if all[i], err = read(d); errors.As(err, &placed) {
			found.Problems = append(found.Problems, placed.Problems...)
		} else if err != nil {
			return nil, err
		}
	}
	if len(found.Problems) > 0 {
		return nil, found
	}
	return all, nil
}

// readLists reads lists by name from a file. If no file is named, there are no lists.
func readLists(s streams, name string) (condition.Lists, error) {
	if name == "" {
		return nil, nil
	}
	var values map[string]jsontext.Value
	if err := decodeInput(s, name, "", &values); err != nil {
		return nil, err
	}
	var lists []engine.List
	for listName, items := range values {
		l := engine.ListOf(listName, items)
		if err := l.Validate(); err != nil {
			return nil, &inputError{name: name, err: fmt.Errorf("list %q: %w", listName, err)}
		}
		l.Normalize()
		lists = append(lists, l)
	}
	return engine.CompileLists(lists), nil
}

// conditionsWith returns [conditions] with the libraries in a directory. If dir is empty, there are no libraries.
func conditionsWith(dir string) (engine.Options, []engine.Library, error) {
	o := conditions()
	if dir == "" {
		return o, nil, nil
	}
	libraries, err := document.Libraries(dir)
	if err == nil {
		o.Libraries, err = rego.CompileLibraries(libraries)
	}
	if err != nil {
		return o, nil, &inputError{name: "--libraries", err: err}
	}
	return o, libraries, nil
}

// readSession reads the session in a file. It returns nil if no file is named. The session is
// active unless the file says otherwise. readSession does not check whether the session has
// expired.
func readSession(s streams, name string) (*engine.CompiledSession, error) {
	if name == "" {
		return nil, nil
	}
	session := &engine.Session{Status: engine.SessionActive}
	if err := decodeInput(s, name, "session", session); err != nil {
		return nil, err
	}
	compiled, err := engine.CompileSession(session)
	if err != nil {
		return nil, &inputError{name: name, err: err}
	}
	return compiled, nil
}
