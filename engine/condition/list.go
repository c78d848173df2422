package condition

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine/resource"
)

// fnList is the function that names a list in CEL: intent.metadata.payee in list("payees").
const fnList = "list"

// fnListNames is fnList with the texts folded as names of agents are. Only the CEL of match objects
// and trees calls it.
const fnListNames = "list_names"

// List has the texts of a named list, or a JSON document. It is immutable and safe for concurrent use.
type List struct {
	// document is nil for a list of texts. noTexts says that the document is no list of texts.
	document []byte
	noTexts  bool

	items []string
	has   map[string]struct{}
	// addresses has the texts with an @, their domains folded. It is nil without such texts.
	addresses map[string]struct{}
	// names has the folded forms of texts that are not folded. It is nil without such texts.
	names map[string]struct{}

	once     sync.Once
	rendered any
	// parsed is the document in another language.
	parsing sync.Once
	parsed  any
}

// Lists has the lists of an organization by name.
type Lists map[string]*List

// NewList returns the list of items. items may have any order.
func NewList(items []string) *List {
	l := &List{items: slices.Compact(slices.Sorted(slices.Values(items))), has: make(map[string]struct{}, len(items))}
	for _, s := range l.items {
		l.has[s] = struct{}{}
	}
	for _, s := range l.Addresses() {
		if l.addresses == nil {
			l.addresses = make(map[string]struct{})
		}
		l.addresses[s] = struct{}{}
	}
	for _, s := range l.items {
		if folded := FoldID(s); folded != s {
			if l.names == nil {
				l.names = make(map[string]struct{})
			}
			l.names[folded] = struct{}{}
		}
	}
	return l
}

// NewDocument returns the list that is a JSON document. texts has the document's texts if it is a list
// of texts, too, as isTexts says.
func NewDocument(document []byte, texts []string, isTexts bool) *List {
	l := NewList(texts)
	l.document, l.noTexts = document, !isTexts
	return l
}

// IsTexts reports whether l is a list of texts.
func (l *List) IsTexts() bool { return !l.noTexts }

// Document returns the list in JSON, a list of texts as a sorted array. It must not be modified.
func (l *List) Document() []byte {
	if l.document != nil {
		return l.document
	}
	text, _ := json.Marshal(l.items) // cannot fail: the texts are UTF-8
	return text
}

// Parsed returns the list's document in another language, as parse makes it. It calls parse only once
// for each list.
func (l *List) Parsed(parse func(document []byte) any) any {
	l.parsing.Do(func() { l.parsed = parse(l.Document()) })
	return l.parsed
}

// Names returns the folded texts of the list, sorted, each once.
func (l *List) Names() []string {
	all := make([]string, len(l.items))
	for i, s := range l.items {
		all[i] = FoldID(s)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// HasName reports whether a folded name, or another form of [Names.Forms], is in the list.
func (l *List) HasName(s string) bool {
	_, ok := l.names[s]
	return ok || l.Has(s)
}

// Addresses returns the texts of the list with an @, each with its domain as the DNS has it.
func (l *List) Addresses() (all []string) {
	for _, s := range l.items {
		if strings.Contains(s, "@") {
			all = append(all, resource.FoldAddress(s)...)
		}
	}
	return all
}

// HasAddress reports whether an address, whose domain is as the DNS has it, is in the list.
func (l *List) HasAddress(s string) bool { _, ok := l.addresses[s]; return ok }

// Has reports whether s is in the list. It compares bytes.
func (l *List) Has(s string) bool { _, ok := l.has[s]; return ok }

// Items returns the texts of the list, sorted. The slice must not be modified.
func (l *List) Items() []string { return l.items }

// Rendered returns the list in another language, as render writes it. It calls render only once
// for each list.
func (l *List) Rendered(render func(items []string) any) any {
	l.once.Do(func() { l.rendered = render(l.items) })
	return l.rendered
}

// itemBytes is the approximate size of an item in memory, without its text.
const itemBytes = 56

// Size returns the approximate size of the list in memory, in bytes.
func (l *List) Size() int {
	if l.document != nil {
		return DocumentSize(l.document)
	}
	return ListSize(l.items)
}

// documentValueBytes is the approximate size of a value of a document in memory, without its text. A
// member of an object is two values.
const documentValueBytes = 96

// DocumentSize returns the approximate size in memory of a list that is a JSON document, in bytes.
func DocumentSize(document []byte) int {
	size := len(document)
	for d := jsontext.NewDecoder(bytes.NewReader(document)); ; size += documentValueBytes {
		if _, err := d.ReadToken(); err != nil {
			return size
		}
	}
}

// ListSize returns the approximate size in memory of a list of items, in bytes.
func ListSize(items []string) int {
	size := itemBytes
	for _, s := range items {
		size += itemBytes + len(s)
	}
	return size
}

// CheckListName returns nil if name can be the name of a list. Such a name has 1 to [MaxName]
// characters of a-z, 0-9, "_", "-" and ".". Its first character is a letter or a digit.
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

// inList reports whether the list called name has s. If there is no such list, the result is an
// error.
func (f *Frame) inList(name, s string, has func(*List, string) bool) result {
	l := f.lists[name]
	if l == nil {
		return failing(errNoList)
	}
	if l.noTexts {
		return failing(errNoTexts)
	}
	if !f.Work.Charge(len(s) / searchSteps) {
		return failing(ErrTooMuchWork)
	}
	return is(has(l, s))
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
