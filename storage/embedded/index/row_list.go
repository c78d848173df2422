package index

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// rowList has keys with their values in the order they came. It has a pointer for each frame
// rather than for each of them, because the collector of garbage follows all pointers each
// time.
type rowList struct {
	texts []string
	rows  []rowPlace
	read  int // how many of rows readers have: see tree
}

// rowPlace is where a key and its value are in a text.
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

// sortedRow is the place of a row in rows, with eight bytes of its key, zeros after its end.
type sortedRow struct {
	bytes uint64
	place uint32
	ends  bool // the key, before the eighth
}

// sorted returns the rows in the order of their keys, those of one key as they came. It rests
// as p says.
func (l *rowList) sorted(p *pacer) []sortedRow {
	order := make([]sortedRow, len(l.rows))
	for i := range order {
		order[i].place = uint32(i)
	}
	l.sort(order, make([]sortedRow, len(order)), 0, p)
	return order
}

// sort sorts rows whose keys have the same first bytes, from many, and stand as they came. It
// sorts by the next eight, then by those after them where these are the same: to follow each
// key a few times costs a fraction of following two for each comparison. Spare is as long.
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

// byteCounts is how many rows have each value of a byte.
type byteCounts [256]int

// sortByBytes sorts rows by their eight bytes, those with the same as they stood: byte by byte
// from the last, which for thousands of random bytes costs an eighth of comparing.
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
			continue // all have the same
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
