// Package report writes results for other programs: as JSON, and as the JUnit XML that CI systems show.
package report

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// WriteJSON writes v, indented, and a line feed.
func WriteJSON(w io.Writer, v any) error {
	if err := json.MarshalWrite(w, v, jsontext.WithIndent("  "), json.Deterministic(true)); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Suites are all suites of a run. WriteJUnit counts their cases.
type Suites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr,omitempty"`
	Skipped  int      `xml:"skipped,attr,omitempty"`
	Suites   []*Suite `xml:"testsuite"`
}

// Suite is one suite. File is empty if its cases are in no file.
type Suite struct {
	Name     string `xml:"name,attr"`
	File     string `xml:"file,attr,omitempty"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr,omitempty"`
	Skipped  int    `xml:"skipped,attr,omitempty"`
	Cases    []Case `xml:"testcase"`
}

// Case passes if it has no failure, error or skip.
type Case struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	File    string   `xml:"file,attr,omitempty"`
	Line    int      `xml:"line,attr,omitempty"`
	Failure *Message `xml:"failure"`
	Error   *Message `xml:"error"`
	Skipped *Message `xml:"skipped"`
}

// Message says why a case does not pass. Text has further lines.
type Message struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes suites as JUnit XML.
func WriteJUnit(w io.Writer, suites ...*Suite) error {
	all := Suites{Suites: suites}
	for _, s := range suites {
		s.Tests = len(s.Cases)
		for _, c := range s.Cases {
			s.Failures += one(c.Failure)
			s.Errors += one(c.Error)
			s.Skipped += one(c.Skipped)
		}
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Skipped += s.Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("writing XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func one(m *Message) int {
	if m == nil {
		return 0
	}
	return 1
}
