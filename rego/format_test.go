package rego

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ.example/writ/internal/must"
)

func TestFormatCondition(t *testing.T) {
	for _, tt := range []struct{ name, source, want string }{
		{"a body", "input.intent.cost.amount_minor>5", "input.intent.cost.amount_minor > 5"},
		{"lines", "# why\ninput.intent.cost   # beside\n\n\n  input.intent.action_type==\"a\"\n# below\n", "# why\ninput.intent.cost # beside\n\ninput.intent.action_type == \"a\"\n\n# below\n"},
		{"two lines in one", "input.intent.cost;input.intent.agent_id", "input.intent.cost\ninput.intent.agent_id"},
		{"a nested body", "every x in [1,2]{\nx>0\n}\n", "every x in [1, 2] {\n\tx > 0\n}\n"},
		{"a raw text", "input.intent.agent_id == `a\n\tb`\n", "input.intent.agent_id == `a\n\tb`\n"},
		{"a module", "package a\nmatch if { input.intent.cost   }\n# end", "package a\n\nmatch if input.intent.cost\n\n# end"},
		{"spaces at the ends", "\n  true  \n", "true\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := FormatCondition(tt.source)
			if err != nil || got != tt.want {
				t.Errorf("FormatCondition(%q) = %q, %v, want %q", tt.source, got, err, tt.want)
			}
			if again, err := FormatCondition(got); err != nil || again != got {
				t.Errorf("FormatCondition(%q) = %q, %v, want itself", got, again, err)
			}
		})
	}
}

// TestFormat_RefusesWhatDoesNotParse checks that the error names the place.
func TestFormat_RefusesWhatDoesNotParse(t *testing.T) {
	for source, want := range map[string]string{
		"input.intent.cost >\n": "2:0: ", "package a\n\nmatch if {\n\ttrue }}": "4:8: ", "true }\nfoo if { true": "1:6: ", "": "the source is empty", "# only\n": "the source is empty",
	} {
		if got, err := FormatCondition(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("FormatCondition(%q) = %q, %v, want %s", source, got, err, want)
		}
	}
	if _, err := FormatFile("a.rego", "package a\n\nx := {\n"); err == nil || !strings.Contains(err.Error(), "a.rego:") {
		t.Errorf("FormatFile = %v, want the file's name", err)
	}
}

// FuzzFormat checks that formatting Rego again changes nothing, and that formatted Rego compiles
// exactly if it did before.
func FuzzFormat(f *testing.F) {
	for _, name := range must.Get(filepath.Glob("../examples/policies/*.rego"))(f) {
		f.Add(string(must.Get(os.ReadFile(name))(f)))
	}
	for _, source := range []string{"# a\ntrue # b\n", "input.intent.cost; true", "package a\n\n# b\nmatch if {\n\t# c\n\ttrue # d\n}\n# e",
		"x := `a\n\tb`; x", "every x in [1,2]{\nx>0\n}", "not {a: 1}", "{\n# a\n\"a\"\n}[_]"} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got, err := FormatCondition(source)
		if err != nil {
			return // it does not parse
		}
		if again, err := FormatCondition(got); err != nil || again != got {
			t.Fatalf("FormatCondition(%q) = %q, and that = %q, %v", source, got, again, err)
		}
		if strings.Count(got, "#") != strings.Count(source, "#") {
			t.Fatalf("FormatCondition(%q) = %q, and a comment is lost", source, got)
		}
		_, before := CompileCondition(source)
		if _, after := CompileCondition(got); (before == nil) != (after == nil) {
			t.Fatalf("%q = %v, and formatted %q = %v", source, before, got, after)
		}
	})
}
