package condition

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// fnList names a list in CEL: intent.metadata.payee in list("payees").
const fnList = "list"

// List is the texts of a named list. It is immutable and safe for concurrent use.
type List struct {
	items []string
	has   map[string]struct{}

	once     sync.Once
	rendered any
}

// Lists are the lists of an organization, by name.
type Lists map[string]*List

// NewList returns the list of items, in any order.
func NewList(items []string) *List {
	l := &List{items: slices.Compact(slices.Sorted(slices.Values(items))), has: make(map[string]struct{}, len(items))}
	for _, s := range l.items {
		l.has[s] = struct{}{}
	}
	return l
}

// Has reports whether s is in the list, byte by byte.
func (l *List) Has(s string) bool { _, ok := l.has[s]; return ok }

// Items returns the list, sorted. It must not be modified.
func (l *List) Items() []string { return l.items }

// Rendered returns render's value of the list in another language. It calls render once.
func (l *List) Rendered(render func(items []string) any) any {
	l.once.Do(func() { l.rendered = render(l.items) })
	return l.rendered
}

// itemBytes is about how many bytes an item of a list takes beyond its text.
const itemBytes = 56

// Size returns about how many bytes the list takes.
func (l *List) Size() int { return ListSize(l.items) }

// ListSize returns about how many bytes a list of items takes.
func ListSize(items []string) int {
	size := itemBytes
	for _, s := range items {
		size += itemBytes + len(s)
	}
	return size
}

// CheckListName returns nil if name can name a list: 1 to [MaxName] characters of a-z, 0-9,
// "_", "-" and ".". The first is a letter or a digit.
func CheckListName(name string) error {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	if name == "" || len(name) > MaxName || !strings.ContainsRune(first, rune(name[0])) ||
		strings.Trim(name, first+"_-.") != "" {
		return fmt.Errorf(
			"the name of a list has 1 to %d characters of a-z, 0-9, _, - and ., and begins with a letter or a digit",
			MaxName,
		)
	}
	return nil
}

// inList reports whether s is in the list called name. Without that list it is an error.
func (f *Frame) inList(name, s string) result {
	l := f.lists[name]
	if l == nil {
		return failing(errNoList)
	}
	return is(l.Has(s))
}

// listed parses {"list": name} as the operand of $in.
func (p *parser) listed(f Field, c comparison, v jsonNode) *Node {
	name, ok := v.member(fnList)
	switch {
	case !ok || len(v.members) != 1 || name.kind != '"':
		return p.wrong(v.at, `%s wants an array of at least one constant, or a list by its name: {"list":"payees"}`,
			c.name)
	case f.Kind != Text:
		return p.wrong(v.at, "a list holds texts, %s is %s", f.Label(), f.describe())
	case f.ID == Resource:
		return p.wrong(v.at, "a list holds no resources, which are compared with patterns: compare another field")
	}
	if err := CheckListName(name.text); err != nil {
		return p.wrong(name.at, "%v", err)
	}
	return Compare(f, InList, Constant{Str: name.text})
}
