package printable_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"writ.example/writ/internal/printable"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                         "",
		"Zürich 東京 €":              "Zürich 東京 €",
		"a\x1b[31mred":             `a\u001b[31mred`,
		"two\nlines\ttab\r":        `two\u000alines\u0009tab\u000d`,
		"moc.\u202eevil":           `moc.\u202eevil`,
		"C1 \u009b and \x7f":       `C1 \u009b and \u007f`,
		"joined\u200dline\u2028.":  `joined\u200dline\u2028.`,
		"tag \U000e0041":           `tag \udb40\udc41`,
		"broken \xff":              "broken \ufffd",
		"selected\ufe0f\U000e0100": `selected\ufe0f\udb40\udd00`,
		"filled\u3164":             `filled\u3164`,
	} {
		if got := printable.Text(s); got != want {
			t.Errorf("Text(%q) = %q, want %q", s, got, want)
		}
	}
	if got, want := printable.Lines("a\x1b\nb"), "a\\u001b\nb"; got != want {
		t.Errorf("Lines = %q, want %q", got, want)
	}
}

// FuzzText holds that nothing hidden is left, and that a string of JSON keeps its value.
func FuzzText(f *testing.F) {
	f.Add("a\u202eb\x1b\U000e0041\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := printable.Text(s); strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("Text(%q) = %q", s, got)
		}
		s = strings.ToValidUTF8(s, "?")
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if err := json.Unmarshal([]byte(printable.Text(string(data))), &got); err != nil || got != s {
			t.Errorf("Text of the JSON %s has the value %q, %v", data, got, err)
		}
	})
}
