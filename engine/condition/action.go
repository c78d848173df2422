package condition

import (
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"writ/engine/flat"
	"writ/engine/glob"
)

// ActionSet is a compiled list of action types. An entry is compared exactly,
// case and all, except that each * stands for any characters, dots too:
//
//	sql.write   matches sql.write alone
//	sql.*       matches sql.write and sql.write.bulk, but not sql or sqlite.x
//	*.delete    matches sql.delete and s3.object.delete
//	*           matches every action type
//
// A * spans dots because a denied sql.* must not be escaped by a deeper name.
//
// ActionSet is safe for concurrent use.
type ActionSet struct {
	// flat is the set in one piece of memory (see package flat): how many slots and
	// wildcards it has; a hash table of the entries without wildcards, whose slots are a
	// hash and the place of an entry, 0 in an empty one; those with wildcards in order, each
	// its index, its size, and its literals between the asterisks, each with its length
	// before it; the others, each its index, its length and its text.
	flat string
}

// Places in an ActionSet.
const (
	actionHeader = 8
	slotSize     = 8
	entryHeader  = 8
)

// actionSeed is of the hashes of action types: those of two processes differ.
var actionSeed = maphash.MakeSeed()

// CompileActions compiles action types. Its error is a *[glob.PatternError].
func CompileActions(types []string) (*ActionSet, error) {
	for i, t := range types {
		if problem := checkActionType(t); problem != "" {
			return nil, &glob.PatternError{Index: i, Problem: problem}
		}
	}
	return &ActionSet{string(appendActions(nil, types))}, nil
}

// appendActions appends the ActionSet of types.
func appendActions(b []byte, types []string) []byte {
	exact, wildcards := map[string]int{}, []byte{}
	count := 0
	for i, t := range types {
		if strings.Contains(t, "*") {
			wildcards = appendWildcard(wildcards, i, t)
			count++
		} else if _, ok := exact[t]; !ok {
			exact[t] = i
		}
	}
	slots := make([]uint32, 2*slotsFor(len(exact)))
	at := actionHeader + 4*len(slots) + len(wildcards)
	var entries []byte
	for i, t := range types {
		if first, ok := exact[t]; !ok || first != i {
			continue
		}
		h := actionHash(maphash.String(actionSeed, t))
		slot := int(h) % (len(slots) / 2)
		for slots[2*slot+1] != 0 {
			slot = (slot + 1) % (len(slots) / 2)
		}
		slots[2*slot], slots[2*slot+1] = h, fixed(at+len(entries))
		entries = append(appendNumbers(entries, i, len(t)), t...)
	}
	b = appendNumbers(b, len(slots)/2, count)
	for _, n := range slots {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return append(append(b, wildcards...), entries...)
}

// slotsFor returns how many slots n entries have: of them, a quarter at least is empty.
func slotsFor(n int) int {
	if n == 0 {
		return 0
	}
	return 1 << bits.Len(uint(n+n/3))
}

func appendWildcard(b []byte, index int, t string) []byte {
	var parts []byte
	for part := range strings.SplitSeq(t, "*") {
		parts = append(appendNumbers(parts, len(part)), part...)
	}
	return append(appendNumbers(b, index, len(parts)), parts...)
}

// fixed is n, a place or a length, as package flat reads it.
func fixed(n int) uint32 { return uint32(n) } //nolint:gosec // a document is far smaller

func appendNumbers(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint32(b, fixed(n))
	}
	return b
}

// actionHash is the part of a hash that slots hold.
func actionHash(h uint64) uint32 { return uint32(h) } //nolint:gosec // that is meant

func checkActionType(t string) string {
	switch {
	case t == "":
		return "is empty"
	case len(t) > glob.MaxLength:
		return "is longer than 1024 bytes"
	case !utf8.ValidString(t):
		return "is not valid UTF-8"
	case strings.ContainsAny(t, `?[]{}\`):
		return "has a wildcard other than *, which is the only one of action types"
	}
	for _, r := range t {
		if unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
			return "has white space or a character that is not seen"
		}
	}
	return ""
}

// Match returns the index of the first entry that matches action, -1 when none
// does. It does not allocate.
func (a *ActionSet) Match(action string) int {
	first := a.exact(action)
	for w := a.wildcards(); w.next(); {
		if first >= 0 && w.index > first {
			break
		}
		if w.match(action) {
			return w.index
		}
	}
	return first
}

// each yields the index of every entry that matches action, but for repeated ones.
func (a *ActionSet) each(action string, yield func(index int)) {
	if i := a.exact(action); i >= 0 {
		yield(i)
	}
	for w := a.wildcards(); w.next(); {
		if w.match(action) {
			yield(w.index)
		}
	}
}

func (a *ActionSet) matchWildcard(action string) int {
	for w := a.wildcards(); w.next(); {
		if w.match(action) {
			return w.index
		}
	}
	return -1
}

// Steps is nothing: action types are short, and so are their patterns.
func (a *ActionSet) Steps(string) int { return 0 }

// Flat returns the set in one piece of memory.
func (a *ActionSet) Flat() string { return a.flat }

// Size returns about how many bytes a keeps on the heap.
func (a *ActionSet) Size() int { return len(a.flat) + int(unsafe.Sizeof(*a)) }

// exact returns the index of the entry without wildcards that is action, or -1.
func (a *ActionSet) exact(action string) int {
	return find(a.flat, maphash.String(actionSeed, action), action)
}

// exactBytes is exact of what is no string yet.
func (a *ActionSet) exactBytes(action []byte) int {
	return find(a.flat, maphash.Bytes(actionSeed, action), action)
}

// find looks up the entry that is action, of which h is the hash.
func find[T string | []byte](b string, h uint64, action T) int {
	slots := flat.Int(b, 0)
	if slots == 0 {
		return -1
	}
	want := actionHash(h)
	for slot := int(want) & (slots - 1); ; slot = (slot + 1) & (slots - 1) {
		at := flat.Int(b, actionHeader+slot*slotSize+4)
		if at == 0 {
			return -1
		}
		if flat.Uint32(b, actionHeader+slot*slotSize) != want {
			continue
		}
		if entry := b[at+entryHeader:]; entry[:flat.Int(b, at+4)] == string(action) {
			return flat.Int(b, at)
		}
	}
}

// wildcards are the entries with wildcards from some place on, of which index is the
// current one's.
type wildcards struct {
	rest, parts string
	left, index int
}

func (a *ActionSet) wildcards() wildcards {
	return wildcards{rest: a.flat[actionHeader+flat.Int(a.flat, 0)*slotSize:], left: flat.Int(a.flat, 4)}
}

// next moves to the next entry. It returns false if there is none.
func (w *wildcards) next() bool {
	if w.left == 0 {
		return false
	}
	w.left--
	w.index = flat.Int(w.rest, 0)
	end := entryHeader + flat.Int(w.rest, 4)
	w.parts, w.rest = w.rest[entryHeader:end], w.rest[end:]
	return true
}

// match reports whether the current entry matches action.
func (w *wildcards) match(action string) bool {
	part, parts := cutPart(w.parts)
	rest, ok := strings.CutPrefix(action, part)
	if !ok {
		return false
	}
	for part, parts = cutPart(parts); parts != ""; part, parts = cutPart(parts) {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, part)
}

// cutPart returns the literal at the start of parts, and what follows it.
func cutPart(parts string) (part, rest string) {
	n := flat.Int(parts, 0)
	return parts[4 : 4+n], parts[4+n:]
}
