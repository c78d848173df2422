package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"writ/authoring/document"
	"writ/authoring/workspace"
	"writ/engine"
	"writ/engine/condition"
	"writ/rego"
	"writ/storage/receipt"
)

// readDocuments reads the documents in the named file, or in standard input where it is
// "-". Unless kind is "" each must be of it. The error is an [inputError] or a
// *[document.Error].
func readDocuments(s streams, name string, kind document.Kind) ([]*document.Document, error) {
	data, err := readInput(s, name)
	if err != nil {
		return nil, err
	}
	docs, err := document.Parse(name, data)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		if err := d.Want(kind); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// readPolicy reads the one policy in a file.
func readPolicy(s streams, name string) (*engine.ActionPolicy, error) {
	docs, err := readDocuments(s, name, document.Policy)
	if err != nil {
		return nil, err
	}
	if len(docs) > 1 {
		return nil, &inputError{name: name, err: fmt.Errorf("has %d policies: want one", len(docs))}
	}
	return docs[0].Policy()
}

// compiledPolicy reads and compiles the one policy in a file.
func compiledPolicy(s streams, name string) (*engine.Policy, error) {
	doc, err := readPolicy(s, name)
	if err != nil {
		return nil, err
	}
	p, err := engine.CompilePolicy(doc)
	if err != nil {
		return nil, &inputError{name: name, err: err}
	}
	return p, nil
}

// readIntent reads the one intent in a file.
func readIntent(s streams, name string) (*engine.Intent, error) {
	intents, err := readIntents(s, name)
	if err == nil && len(intents) > 1 {
		err = &inputError{name: name, err: fmt.Errorf("has %d intents: want one", len(intents))}
	}
	if err != nil {
		return nil, err
	}
	return intents[0], nil
}

// readIntents reads the intents in a file: one, an array of them, or several documents.
func readIntents(s streams, name string) ([]*engine.Intent, error) {
	return readAll(s, name, document.Intent, (*document.Document).Intent)
}

// ruleFile is the rules in a file and the documents that they are.
type ruleFile struct {
	name  string // empty where no file was given
	docs  []*document.Document
	rules []engine.Rule
}

// readRules reads the rules in a file, each of which compiles.
func readRules(s streams, name string) (f ruleFile, err error) {
	f.name = name
	f.rules, err = readAll(s, name, document.Rule, func(d *document.Document) (engine.Rule, error) {
		f.docs = append(f.docs, d)
		r, err := d.Rule(conditions())
		if err != nil {
			return engine.Rule{}, err
		}
		return r.Rule(), nil
	})
	return f, err
}

// notRendered returns the error of a policy in a file and these rules that package rego
// does not render, with the places of the rules that it names.
func (f ruleFile) notRendered(policy string, err error) error {
	var unrendered *rego.UnrenderedError
	if !errors.As(err, &unrendered) {
		return &inputError{name: cmp.Or(f.name, policy), err: err}
	}
	all := new(document.Error)
	for _, r := range unrendered.Rules {
		var placed *document.Error
		if errors.As(f.docs[r.Index].Locate(r.Err), &placed) {
			all.Problems = append(all.Problems, placed.Problems...)
		}
	}
	return all
}

// readLists reads a file of lists by name; there are none where no file is named.
func readLists(s streams, name string) (condition.Lists, error) {
	if name == "" {
		return nil, nil
	}
	var values map[string][]string
	if err := decodeInput(s, name, "", &values); err != nil {
		return nil, err
	}
	var lists []engine.List
	for listName, items := range values {
		l := engine.List{Name: listName, Values: items}
		if err := l.Validate(); err != nil {
			return nil, &inputError{name: name, err: fmt.Errorf("list %q: %w", listName, err)}
		}
		lists = append(lists, l)
	}
	return engine.CompileLists(lists), nil
}

// readSession reads the session in a file, nil where no file is named. It is active unless
// it says otherwise; whether it has expired is not asked.
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

// decodeInput reads the JSON in a file strictly: see [engine.Decode].
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

// readAll reads the documents in a file. The error has every problem of all of them.
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

// documentFiles returns the files that names stand for: see [workspace.Files]. "-" is
// standard input.
func documentFiles(names []string) (files []string, err error) {
	for _, name := range names {
		found := []string{name}
		if name != "-" {
			found, err = workspace.Files(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			found, err = []string{name}, nil // reading says so
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

// printProblem prints a problem with its line of the file and a caret below its place.
func printProblem(w io.Writer, p document.Problem) {
	fmt.Fprintf(w, "%v\n", p)
	for line := range strings.SplitSeq(p.Caret(), "\n") {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// readKeys reads the key set of a file or an address.
func readKeys(ctx context.Context, s streams, name string) (receipt.Keys, error) {
	var (
		data []byte
		err  error
	)
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		data, err = download(ctx, name)
	} else {
		data, err = readInput(s, name)
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return receipt.Keys{}, &inputError{name: name, err: err}
	}
	return keys, nil
}

// download gets a small document.
func download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", url, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}
