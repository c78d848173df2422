package stream

import (
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/storage"
)

// Row is a row of the history that may be an event of many viewers.
type Row struct {
	*storage.Record
	encode sync.Once
	json   []byte
	err    error
}

// JSON returns the row in JSON, on one line. It is encoded at the first call. The caller must not change
// the result.
func (r *Row) JSON() ([]byte, error) {
	r.encode.Do(func() { r.json, r.err = json.Marshal(r.Record, json.FormatNilSliceAsNull(false)) })
	return r.json, r.err
}

// headRows has the rows of a head for all viewers of an organization. One goroutine uses it.
type headRows struct {
	*storage.HeadRows
	rows []Row
	// known has the selections so far, by the alike of their viewers.
	known map[string][]*Row
}

func newHeadRows(head *storage.HeadRows) *headRows {
	h := &headRows{HeadRows: head, rows: make([]Row, len(head.Records)), known: make(map[string][]*Row)}
	for i, r := range head.Records {
		h.rows[i].Record = r
	}
	return h
}

// selected returns the rows that v selects.
func (h *headRows) selected(v *Viewer) (rows []*Row) {
	if rows, ok := h.known[v.alike]; ok && v.alike != "" {
		return rows
	}
	for i := range h.rows {
		if v.selects(h.rows[i].Record) {
			rows = append(rows, &h.rows[i])
		}
	}
	h.known[v.alike] = rows
	return rows
}

// earliest returns the earliest time at which one of the rows was decided.
func earliest(rows []*Row) (at time.Time) {
	for _, r := range rows {
		if at.IsZero() || r.DecidedAt.Before(at) {
			at = r.DecidedAt
		}
	}
	return at
}
