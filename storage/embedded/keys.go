package embedded

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

// kind is the first byte of a key: the kind of the row.
type kind byte

const (
	kindFormat   kind = 0x00
	kindChange   kind = 'C'
	kindDocument kind = 'D'
	kindIndex    kind = 'K'
	kindTrimmed  kind = 'T'
	kindCount    kind = 'c'
	kindRecord   kind = 'h' // only of cursors
	kindIntent   kind = 'i'
	kindEntry    kind = 'l' // only of cursors
	kindMeter    kind = 'm'
	kindRemoved  kind = 'r'
	kindMark     kind = 'z'
	kindKept     kind = 'I'
	kindGarbage  kind = 'S'
	kindDerived  kind = 'W'
)

// keptKey is the key of the number of the last frame whose meters, counts and tombstones are in Pebble.
var keptKey = key{byte(kindKept)}

// key is a key under construction. Its methods append to it and may share its memory, as append
// does. Clone a prefix before you continue it more than once.
type key []byte

// orgKey starts a key of an organization. The length comes before the id, so that no key of an
// organization begins with the prefix of another organization.
func orgKey(k kind, org string) key {
	return make(key, 0, 64+len(org)).org(k, org)
}

func (b key) org(k kind, org string) key { return append(b, byte(k)).orgOnly(org) }

func (b key) orgOnly(org string) key {
	b = binary.BigEndian.AppendUint16(b, uint16(len(org)))
	return append(b, org...)
}

// text appends s as the last component.
func (b key) text(s string) key { return append(b, s...) }

// end returns the least key that is greater than every key that begins with b.
func (b key) end() key {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != 0xff {
			e := bytes.Clone(b[:i+1])
			e[i]++
			return e
		}
	}
	return nil
}

func meterKey(org string, m storage.Month) key {
	return binary.BigEndian.AppendUint32(orgKey(kindMeter, org), uint32(m))
}

const idLen = len(uuid.UUID{})

// checkOrg returns an error if the length of the id org does not fit into the two bytes that a key
// has for it.
func checkOrg(org string) error {
	if len(org) > math.MaxUint16 {
		return fmt.Errorf("organization id of %d bytes: at most %d fit", len(org), math.MaxUint16)
	}
	return nil
}

// startOf checks the arguments of a list. It returns the position after which the list starts, or
// nil if the list starts at the beginning. A position has at least min bytes.
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

// splitOrg splits b into the organization at its start and the rest.
func splitOrg(b []byte) (org, rest []byte, err error) {
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return nil, nil, fmt.Errorf("%d stored bytes have no organization", len(b))
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:n], b[n:], nil
}
