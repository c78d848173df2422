package embedded

import (
	"fmt"

	"writ/storage"
)

// startOf checks what every list is given and returns the position after which
// it starts, nil for the beginning.
func startOf(k kind, org string, p storage.Page, min int) ([]byte, error) {
	if err := checkOrg(org); err != nil {
		return nil, err
	}
	if p.Limit <= 0 {
		return nil, fmt.Errorf("a page of %d items", p.Limit)
	}
	return parseCursor(p.After, k, min)
}
