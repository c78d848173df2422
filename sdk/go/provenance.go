package writ

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Source says where a value of an argument stands.
type Source string

// The sources, in the order in which they are named where several hold.
const (
	SourceUser    Source = "user"    // in the user's words
	SourceRecord  Source = "record"  // it equals a field that [Provenance.Records] names
	SourceText    Source = "text"    // in what a tool returned
	SourceNamed   Source = "named"   // in what a tool returned from a place that the user named
	SourceModel   Source = "model"   // nowhere
	SourceUnknown Source = "unknown" // nowhere that is still kept
)

// Bounds of what is kept of a session. The user's words are never dropped: later ones are not kept. Of results the
// oldest are dropped.
const (
	maxWords   = 64 << 10
	maxResults = 4 << 20
)

// SourceFact begins the keys of [Provenance.Facts].
const SourceFact = "fact.source."

// Provenance keeps the user's words and what tools returned in a session, and says of each argument of a call where its
// values come from. It is safe for concurrent use. The zero Provenance is ready.
//
// A value is compared whole, without case. It stands in a text only if neither neighbour could belong to it: letters,
// digits and ._-@/+%:~#?=& could, but for a full stop or a colon that ends a sentence. So acme.example does not stand
// in bob@acme.example.
//
// A paraphrase stands nowhere. So let only values decide that must be exact: addresses, accounts, paths.
type Provenance struct {
	// Records has by tool the paths of the fields of its results that are yours, such as contacts.*.email. A star
	// is each element or member, and the empty path the whole result. It must not change after the first result.
	Records map[string][]string

	mu      sync.Mutex
	spoken  int // bytes of the user's words
	words   index
	kept    int // bytes of results
	results []*result
	texts   index // of results
	records map[string]int
	dropped bool
}

// result is what a tool returned.
type result struct {
	texts   []*passage
	records []string // folded
	size    int
}

// passage is a text in which values stand.
type passage struct {
	folded string
	named  bool // it is from a place that the user named
}

// User keeps words of the user.
func (p *Provenance) User(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spoken+len(text) > maxWords {
		p.dropped = true
		return
	}
	p.spoken += len(text)
	p.words.add(&passage{folded: fold(text)})
}

// Result keeps the result of a tool: a text, or a value for [json.Marshal]. place is the file, the address or the id of
// its origin, or empty.
func (p *Provenance) Result(tool string, value any, place string) error {
	decoded, err := plainJSON(value)
	if err != nil {
		return fmt.Errorf("the result of %s: %w", tool, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := new(result)
	named := p.words.stands(fold(trim(place)), anywhere)
	add := func(leaf string) {
		r.texts = append(r.texts, &passage{fold(leaf), named})
		r.size += len(leaf)
	}
	eachLeaf(decoded, add)
	if text, ok := decoded.(string); ok {
		if inner, err := decodeJSON([]byte(text)); err == nil {
			decoded = inner
			eachLeaf(inner, add)
		}
	}
	for _, path := range p.Records[tool] {
		var members []string
		if path != "" {
			members = strings.Split(path, ".")
		}
		eachAt(decoded, members, func(field string) { r.records = append(r.records, fold(field)) })
	}
	p.kept += r.size
	p.results = append(p.results, r)
	for _, t := range r.texts {
		p.texts.add(t)
	}
	if p.records == nil {
		p.records = make(map[string]int)
	}
	for _, record := range r.records {
		p.records[record]++
	}
	for p.kept > maxResults {
		p.dropOldest()
	}
	return nil
}

func (p *Provenance) dropOldest() {
	r := p.results[0]
	p.results = p.results[1:]
	p.kept -= r.size
	p.dropped = true
	for _, t := range r.texts {
		p.texts.dropOldest(t)
	}
	for _, record := range r.records {
		if p.records[record]--; p.records[record] == 0 {
			delete(p.records, record)
		}
	}
}

// Facts returns the metadata fact.source.NAME of each argument that has values: their sources in the order of the
// values, between commas. The arguments are what [json.Marshal] takes.
func (p *Provenance) Facts(arguments map[string]any) (map[string]string, error) {
	facts := make(map[string]string, len(arguments))
	for name, argument := range arguments {
		decoded, err := plainJSON(argument)
		if err != nil {
			return nil, fmt.Errorf("the argument %s: %w", name, err)
		}
		var sources []string
		for _, value := range valuesOf(decoded) {
			sources = append(sources, string(p.source(value)))
		}
		switch said := strings.Join(sources, ","); {
		case len(said) > maxFact:
			facts[SourceFact+name] = string(SourceUnknown)
		case said != "":
			facts[SourceFact+name] = said
		}
	}
	return facts, nil
}

// maxFact bounds the bytes of a fact. A longer list of sources is unknown.
const maxFact = 1024

// source returns where a value stands.
func (p *Provenance) source(value string) Source {
	value = fold(value)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch unnamed := func(t *passage) bool { return !t.named }; {
	case p.words.stands(value, anywhere):
		return SourceUser
	case p.records[value] > 0:
		return SourceRecord
	case p.dropped:
		return SourceUnknown
	case p.texts.stands(value, unnamed), isDigits(value) && p.texts.stands(value, anywhere):
		return SourceText
	case p.texts.stands(value, anywhere):
		return SourceNamed
	}
	return SourceModel
}

func anywhere(*passage) bool { return true }

// index finds where values stand in texts, which are folded. The first texts are indexed. The others are searched,
// until they were searched often: a program that asks once is done before they could be indexed.
type index struct {
	texts    []*passage
	indexed  int
	searched int               // how often, since texts were indexed
	spots    map[string][]spot // by run, in the order of the texts
}

const often = 32

// spot is where a run begins.
type spot struct {
	text *passage
	at   int
}

// indexed yields the runs under which a text is found: each, and each without the full stop or the colon at its end.
func indexed(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		for at, run := range runsOf(text) {
			if !yield(at, run) {
				return
			}
			if end := len(run) - 1; end > 0 && (run[end] == '.' || run[end] == ':') && !yield(at, run[:end]) {
				return
			}
		}
	}
}

func (x *index) add(t *passage) { x.texts = append(x.texts, t) }

// grow indexes the texts that are not indexed yet.
func (x *index) grow() {
	if x.spots == nil {
		x.spots = make(map[string][]spot)
	}
	for _, t := range x.texts[x.indexed:] {
		for at, run := range indexed(t.folded) {
			x.spots[run] = append(x.spots[run], spot{t, at})
		}
	}
	x.indexed, x.searched = len(x.texts), 0
}

// dropOldest takes back the text that was added first.
func (x *index) dropOldest(t *passage) {
	x.texts = x.texts[1:]
	if x.indexed == 0 {
		return
	}
	x.indexed--
	for _, run := range indexed(t.folded) {
		if x.spots[run] = x.spots[run][1:]; len(x.spots[run]) == 0 {
			delete(x.spots, run)
		}
	}
}

// stands reports whether a folded value stands in one of the texts. It looks where the rarest run of the value is.
func (x *index) stands(value string, in func(*passage) bool) bool {
	if x.searched++; x.searched > often && x.indexed < len(x.texts) {
		x.grow()
	}
	has := func(t *passage) bool { return in(t) && holds(t.folded, value) }
	if slices.ContainsFunc(x.texts[x.indexed:], has) {
		return true
	}
	var rarest []spot
	offset := -1
	for at, run := range runsOf(value) {
		if spots := x.spots[run]; offset < 0 || len(spots) < len(rarest) {
			rarest, offset = spots, at
		}
	}
	if offset < 0 {
		return slices.ContainsFunc(x.texts[:x.indexed], has)
	}
	return slices.ContainsFunc(rarest, func(s spot) bool {
		return in(s.text) && standsAt(s.text.folded, s.at-offset, value)
	})
}

// holds reports whether a value stands in text.
func holds(text, value string) bool {
	for at := 0; value != ""; at++ {
		next := strings.Index(text[at:], value)
		if next < 0 {
			break
		}
		if at += next; standsAt(text, at, value) {
			return true
		}
	}
	return false
}

// standsAt reports whether value stands in text at a place.
func standsAt(text string, at int, value string) bool {
	if at < 0 || value == "" || !strings.HasPrefix(text[at:], value) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	return (at == 0 || !joins(before)) && ends(text[at+len(value):])
}

// ends reports whether a value can end before rest.
func ends(rest string) bool {
	next, size := utf8.DecodeRuneInString(rest)
	if rest == "" || !joins(next) {
		return true
	}
	if next != '.' && next != ':' {
		return false
	}
	after, _ := utf8.DecodeRuneInString(rest[size:])
	return rest[size:] == "" || !joins(after)
}

// joins reports whether a character could belong to a value beside it.
func joins(r rune) bool {
	if r < utf8.RuneSelf {
		return joining[r]
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Cf)
}

// joining has the characters of ASCII that join.
var joining = func() (all [utf8.RuneSelf]bool) {
	for r := range all {
		all[r] = unicode.IsLetter(rune(r)) || unicode.IsDigit(rune(r)) || strings.ContainsRune("._-@/+%:~#?=&", rune(r))
	}
	return all
}()

// runsOf yields the longest parts of a text whose characters all join, and where each begins.
func runsOf(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		for at := 0; ; {
			start := strings.IndexFunc(text[at:], joins)
			if start < 0 {
				return
			}
			at += start
			length := strings.IndexFunc(text[at:], func(r rune) bool { return !joins(r) })
			if length < 0 {
				length = len(text) - at
			}
			if !yield(at, text[at:at+length]) {
				return
			}
			at += length
		}
	}
}

// fold returns a text in lower case, character by character. İ stays, because it would become an i.
func fold(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	return strings.Map(func(r rune) rune {
		if r == 'İ' {
			return r
		}
		return unicode.ToLower(r)
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// isDigits reports whether a value is a number, an amount, a date or the like, which stand in many texts by chance.
func isDigits(value string) bool {
	other := func(r rune) bool { return !unicode.IsDigit(r) && !strings.ContainsRune(" .,-+/:", r) }
	return strings.ContainsFunc(value, unicode.IsDigit) && !strings.ContainsFunc(value, other)
}

// addressed matches an address behind a display name.
var addressed = regexp.MustCompile(`^(?:"[^"@,;<>()\\]*"|[^"@,;<>()]*)\s*<([^<>"()\s@]+@[^<>"()\s@]+)>$`)

// valuesOf returns the values of an argument. A text, or the text of a JSON array of texts, is read as a list, as
// conditions read metadata. It is one value if it has comments, or quotes or angle brackets that belong to no display
// name.
func valuesOf(decoded any) (values []string) {
	text, ok := decoded.(string)
	if !ok {
		eachLeaf(decoded, func(leaf string) {
			if value := addressIn(leaf); value != "" {
				values = append(values, value)
			}
		})
		return values
	}
	if list, err := decodeJSON([]byte(text)); err == nil {
		isOther := func(v any) bool { _, isText := v.(string); return !isText }
		if list, ok := list.([]any); ok && !slices.ContainsFunc(list, isOther) {
			return valuesOf(list)
		}
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(",;\r\n", r) }) {
		if part = trim(part); part == "" {
			continue
		}
		value := addressIn(part)
		if value == part && strings.ContainsAny(part, `"<>()`) {
			return []string{trim(text)}
		}
		values = append(values, value)
	}
	return values
}

// addressIn returns the address that a display name stands before, else the element.
func addressIn(element string) string {
	element = trim(element)
	if m := addressed.FindStringSubmatch(element); m != nil {
		return m[1]
	}
	return element
}

func trim(text string) string { return strings.Trim(text, " \t\r\n") }

// plainJSON returns a value as JSON decodes it.
func plainJSON(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case json.RawMessage:
		return decodeJSON(v)
	case map[string]any, []any:
		if isPlain(v) {
			return v, nil
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return decodeJSON(text)
}

// isPlain reports whether a value is as decodeJSON returns it.
func isPlain(value any) bool {
	switch v := value.(type) {
	case nil, string, bool, json.Number:
		return true
	case []any:
		return !slices.ContainsFunc(v, func(element any) bool { return !isPlain(element) })
	case map[string]any:
		for _, member := range v {
			if !isPlain(member) {
				return false
			}
		}
		return true
	}
	return false
}

// decodeJSON decodes an object, an array or another value, with numbers as they are written.
func decodeJSON(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

// eachLeaf calls f with the texts, the numbers and the truth values in v. Members are in the order of their names.
func eachLeaf(v any, f func(leaf string)) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachLeaf(v[name], f)
		}
	case []any:
		for _, element := range v {
			eachLeaf(element, f)
		}
	case string:
		f(v)
	case json.Number:
		f(v.String())
	case bool:
		f(strconv.FormatBool(v))
	}
}

// eachAt calls f with the fields at path that are texts, numbers or truth values.
func eachAt(v any, path []string, f func(field string)) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if len(path) > 0 && (path[0] == "*" || path[0] == name) {
				eachAt(member, path[1:], f)
			}
		}
	case []any:
		for _, element := range v {
			if len(path) > 0 && path[0] == "*" {
				eachAt(element, path[1:], f)
			}
		}
	case nil:
	default:
		if len(path) == 0 {
			f(fmt.Sprint(v))
		}
	}
}
