package storage

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
