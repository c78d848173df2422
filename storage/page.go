package storage

import (
	"encoding/base64"
	"fmt"
)

// MaxPage is the largest number of rows in a page of a list.
const MaxPage = 500

// MaxRead is the largest number of rows that a store reads for one page of the history.
const MaxRead = 8 * MaxPage

// Page selects part of a list. If After is empty, it is the beginning. A list returns a page and
// the cursor of the next page. An empty cursor means that the list has ended. Each page except the
// last has Limit items, unless the list's comment says otherwise.
type Page struct {
	// Limit is the largest number of items to return. It must be positive.
	Limit int
	// After is the cursor that came with the previous page. It is opaque text that is safe in a
	// URL. A list must return ErrBadCursor for any other text.
	After string
}

// Cursor returns the opaque form of a position in a list. The byte identifies the list. A cursor
// contains no organization. So it reveals nothing about organizations that the caller must not
// read.
func Cursor(list byte, position []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{list}, position...))
}

// Start returns the position in a list after which p starts. It returns nil if p starts at the
// beginning of the list, and an error if p is invalid.
func (p Page) Start(list byte) (after []byte, err error) {
	if p.Limit <= 0 {
		return nil, fmt.Errorf("a page of %d items", p.Limit)
	}
	if p.After == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(p.After)
	// The decoder also accepts base64 that Cursor never writes.
	if err != nil || len(b) == 0 || Cursor(list, b[1:]) != p.After {
		return nil, ErrBadCursor
	}
	return b[1:], nil
}
