package storage

import (
	"encoding/base64"
	"fmt"
)

// Page selects part of a list. The zero After starts at its beginning. With
// the page comes the cursor of the next one, which is empty when nothing
// follows; a page is full unless its list says otherwise.
type Page struct {
	// Limit is how many items to return at most; it must be positive.
	Limit int
	// After is the cursor that the previous page returned. It is opaque text
	// that is safe in a URL. Anything else must give ErrBadCursor.
	After string
}

// Cursor returns the opaque form of a position in a list, which one byte tells
// from other lists. It names no organization, so it is of no use beyond the one
// that the caller may read.
func Cursor(list byte, position []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{list}, position...))
}

// Start returns the position after which p starts in a list, nil for its beginning,
// or what is wrong with p.
func (p Page) Start(list byte) (after []byte, err error) {
	if p.Limit <= 0 {
		return nil, fmt.Errorf("a page of %d items", p.Limit)
	}
	if p.After == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(p.After)
	// The decoder lets some spellings through that were never given out.
	if err != nil || len(b) == 0 || Cursor(list, b[1:]) != p.After {
		return nil, ErrBadCursor
	}
	return b[1:], nil
}
