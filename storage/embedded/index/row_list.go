package index

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// rowList has keys with their values in the order in which they were added. It has one pointer for
// each frame rather than for each key, because the garbage collector follows every pointer.
type rowList struct {
	texts []string
	rows  []rowPlace
	read  int // how many of the rows are in memtable.keys
}

// rowPlace is the place of a key and its value in the text of a frame.
type rowPlace struct{ text, start, middle, end uint32 }

// textRow is a key with its value in the text of a frame.
type textRow struct {
	text               string
	start, middle, end int
}

func (r textRow) key() string   { return r.text[r.start:r.middle] }
func (r textRow) value() string { return r.text[r.middle:r.end] }

// kv is a key with its value.
type kv struct{ k, v string }

func (l *rowList) add(row textRow) {
	if n := len(l.texts); n == 0 || l.texts[n-1] != row.text {
		l.texts = append(l.texts, row.text)
	}
	l.rows = append(l.rows, rowPlace{uint32(len(l.texts) - 1), uint32(row.start), uint32(row.middle), uint32(row.end)})
}

func (l *rowList) at(i int) kv {
	p := l.rows[i]
	text := l.texts[p.text]
	return kv{text[p.start:p.middle], text[p.middle:p.end]}
}

// sortedRow is the index of a row in rows, with eight bytes of its key. If the key has fewer bytes
// left, zeros follow.
type sortedRow struct {
	bytes uint64
	place uint32
	ends  bool // the key ends before the eighth byte
}

// sorted returns the rows in the order of their keys. Rows with the same key stay in the order in
// which they were added. sorted pauses as p says.
func (l *rowList) sorted(p *pacer) []sortedRow {
	order := make([]sortedRow, len(l.rows))
	for i := range order {
		order[i].place = uint32(i)
	}
	l.sort(order, make([]sortedRow, len(order)), 0, p)
	return order
}

// sort sorts rows whose keys have the same first from bytes. It sorts them by the next eight bytes.
// Then it sorts each group of rows with the same eight bytes by the eight bytes after these. It
// reads each key a few times, which costs a fraction of reading two keys for each comparison. spare
// is as long as order.
func (l *rowList) sort(order, spare []sortedRow, from int, p *pacer) {
	for i := range order {
		p.step()
		row := &order[i]
		var eight [8]byte
		row.ends = copy(eight[:], l.at(int(row.place)).k[from:]) < len(eight)
		row.bytes = binary.BigEndian.Uint64(eight[:])
	}
	sortByBytes(order, spare, p)
	for len(order) > 0 {
		same, ends := 1, order[0].ends
		for ; same < len(order) && order[same].bytes == order[0].bytes; same++ {
			ends = ends || order[same].ends
		}
		switch alike := order[:same]; {
		case same == 1:
		case ends:
			slices.SortStableFunc(alike, func(a, b sortedRow) int {
				p.step()
				return cmp.Compare(l.at(int(a.place)).k, l.at(int(b.place)).k)
			})
		default:
			l.sort(alike, spare[:same], from+8, p)
		}
		order = order[same:]
	}
}

// byteCounts has the number of rows for each value of a byte.
type byteCounts [256]int

// sortByBytes sorts rows by their eight bytes and keeps the order of equal rows. It sorts byte by
// byte, the last byte first. For thousands of random keys this costs an eighth of a sort by
// comparison.
func sortByBytes(order, spare []sortedRow, p *pacer) {
	if len(order) < len(byteCounts{}) {
		slices.SortStableFunc(order, func(a, b sortedRow) int {
			p.step()
			return cmp.Compare(a.bytes, b.bytes)
		})
		return
	}
	var counts [8]byteCounts
	for _, row := range order {
		p.step()
		for i := range counts {
			counts[i][byte(row.bytes>>(8*i))]++
		}
	}
	sorted := order
	for i := range counts {
		next := &counts[i]
		if next[byte(order[0].bytes>>(8*i))] == len(order) {
			continue // all rows have the same byte here
		}
		at := 0
		for b, n := range next {
			next[b], at = at, at+n
		}
		for _, row := range sorted {
			p.step()
			b := byte(row.bytes >> (8 * i))
			spare[next[b]] = row
			next[b]++
		}
		sorted, spare = spare, sorted
	}
	if &sorted[0] != &order[0] {
		copy(order, sorted)
	}
}
