package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine/resource"
)

func admitsResource(s string) error {
	if _, err := resource.Read(s); err != nil {
		return fmt.Errorf("no resource equals this: %w", err)
	}
	return nil
}

func oneOf(names []string, s string) error {
	list := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	if slices.Contains(names, s) {
		return nil
	}
	if meant := Meant(s, names); meant != "" {
		return fmt.Errorf("want %s, got %q: %s%s?", list, s, didYouMean, meant)
	}
	return fmt.Errorf("want %s, got %q", list, s)
}

func admitsUUID(s string) error {
	if !IsUUID(s) {
		return fmt.Errorf("want a UUID in lower case, got %q", s)
	}
	return nil
}

// IsUUID reports whether s has the form 8-4-4-4-12 of lower-case hexadecimal digits. No branch in
// IsUUID depends on a digit, because a processor could not predict such a branch.
func IsUUID(s string) bool {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	others := 0
	for i := range len(s) {
		others += int(noHexDigit[s[i]])
	}
	return others == len("----")
}

// noHexDigit has 0 for lower-case hexadecimal digits and 1 for every other byte.
var noHexDigit = func() (t [256]uint8) {
	for c := range t {
		if strings.IndexByte("0123456789abcdef", byte(c)) < 0 {
			t[c] = 1
		}
	}
	return t
}()

func admitsCurrency(s string) error {
	if !IsCurrency(s) {
		return fmt.Errorf("want a currency of three upper-case letters such as EUR, got %q", s)
	}
	return nil
}

// IsCurrency reports whether s has the form of an ISO 4217 code.
func IsCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// ParseTime reads an RFC 3339 time. It refuses a comma before the fraction: package time accepts
// the comma, RFC 3339 does not. It also refuses a time whose nanoseconds do not fit into 64 bits,
// because Rego represents times that way.
func ParseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || len(s) > MaxName || strings.IndexByte(s, ',') >= 0 {
		return time.Time{}, fmt.Errorf("want an RFC 3339 time such as 2026-01-31T12:00:00Z, got %q", s)
	}
	if y := t.UTC().Year(); y < 1678 || y > 2261 {
		return time.Time{}, fmt.Errorf("want a time between the years 1678 and 2261, got %q", s)
	}
	return t, nil
}
