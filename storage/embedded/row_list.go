package embedded

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

// sortedRow is the place of a row in rows, with eight bytes of its key that come after what
// all keys share.
type sortedRow struct {
	bytes uint64
	place uint32
}

// sorted returns the rows in the order of their keys, those of one key as they came. Eight
// bytes tell nearly all of them apart, which costs a fifth of comparing keys. It rests as p
// says.
func (l *rowList) sorted(p *pacer) []sortedRow {
	if len(l.rows) == 0 {
		return nil
	}
	first := l.at(0).k
	shared := len(first)
	for i := range l.rows {
		k := l.at(i).k
		shared = min(shared, len(k))
		for k[:shared] != first[:shared] {
			shared--
		}
	}
	order := make([]sortedRow, len(l.rows))
	for i := range l.rows {
		var eight [8]byte
		copy(eight[:], l.at(i).k[shared:])
		order[i] = sortedRow{binary.BigEndian.Uint64(eight[:]), uint32(i)}
	}
	slices.SortFunc(order, func(a, b sortedRow) int {
		p.step()
		if c := cmp.Compare(a.bytes, b.bytes); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(l.at(int(a.place)).k, l.at(int(b.place)).k), cmp.Compare(a.place, b.place))
	})
	return order
}
