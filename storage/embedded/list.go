package embedded

import (
	"bytes"
	"context"
	"fmt"

	"writ/storage"
)

// list returns a page of org's rows of kind k. The position of a row is its key
// after the organization, which is at least min bytes long. item makes the
// item of a row, or returns nil to leave the row out.
func list[T any](
	ctx context.Context, s *Store, k kind, org string, p storage.Page, min int,
	item func(position, v []byte) (*T, error),
) (items []*T, next string, err error) {
	after, err := startOf(k, org, p, min)
	if err != nil {
		return nil, "", err
	}
	prefix := orgKey(k, org)
	lower := prefix
	if after != nil {
		lower = append(append(bytes.Clone(prefix), after...), 0)
	}
	var last []byte
	err = s.scan(ctx, lower, prefix.end(), func(k, v []byte) (stop bool, err error) {
		position := k[len(prefix):]
		it, err := item(position, v)
		if it == nil || err != nil {
			return false, err
		}
		if len(items) == p.Limit {
			next = cursor(kind(prefix[0]), last)
			return true, nil
		}
		items = append(items, it)
		last = append(last[:0], position...)
		return false, nil
	})
	if err != nil {
		return nil, "", err
	}
	return items, next, nil
}

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
