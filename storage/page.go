package storage

import (
	"encoding/base64"
	"fmt"
)

// MaxPage is the largest number of rows in a page of a list.
const MaxPage = 500

// Page selects part of a list. An empty After selects the beginning of the list. A list returns
// a page and the cursor of the next page. The cursor is empty if nothing follows. Unless the
// comment of a list says otherwise, each page but the last has Limit items.
type Page struct {
	// Limit is the largest number of items to return. It must be positive.
	Limit int
	// After is the cursor that came with the previous page. It is opaque text that is safe
	// in a URL. Any other text must give ErrBadCursor.
	After string
}

// Cursor returns the opaque form of a position in a list. The byte identifies the list. A
// cursor does not name an organization. So it reveals nothing about organizations that the
// caller may not read.
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
	// The decoder accepts some spellings that Cursor never returns.
	if err != nil || len(b) == 0 || Cursor(list, b[1:]) != p.After {
		return nil, ErrBadCursor
	}
	return b[1:], nil
}
