package index

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A table has the intents of a sealed segment, sorted by their hashes. docs/history-format.md
// describes it:
//
//	table  = magic(16) content(8) entries(4) checksum(4) *block
//	block  = *entry checksum(4)                                 340 entries, or fewer in the last block
//	entry  = hash(8) frame(4)
//
// The integers are little-endian. A frame counts from the segment's first frame, which is 0.
const (
	tableMagic     = "writ intents 1\n\x00"
	tableHeaderLen = len(tableMagic) + 8 + 4 + 4
	entryLen       = 8 + 4
	blockEntries   = 340
	blockLen       = blockEntries*entryLen + 4
)

// errTable says that a table is missing or damaged, or that it has another content.
var errTable = errors.New("the table of intents is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// entry says that a frame decides an intent.
type entry struct {
	hash  uint64
	frame uint32 // counted from the first frame of the segment
}

// sortEntries sorts entries by hash, and those of one hash by frame. It sorts them in small groups
// and lets others use the processor in between.
func sortEntries(entries []entry) []entry {
	var starts [257]int
	for _, e := range entries {
		starts[e.hash>>56+1]++
	}
	for i := range 256 {
		starts[i+1] += starts[i]
	}
	sorted, next := make([]entry, len(entries)), starts
	for _, e := range entries {
		sorted[next[e.hash>>56]] = e
		next[e.hash>>56]++
	}
	for i := range 256 {
		slices.SortFunc(sorted[starts[i]:starts[i+1]], func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.frame, b.frame))
		})
		runtime.Gosched()
	}
	return sorted
}

// appendTable appends the table of sorted entries to dst. content identifies what the table is derived
// from.
func appendTable(dst []byte, content uint64, sorted []entry) []byte {
	start := len(dst)
	dst = append(dst, tableMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, content)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(sorted))) //nolint:gosec // a segment has fewer
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	for i := 0; len(sorted) > 0; i++ {
		n := min(blockEntries, len(sorted))
		start := len(dst)
		for _, e := range sorted[:n] {
			dst = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(dst, e.hash), e.frame)
		}
		dst = binary.LittleEndian.AppendUint32(dst, blockSum(content, i, dst[start:]))
		sorted = sorted[n:]
	}
	return dst
}

// blockSum returns the checksum of block i. It covers the content and the number of the block, so that
// no block of another table is taken for this one.
func blockSum(content uint64, i int, entries []byte) uint32 {
	var b [8 + 4]byte
	binary.LittleEndian.PutUint64(b[:], content)
	binary.LittleEndian.PutUint32(b[8:], uint32(i)) //nolint:gosec // a table has fewer
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, entries)
}

// table is an open table.
type table struct {
	file    vfs.File
	content uint64
	n       int // entries
}

// openTable opens a table. If the table is missing, or has another content or size, the error is errTable.
func openTable(fs vfs.FS, name string, content uint64) (_ *table, err error) {
	file, err := fs.Open(name, vfs.RandomReadsOption)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errTable, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	t := &table{file: file, content: content}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, min(int64(tableHeaderLen), info.Size()))
	if err := t.read(b, 0); err != nil {
		return nil, err
	}
	if len(b) == tableHeaderLen {
		t.n = int(binary.LittleEndian.Uint32(b[len(tableMagic)+8:]))
	}
	want := appendTable(nil, content, nil)
	binary.LittleEndian.PutUint32(want[len(tableMagic)+8:], uint32(t.n)) //nolint:gosec // it was read as such
	binary.LittleEndian.PutUint32(want[tableHeaderLen-4:], crc32.Checksum(want[:tableHeaderLen-4], castagnoli))
	size := int64(tableHeaderLen + t.n*entryLen + t.blocks()*4)
	if !bytes.Equal(b, want) || info.Size() != size {
		return nil, fmt.Errorf("%w: %s is of another segment, or cut", errTable, name)
	}
	return t, nil
}

func (t *table) blocks() int { return (t.n + blockEntries - 1) / blockEntries }

// read reads all of b.
func (t *table) read(b []byte, at int64) error {
	n, err := t.file.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errTable
	}
	return err
}

// blockOf is a block with buf's memory.
type blockOf []byte

func (b blockOf) len() int           { return len(b) / entryLen }
func (b blockOf) hash(i int) uint64  { return binary.LittleEndian.Uint64(b[i*entryLen:]) }
func (b blockOf) frame(i int) uint32 { return binary.LittleEndian.Uint32(b[i*entryLen+8:]) }

// block reads block i into buf, which has at least blockLen bytes.
func (t *table) block(i int, buf []byte) (blockOf, error) {
	n := min(blockEntries, t.n-i*blockEntries) * entryLen
	b := buf[:n+4]
	if err := t.read(b, int64(tableHeaderLen+i*blockLen)); err != nil {
		return nil, err
	}
	if blockSum(t.content, i, b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, fmt.Errorf("%w: block %d", errTable, i)
	}
	return b[:n], nil
}

// find appends the frames of a hash to frames, in their order. Hashes are spread evenly, so it
// reads about two blocks.
func (t *table) find(hash uint64, buf []byte, frames []uint32) (_ []uint32, err error) {
	if t.n == 0 {
		return frames, nil
	}
	guess, _ := bits.Mul64(hash, uint64(t.blocks()))
	at := int(guess) //nolint:gosec // it is below blocks
	b, err := t.block(at, buf)
	for ; err == nil && at > 0 && b.hash(0) >= hash; b, err = t.block(at, buf) {
		at--
	}
	for ; err == nil; b, err = t.block(at, buf) {
		for i := sort.Search(b.len(), func(i int) bool { return b.hash(i) >= hash }); i < b.len(); i++ {
			if b.hash(i) != hash {
				return frames, nil
			}
			frames = append(frames, b.frame(i))
		}
		if at++; at == t.blocks() {
			return frames, nil
		}
	}
	return nil, err
}

// each calls f for all entries in order.
func (t *table) each(f func(entry)) error {
	buf := make([]byte, blockLen)
	for at := range t.blocks() {
		b, err := t.block(at, buf)
		if err != nil {
			return err
		}
		for i := range b.len() {
			f(entry{b.hash(i), b.frame(i)})
		}
	}
	return nil
}
