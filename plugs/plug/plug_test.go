package plug_test

import (
	"strings"
	"testing"

	"writ.example/writ/plugs/plug"
)

func TestOneLine(t *testing.T) {
	for s, want := range map[string]string{
		"two\r\nlines\tand\rmore\n":    "two lines and more ",
		"pay moc.\u202eevil\u2028now":  `pay moc.\u202eevil\u2028now`,
		"\x1b[2Jgone":                  `\u001b[2Jgone`,
		strings.Repeat("\u202e", 9999): strings.Repeat(`\u202e`, 333) + `\u…`,
	} {
		if got := plug.OneLine(s); got != want {
			t.Errorf("OneLine(%.40q) = %q, want %q", s, got, want)
		}
	}
}
