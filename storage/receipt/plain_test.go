package receipt

import (
	"strings"
	"testing"
)

// TestAppendString_EveryByteAtEveryPlace checks that AppendString escapes a byte in the same way at
// every position. The positions matter because AppendString reads long strings eight bytes at a
// time.
func TestAppendString_EveryByteAtEveryPlace(t *testing.T) {
	for c := range 0x80 {
		escaped := strings.Trim(string(AppendString(nil, string(rune(c)))), `"`)
		if c == '"' {
			escaped = `\"`
		}
		for at := range 24 {
			before, after := strings.Repeat("a", at), strings.Repeat("~", 23-at)
			got := string(AppendString(nil, before+string(rune(c))+after))
			if want := `"` + before + escaped + after + `"`; got != want {
				t.Errorf("AppendString(%q) = %s, want %s", before+string(rune(c))+after, got, want)
			}
		}
	}
}
