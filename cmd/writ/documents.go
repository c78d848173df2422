package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"writ/document"
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

// documentFiles returns the files that names stand for: of a directory, every YAML and
// JSON file below it but those in directories whose names begin with a dot.
func documentFiles(names []string) (files []string, err error) {
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			files = append(files, name) // reading says what is wrong with it
			continue
		}
		before := len(files)
		err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && path != name && strings.HasPrefix(e.Name(), "."):
				return filepath.SkipDir
			case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
				files = append(files, path)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading the directory %s: %w", name, err)
		}
		if len(files) == before {
			return nil, &inputError{name: name, err: errors.New("the directory has no .yaml, .yml or .json file")}
		}
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
