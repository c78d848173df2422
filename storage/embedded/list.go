package embedded

import "writ/storage"

// startOf checks the arguments of a list and returns the position after which the list
// starts: at least min bytes, nil for the beginning.
func startOf(k kind, org string, p storage.Page, min int) ([]byte, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	after, err := p.Start(byte(k))
	if after != nil && len(after) < min {
		return nil, storage.ErrBadCursor
	}
	return after, err
}

func cursor(k kind, position []byte) string { return storage.Cursor(byte(k), position) }
