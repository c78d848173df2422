package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	gojson "github.com/go-json-experiment/json"
)

// FuzzFilter checks that what passes is one JSON value a line, without a member twice, and that every other
// line has an answer.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"a":1,"a":2}`, `{"id":"x","id":"y"}`, "{}\n{}\r\n\n", `{} {}`, `[{"a":1,"\u0061":2}]`,
		"{\"a\":\"\xff\"}", `{"id":{"a":1,"a":2}`, "null", "{\n}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var passed, answers bytes.Buffer
		if err := filter(strings.NewReader(in), &passed, &answers); !errors.Is(err, io.EOF) {
			t.Fatalf("it ends with %v", err)
		}
		lines := 0
		for line := range strings.Lines(passed.String()) {
			lines++
			var v any
			if err := gojson.Unmarshal([]byte(line), &v); err != nil {
				t.Errorf("%q passed: %v", line, err)
			}
		}
		for line := range strings.Lines(answers.String()) {
			lines++
			var a struct {
				Version string `json:"jsonrpc"`
				Error   struct{ Code int }
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil || a.Version != "2.0" || a.Error.Code != -32600 {
				t.Errorf("the answer %q: %v", line, err)
			}
		}
		want := 0
		for line := range strings.Lines(in) {
			if strings.TrimSpace(line) != "" {
				want++
			}
		}
		if lines != want {
			t.Errorf("%d of %d lines have a fate", lines, want)
		}
	})
}
