package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Entry leads to an item of the history. Entries are sorted by all fields, in their order.
type Entry struct {
	Name  Name
	At    uint64 // the place in the list of this name
	Frame uint64
	Item  uint32 // in the frame
}

var lastEntry = Entry{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint32}

func compare(a, b Entry) int {
	switch {
	case a.Name != b.Name:
		return cmp.Compare(a.Name, b.Name)
	case a.At != b.At:
		return cmp.Compare(a.At, b.At)
	case a.Frame != b.Frame:
		return cmp.Compare(a.Frame, b.Frame)
	}
	return cmp.Compare(a.Item, b.Item)
}

// Name names the entries that are found together. It is a hash whose last two bits are the [Class].
type Name uint64

// Class says how the entries of a name are sorted.
type Class byte

// The classes of names.
const (
	Keyed   Class = iota // an intent, or the key of an entry: in the order of frames
	Rows                 // a list of rows, by the first eight bytes of their ids
	Settled              // what became of rows, by the same
	Entries              // a list of entries, by their frames
	classes
)

func (n Name) class() Class { return Class(n % Name(classes)) }

// A table has the entries of a sealed segment. docs/history-tables.md describes it:
//
//	table  = magic(16) content(8) head(8) entries(4) blocks(4) 4*(least(8) greatest(8))
//	         blocks*(name(8) at(8)) checksum(4) *block
//	block  = entries(2) *entry zeros checksum(4)           4096 bytes
//	entry  = uvarint(name) uvarint(at) uvarint(frame) uvarint(item)
//
// The integers are little-endian. least and greatest are of At, by class. Before the blocks is the
// name and At of the first entry of each. In an entry, name is the difference from the entry before
// in the block. If it is 0, At is a difference too, and frame is the zigzag of one. A frame counts
// from the segment's first frame, which is 0.
const (
	tableMagic     = "writ table 1\n\x00\x00\x00"
	tableHeaderLen = len(tableMagic) + 8 + 8 + 4 + 4 + int(classes)*16
	firstLen       = 8 + 8
	blockLen       = 4096
	maxEntryLen    = 2*binary.MaxVarintLen64 + 2*binary.MaxVarintLen32
)

// errTable says that a table is missing or damaged, or that it has another content.
var errTable = errors.New("the table is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ident identifies what a table is derived from. head is of the segment's last head, and content of
// all else.
type ident struct{ content, head uint64 }

// span has the least and the greatest At of some entries.
type span struct{ least, greatest uint64 }

// spans are the spans of the entries of each class.
type spans [classes]span

func noSpans() (s spans) {
	for i := range s {
		s[i].least = math.MaxUint64
	}
	return s
}

func (s *spans) add(e Entry) {
	of := &s[e.Name.class()]
	of.least, of.greatest = min(of.least, e.At), max(of.greatest, e.At)
}

// appendEntry appends an entry to a block in which before is the entry before it.
func appendEntry(dst []byte, before, e Entry) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.Name-before.Name))
	if e.Name == before.Name {
		dst = binary.AppendUvarint(dst, e.At-before.At)
		dst = binary.AppendVarint(dst, int64(e.Frame-before.Frame)) //nolint:gosec // it may be negative
	} else {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, e.At), e.Frame)
	}
	return binary.AppendUvarint(dst, uint64(e.Item))
}

// makeTable returns the table of the sorted entries of a segment with the given first frame.
func makeTable(of ident, first uint64, sorted iter.Seq[Entry]) []byte {
	var blocks, firsts, block []byte
	n, in, before, all := 0, 0, Entry{}, noSpans()
	end := func() {
		if in == 0 {
			return
		}
		binary.LittleEndian.PutUint16(block, uint16(in)) //nolint:gosec // a block has fewer
		block = append(block, make([]byte, blockLen-4-len(block))...)
		sum := blockSum(of.content, len(blocks)/blockLen, block)
		blocks = binary.LittleEndian.AppendUint32(append(blocks, block...), sum)
	}
	for e := range sorted {
		all.add(e)
		e.Frame -= first
		if in == 0 || len(block)+maxEntryLen > blockLen-4 {
			end()
			firsts = binary.LittleEndian.AppendUint64(firsts, uint64(e.Name))
			firsts = binary.LittleEndian.AppendUint64(firsts, e.At)
			block, in, before = append(block[:0], 0, 0), 0, Entry{}
		}
		block = appendEntry(block, before, e)
		before = e
		n, in = n+1, in+1
	}
	end()
	table := appendHeader(nil, of, n, len(blocks)/blockLen, all)
	table = append(table, firsts...)
	table = binary.LittleEndian.AppendUint32(table, crc32.Checksum(table, castagnoli))
	return append(table, blocks...)
}

func appendHeader(dst []byte, of ident, entries, blocks int, all spans) []byte {
	dst = append(dst, tableMagic...)
	dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, of.content), of.head)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(entries)) //nolint:gosec // a segment has fewer
	dst = binary.LittleEndian.AppendUint32(dst, uint32(blocks))  //nolint:gosec // a segment has fewer
	for _, s := range all {
		dst = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, s.least), s.greatest)
	}
	return dst
}

// blockSum returns the checksum of block i. It covers the content and the number of the block, so that
// no block of another table is taken for this one.
func blockSum(content uint64, i int, block []byte) uint32 {
	var b [8 + 4]byte
	binary.LittleEndian.PutUint64(b[:], content)
	binary.LittleEndian.PutUint32(b[8:], uint32(i)) //nolint:gosec // a table has fewer
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, block)
}

// table is an open table.
type table struct {
	file    vfs.File
	of      ident
	first   uint64 // the first frame of the segment
	entries int
	spans   spans
	firsts  []byte // the first name and At of each block
	start   int64  // of the first block
}

// openTable opens the table of a segment. headKnown says whether of.head is known. If the table is
// missing, or has another content or size, the error is errTable.
func openTable(fs vfs.FS, name string, of ident, headKnown bool, first uint64) (_ *table, err error) {
	file, err := fs.Open(name, vfs.RandomReadsOption)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTable, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	t := &table{file: file, of: of, first: first}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, tableHeaderLen)
	if err := t.read(b, 0); err != nil {
		return nil, err
	}
	rest := b[len(tableMagic):]
	of.head = binary.LittleEndian.Uint64(rest[8:])
	t.entries = int(binary.LittleEndian.Uint32(rest[16:]))
	blocks := int64(binary.LittleEndian.Uint32(rest[20:]))
	for i := range t.spans {
		at := rest[24+16*i:]
		t.spans[i] = span{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])}
	}
	t.start = int64(tableHeaderLen) + blocks*firstLen + 4
	if !bytes.Equal(b, appendHeader(nil, of, t.entries, int(blocks), t.spans)) || headKnown && of != t.of ||
		info.Size() != t.start+blocks*blockLen {
		return nil, fmt.Errorf("%w: %s is of another segment, or cut", errTable, name)
	}
	b = append(b, make([]byte, t.start-int64(len(b)))...)
	if err := t.read(b[tableHeaderLen:], int64(tableHeaderLen)); err != nil {
		return nil, err
	}
	end := len(b) - 4
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, fmt.Errorf("%w: the start of %s", errTable, name)
	}
	t.firsts = b[tableHeaderLen:end]
	return t, nil
}

func (t *table) blocks() int { return len(t.firsts) / firstLen }

// size returns the size of the file.
func (t *table) size() int64 { return t.start + int64(t.blocks())*blockLen }

// read reads all of b.
func (t *table) read(b []byte, at int64) error {
	n, err := t.file.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errTable
	}
	return err
}

// block appends to dst the entries of block i from least to greatest. It reads the block into room, and makes room if
// it is nil.
func (t *table) block(i int, least, greatest Entry, dst []Entry, room *[]byte) ([]Entry, error) {
	if *room == nil {
		*room = make([]byte, blockLen)
	}
	b := *room
	if err := t.read(b, t.start+int64(i)*blockLen); err != nil {
		return nil, err
	}
	b, sum := b[:blockLen-4], b[blockLen-4:]
	if blockSum(t.of.content, i, b) != binary.LittleEndian.Uint32(sum) {
		return nil, fmt.Errorf("%w: block %d", errTable, i)
	}
	rest, last := b[2:], Entry{Frame: t.first}
	uvarint := func() uint64 {
		v, n := binary.Uvarint(rest)
		rest = rest[max(n, 0):]
		return v
	}
	for range binary.LittleEndian.Uint16(b) {
		e := last
		if name := uvarint(); name != 0 {
			e = Entry{Name: e.Name + Name(name), At: uvarint(), Frame: t.first + uvarint()}
		} else {
			e.At += uvarint()
			frame := uvarint()
			e.Frame += frame>>1 ^ -(frame & 1)
		}
		e.Item = uint32(uvarint()) //nolint:gosec // a frame has fewer
		if compare(e, greatest) > 0 {
			break
		}
		if compare(e, least) >= 0 {
			dst = append(dst, e)
		}
		last = e
	}
	return dst, nil
}

// near appends to dst entries of a name between from and to, which is before from if back is set. They are those of the
// first block that has some. more says that others can follow.
func (t *table) near(from, to Entry, back bool, dst []Entry, room *[]byte) (_ []Entry, more bool, err error) {
	// The block before the first that begins at from or after it can have entries of the same At.
	i, n := max(0, t.search(from, back)-1), len(dst)
	for i < t.blocks() {
		least, greatest, next := from, to, i+1
		if back {
			least, greatest, next = to, from, i-1
		}
		if dst, err = t.block(i, least, greatest, dst, room); err != nil {
			return nil, false, err
		}
		// Entries can follow if the later of the two blocks begins with one of the name that is not behind the last.
		if more = next >= 0 && next < t.blocks(); more {
			first := t.begins(max(i, next))
			more = first.Name == to.Name && (back && first.At >= to.At || !back && first.At <= to.At)
		}
		if len(dst) > n || !more {
			break
		}
		i = next
	}
	if back {
		slices.Reverse(dst[n:])
	}
	return dst, more, nil
}

// search returns the number of blocks that begin before from, or with its At if back is set.
func (t *table) search(from Entry, back bool) int {
	return sort.Search(t.blocks(), func(i int) bool {
		first := t.begins(i)
		return first.Name > from.Name || first.Name == from.Name && (first.At > from.At || !back && first.At == from.At)
	})
}

// begins returns the Name and At of the first entry of block i.
func (t *table) begins(i int) Entry {
	b := t.firsts[i*firstLen:]
	return Entry{Name: Name(binary.LittleEndian.Uint64(b)), At: binary.LittleEndian.Uint64(b[8:])}
}

// all yields all entries. It ends at the first error, and sets it.
func (t *table) all(failed *error) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		var buf []Entry
		var room []byte
		for i := range t.blocks() {
			if buf, *failed = t.block(i, Entry{}, lastEntry, buf[:0], &room); *failed != nil {
				return
			}
			for _, e := range buf {
				if !yield(e) {
					return
				}
			}
		}
	}
}
