package resource

import (
	"slices"
	"strings"
)

// Error says why a resource has no single meaning and so cannot be evaluated. The message repeats
// nothing of the resource.
type Error struct {
	Problem string
}

// Error implements error.
func (e *Error) Error() string { return "resource: " + e.Problem }

// Reader is a set of readers.
type Reader uint16

// The readers. Raw reads the text as it was written. Only a block looks at that reading.
const (
	Raw Reader = 1 << iota
	Client
	Browser
	Server
	Literal
	POSIX
	DecodedPOSIX
	Windows
	Address
	Number

	All = 1<<iota - 1
)

// String returns the names of the readers, such as "client, browser".
func (r Reader) String() string { return strings.Join(r.Names(), ", ") }

// Names returns the name of each reader of the set.
func (r Reader) Names() []string {
	var names []string
	for i, name := range [...]string{"raw", "client", "browser", "server", "literal", "posix", "decoded_posix",
		"windows", "address", "number"} {
		if r&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// Reading is a resource, or a pattern, in canonical form. All of Readers read it as Text.
type Reading struct {
	Text    string
	Readers Reader
}

// Readings are all readings of one resource. The zero value has none.
type Readings struct {
	raw string
	// normal is the normal form without user info. Its projection is stored. The normal form
	// is the browser's reading of a web URL, the client's reading of a service, and the
	// reading of POSIX or Windows for any other resource.
	normal       string
	form         form
	block, allow []Reading
	// plain has the readers of a plain resource. For a plain resource, block and allow are empty.
	// A block also looks at the resource without its query. query is the length of the query.
	plain Reader
	query int
}

// Raw returns the resource as it was written.
func (r *Readings) Raw() string { return r.raw }

// Len returns the number of readings for side: a block looks at all of them, an allowance has to
// cover all of them.
func (r *Readings) Len(side Side) int {
	switch {
	case r.plain == 0:
		return len(r.of(side))
	case side == ForBlock:
		return 1 + min(r.query, 1)
	case side == ForAllow:
		return 1
	}
	return 0
}

// At returns the reading with index i for side. At(ForBlock, 0) is the text as written.
func (r *Readings) At(side Side, i int) Reading {
	switch {
	case r.plain == 0:
		return r.of(side)[i]
	case side == ForAllow:
		return Reading{r.raw, r.plain}
	case i == 0:
		return Reading{r.raw, r.plain | Raw}
	}
	return Reading{r.raw[:len(r.raw)-r.query], r.plain}
}

func (r *Readings) of(side Side) []Reading {
	switch side {
	case ForBlock:
		return r.block
	case ForAllow:
		return r.allow
	}
	return nil
}

// Stops is the set of characters at which a * of an allowed pattern ends. A slash is always one of
// them.
type Stops uint8

// The values of Stops.
const (
	StopsAtSlash Stops = iota
	// StopsInList: the name may be a list, because it has no slash or has a colon before its first
	// slash. A * also ends at , ; ? & and white space.
	StopsInList
	// StopsAtAt: in an address a * ends at the @.
	StopsAtAt
)

// String returns the name of s in the input of Rego.
func (s Stops) String() string { return [...]string{"", "list", "address"}[s] }

// Stops returns the characters at which a * of an allowed pattern ends in these readings.
func (r *Readings) Stops() Stops {
	switch {
	case r.form == formAddresses:
		return StopsAtAt
	case r.form == formName && isList(r.raw):
		return StopsInList
	}
	return StopsAtSlash
}

// isList reports whether name may be a list: it has no slash, or it has a colon before its first
// slash and that slash does not follow the colon directly.
func isList(name string) bool {
	slash, colon := strings.IndexByte(name, '/'), strings.IndexByte(name, ':')
	return slash < 0 || colon >= 0 && colon < slash-1
}

// Read returns the readings of raw. It returns an *[Error] if raw has no single meaning. It
// allocates nothing if raw is plain.
func Read(raw string) (Readings, error) {
	if r, ok := readPlain(raw); ok {
		return r, nil
	}
	return readAny(raw)
}

// readAny does the same as [Read] for any resource, plain or not.
func readAny(raw string) (Readings, error) {
	r, t, err := readAllowed(raw)
	if err != nil {
		return Readings{}, err
	}
	block, refused := blockReadings(&t)
	if refused != nil {
		return Readings{}, refused
	}
	r.block = block
	return r, nil
}

// readAllowed does the same as readAny without the readings of a block, which take longest.
func readAllowed(raw string) (Readings, text, error) {
	if err := checkText(raw); err != nil {
		return Readings{}, text{}, err
	}
	if wrappedURL.MatchString(raw) {
		return Readings{}, text{}, &Error{"it is a URL within < > or behind URL:, which some clients take off"}
	}
	t := newText(raw)
	if err := t.read(); err != nil {
		return Readings{}, text{}, err
	}
	r := Readings{raw: raw, form: t.form, allow: t.readings.list}
	r.normal = normalForm(&t)
	if len(r.normal) > MaxLength {
		return Readings{}, text{}, &Error{"its normal form is longer than 8192 bytes"}
	}
	return r, t, nil
}

func normalForm(t *text) string {
	want := [...]Reader{formWeb: Browser, formFile: POSIX, formWindows: Windows, formService: Client,
		formAddresses: 0}[t.form]
	i := slices.IndexFunc(t.readings.list, func(r Reading) bool { return r.Readers&want != 0 })
	if i < 0 {
		return posixPath(t.raw)
	}
	return t.readings.list[i].Text
}

// text is a resource or a pattern while it is read. In a pattern [Wild] characters stand for the
// wildcards.
type text struct {
	raw     string
	pattern bool
	form    form
	// scheme is in lower case, without its last colon. rest is the text after that colon.
	scheme, rest string
	readings     collection
	// blocks has further readings that only a block looks at. While blocking is set, new readings
	// are added to blocks.
	blocks   collection
	blocking bool
}

func newText(raw string) text {
	f, scheme, rest := classify(raw)
	return text{raw: raw, form: f, scheme: scheme, rest: rest}
}

// collection is a list of readings. No two readings have the same text.
type collection struct {
	list  []Reading
	index map[string]int
}

// add adds a reading. Readers with the same text share one reading.
func (c *collection) add(readers Reader, s string) {
	i, ok := c.index[s]
	if c.index == nil {
		i = slices.IndexFunc(c.list, func(r Reading) bool { return r.Text == s })
		ok = i >= 0
	}
	if ok {
		c.list[i].Readers |= readers
		return
	}
	c.list = append(c.list, Reading{s, readers})
	const indexed = 16 // with fewer readings a search is faster than making a map
	switch n := len(c.list); {
	case n == indexed:
		c.index = make(map[string]int, 2*n)
		for i, r := range c.list {
			c.index[r.Text] = i
		}
	case n > indexed:
		c.index[s] = n - 1
	}
}

func (t *text) add(readers Reader, s string) {
	if t.blocking {
		t.blocks.add(readers, s)
	} else {
		t.readings.add(readers, s)
	}
}

// forBlocks calls read. Only a block looks at the readings that read adds.
func (t *text) forBlocks(read func()) {
	before := t.blocking
	t.blocking = true
	read()
	t.blocking = before
}

// read collects the readings of t's form.
func (t *text) read() *Error {
	switch t.form {
	case formWeb:
		return t.readWeb()
	case formFile:
		return t.readFile()
	case formWindows:
		t.addWindows(t.raw)
	case formService:
		if err := checkEscapedControls(splitURL(t.rest).path); err != nil {
			return err
		}
		return t.readService(t.rest)
	case formAddresses:
		t.readAddresses()
	default:
		t.readName()
	}
	return nil
}

// readName reads a path or another name.
func (t *text) readName() {
	local := posixPath(t.raw)
	t.add(POSIX, letters(local))
	if strings.IndexByte(t.raw, '\\') >= 0 || strings.HasPrefix(t.raw, "//") {
		t.addWindows(t.raw)
	}
	if hasEscape(t.raw) {
		t.addServed("", "", t.raw, local)
	}
}
