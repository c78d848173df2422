package condition

import (
	"encoding/json"
	"slices"
	"strings"

	"writ.example/writ/engine/resource"
)

// Value is a metadata value, as conditions read it. It is immutable.
type Value struct {
	Elements []Element
	// Sizes has the numbers of elements that programs may count.
	Sizes []int64
	// Address has the readings of the value if it is one address, beside which only a display name
	// may stand.
	Address []string

	text  string
	steps int // the work of reading it
}

// Blocked yields all readings of the value for a comparison that makes the outcome stricter. The
// first is the value as it is.
func (v *Value) Blocked(yield func(text string) bool) {
	if !yield(v.text) {
		return
	}
	for _, e := range v.Elements {
		for _, s := range e.Blocked {
			if !yield(s) {
				return
			}
		}
	}
}

// Element is an element of a value that is read as a list.
type Element struct {
	// Text is the element as it is.
	Text string
	// Addresses and Others are what the element is read as where a comparison makes the outcome
	// milder: its addresses, and the element itself if it has none or is more than addresses.
	Addresses, Others []string
	// Blocked has the readings for a comparison that makes the outcome stricter.
	Blocked []string
}

// ReadValue reads a metadata value as a list: the members of a JSON array of strings, or the parts
// between commas, semicolons and line ends. See [resource.CutList] and [resource.ReadMail].
func ReadValue(text string) *Value {
	v := &Value{text: text}
	parts, isArray := stringArray(text)
	if !isArray {
		parts = resource.CutList(text, false)
	}
	v.Elements = make([]Element, 0, len(parts))
	items, rest := 0, text
	for _, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		e, n := readElement(part)
		v.Elements = append(v.Elements, e)
		items += n
		// The cut may have taken a part of a URL's query for an element.
		at := strings.Index(rest, part)
		if !isArray && resource.IsMailto(part) && strings.Contains(rest[at:], "?") && part != rest[at:] {
			e, _ := readElement(strings.TrimSpace(rest[at:]))
			v.Elements = append(v.Elements, e)
		}
		if !isArray {
			rest = rest[at+len(part):]
		}
	}
	if !isArray && len(v.Elements) > 1 {
		v.Elements[0].block(uncut(text)...)
	}
	v.Sizes = []int64{int64(len(v.Elements))}
	v.count(items)
	if !isArray {
		v.count(len(resource.CutList(text, true)))
		if len(v.Elements) == 1 && items == 1 && len(v.Elements[0].Others) == 0 {
			v.Address = v.Elements[0].Addresses
		}
	}
	v.steps = 4*len(text) + itemSteps*max(items, len(v.Elements)) + v.readingSteps()
	return v
}

// readingSteps returns the work of visiting all readings. Programs that visit them charge for readings
// that are together as long as the value. Readings of "mailto:a@b?cc=c@d,mailto:…" are longer, as each
// URL may go on to the end of the value: the rest is charged here.
func (v *Value) readingSteps() int {
	readings, size := 0, 0
	for _, e := range v.Elements {
		readings += len(e.Blocked)
		for _, s := range e.Blocked {
			size += 16 + len(s)
		}
	}
	return 8*readings + max(0, size-32*len(v.text))
}

// uncut returns the readings of a list for mailers that do not cut it in comments, at line ends or in
// encoded words.
func uncut(text string) (all []string) {
	if strings.ContainsAny(text, "(\r\n") {
		e, _ := readElement(resource.Unfolded(text))
		all = slices.Concat(e.Blocked, resource.Reached(text))
	}
	if strings.Contains(text, "=?") {
		e, _ := readElement(text)
		all = append(all, e.Blocked[1:]...) // the first is the value itself
	}
	return all
}

// Steps returns the work of reading the value and of visiting its items.
func (v *Value) Steps() int { return v.steps }

// count adds a number of elements.
func (v *Value) count(n int) {
	if !slices.Contains(v.Sizes, int64(n)) {
		v.Sizes = append(v.Sizes, int64(n))
	}
}

// Items returns the readings that a comparison must satisfy where it makes the outcome milder.
func (v *Value) Items() []string {
	items := make([]string, 0, len(v.Elements))
	for _, e := range v.Elements {
		items = append(append(items, e.Addresses...), e.Others...)
	}
	return items
}

// readElement reads an element, and returns the number of its items.
func readElement(text string) (e Element, items int) {
	e = Element{Text: text, Blocked: []string{text}}
	if !resource.MayHoldMail(text) {
		e.Others = e.Blocked[:1:1]
		e.block(unquoted(text)...)
		return e, 1
	}
	mail := resource.ReadMail(text)
	e.Addresses, items = mail.Addresses, mail.Count
	if mail.Strange || len(mail.Addresses) == 0 {
		e.Others, items = e.Blocked[:1:1], items+1
	}
	e.block(mail.Addresses...)
	e.block(mail.Further...)
	e.block(unquoted(text)...)
	return e, items
}

// NotPlain has the characters that a plain value does not have. A plain value is not empty, and no white
// space is around it: it has one element, and one reading.
const NotPlain = "@:,;\"<>()[]\\\n\r"

// isPlain reports whether a value has one element and one reading, the value itself.
func isPlain(text string) bool {
	return text != "" && !strings.ContainsAny(text, NotPlain) && strings.TrimSpace(text) == text
}

// block adds readings that a block looks at.
func (e *Element) block(texts ...string) {
	for _, s := range texts {
		if s != e.Text {
			e.Blocked = append(e.Blocked, s)
		}
	}
}

// unquoted returns text without its quotes, and the parts of a cut that heeds none.
func unquoted(text string) []string {
	if !strings.ContainsAny(text, "\"<>,;\n\r") {
		return nil
	}
	parts := resource.CutList(text, true)
	bare := strings.TrimSpace(strings.ReplaceAll(text, `"`, ""))
	if bare != "" && bare != text {
		parts = append(append(parts, bare), resource.CutList(bare, true)...)
	}
	return parts
}

func stringArray(text string) ([]string, bool) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "[") {
		return nil, false
	}
	var members []any
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, false
	}
	parts := make([]string, len(members))
	for i, member := range members {
		s, ok := member.(string)
		if !ok {
			return nil, false
		}
		parts[i] = s
	}
	return parts, true
}

// itemSteps is the number of steps that a macro takes for each item: see maxWork. Patterns in the
// macro charge their own steps.
const itemSteps = 128
