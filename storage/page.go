package storage

import (
	"encoding/base64"
	"fmt"
)

// MaxPage is the largest number of rows in a page of a list.
const MaxPage = 500

// Page selects part of a list. An empty After selects its beginning. A list returns a page with
// the cursor of the next page, which is empty if nothing follows. A page is full unless its list
// says otherwise.
type Page struct {
	// Limit is how many items to return at most; it must be positive.
	Limit int
	// After is the cursor that came with the previous page. It is opaque text that is safe
	// in a URL. Any other text must give ErrBadCursor.
	After string
}

// Cursor returns the opaque form of a position in a list. The byte identifies the list. A cursor
// names no organization, so it reveals nothing of an organization that the caller may not read.
func Cursor(list byte, position []byte) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{list}, position...))
}

// Start returns the position after which p starts in a list, nil for its beginning. It returns an
// error if p is invalid.
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
