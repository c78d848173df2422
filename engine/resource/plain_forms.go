package resource

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// PlainForm is a form of plain resources, for a rendering in another language. A text of at most
// [MaxLength] bytes is a plain resource of the form if it matches Is and does not match Not, both
// in the syntax of RE2.
//
// All of Readers read such a resource as it was written. The [Stops] of its readings are
// [StopsInList] if it matches List, and otherwise [StopsAtSlash].
type PlainForm struct {
	Is, Not string
	Readers Reader
	// List is "" if no resource of the form may be a list.
	List string
	// Query says that a resource of the form may have a question mark. A block also looks at the text
	// before the first one.
	Query bool
}

// PlainForms returns the forms of plain resources. Together they have exactly the resources that
// [Read] takes for plain, with the same readings.
func PlainForms() []PlainForm {
	// A segment does not begin with a dot, and is not empty.
	segment := plainClass("/.") + plainClass("/") + "*"
	named := plainClass("/.@") + plainClass("/@") + "*"
	const (
		host = `(?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*`
		port = `[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]`
	)
	known := make([]string, 0, len(schemes))
	for _, scheme := range slices.Sorted(maps.Keys(schemes)) {
		known = append(known, regexp.QuoteMeta(scheme))
	}
	return []PlainForm{
		{
			Is:      `^(?:/|/?` + named + `(?:/` + named + `)*)$`,
			Not:     `^ | $|^[^:]*(?::/|[A-Z][^:]*:)|^(?:` + strings.Join(known, "|") + `):`,
			Readers: POSIX,
			List:    `^[^/]*$|^[^/:]*:[^/]`,
		}, {
			Is: `^https?://` + host + `(?::(?:` + port + `))?/(?:` + segment + `(?:/` + segment + `)*(?:\?` +
				strings.TrimSuffix(plainClass(""), "]") + `?]*)?)?$`,
			Not:     ` $|^https?://(?:(?:[^/]*\.)?xn--|[^/]*:(?:80|443)/)`,
			Readers: Client | Browser | Server | Literal,
			Query:   true,
		},
	}
}

// plainClass returns a class of the plain characters of ASCII that are not in without.
func plainClass(without string) string {
	has := func(c byte) bool { return isPlainByte(c) && strings.IndexByte(without, c) < 0 }
	var class strings.Builder
	for c := byte(0); c < 128; c++ {
		if !has(c) {
			continue
		}
		last := c
		for has(last + 1) {
			last++
		}
		writeMember(&class, c)
		if last > c+1 {
			class.WriteByte('-')
		}
		if last > c {
			writeMember(&class, last)
		}
		c = last
	}
	return "[" + class.String() + "]"
}

func writeMember(class *strings.Builder, c byte) {
	if strings.IndexByte(`[]-^\`, c) >= 0 {
		class.WriteByte('\\')
	}
	class.WriteByte(c)
}
