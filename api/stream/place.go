package stream

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"writ.example/writ/storage/receipt"
)

// Place is how far a viewer has come in each chain. A chain that it lacks begins at its first head.
type Place map[[16]byte]At

// At is a place in a chain: after all leaves of the first Heads heads, and the first Leaves leaves of
// the next head.
type At struct{ Heads, Leaves uint64 }

// before reports whether a is before the end of the head seq.
func (a At) before(seq uint64) bool { return a.Heads < seq }

// reaches reports whether p has all heads that b has.
func (p Place) reaches(b Place) bool {
	for chain, at := range b {
		if p[chain].before(at.Heads) {
			return false
		}
	}
	return true
}

// within returns p, moved back to the end of each chain that p is beyond. A store that has lost its last
// heads signs other heads with their sequences, and the viewer has not seen those. Chains that the store
// does not have are left out.
func (p Place) within(tips []receipt.Chain) Place {
	all := make(Place, len(tips))
	for _, tip := range tips {
		if at, ok := p[tip.ID]; ok && at.before(tip.Seq) {
			all[tip.ID] = at
		} else if ok {
			all[tip.ID] = At{Heads: tip.Seq}
		}
	}
	return all
}

// endsOf returns the place at the ends of all chains.
func endsOf(tips []receipt.Chain) Place {
	all := make(Place, len(tips))
	for _, tip := range tips {
		all[tip.ID] = At{Heads: tip.Seq}
	}
	return all
}

const (
	placeVersion = 1
	checkLen     = 6
)

// ErrBadPlace means that a text is no place in the history of an organization.
var ErrBadPlace = errors.New("it is no place in this history")

func check(org string, b []byte) []byte {
	sum := sha256.Sum256(append(append([]byte(org), 0), b...))
	return sum[:checkLen]
}

// ID returns the text of p for an organization.
func (p Place) ID(org string) string {
	b := append(make([]byte, 0, 1+len(p)*24+checkLen), placeVersion)
	byID := func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }
	for _, chain := range slices.SortedFunc(maps.Keys(p), byID) {
		b = append(b, chain[:]...)
		b = binary.AppendUvarint(b, p[chain].Heads)
		b = binary.AppendUvarint(b, p[chain].Leaves)
	}
	return base64.RawURLEncoding.EncodeToString(append(b, check(org, b)...))
}

// ParsePlace returns the place with this text, or ErrBadPlace.
func ParsePlace(org, id string) (Place, error) {
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(b) < 1+checkLen {
		return nil, ErrBadPlace
	}
	b = b[:len(b)-checkLen]
	p := make(Place)
	for rest := b[1:]; len(rest) > 0; {
		if len(rest) < 16 {
			return nil, ErrBadPlace
		}
		chain := [16]byte(rest)
		heads, n := binary.Uvarint(rest[16:])
		if n <= 0 {
			return nil, ErrBadPlace
		}
		leaves, m := binary.Uvarint(rest[16+n:])
		if m <= 0 {
			return nil, ErrBadPlace
		}
		p[chain], rest = At{heads, leaves}, rest[16+n+m:]
	}
	if p.ID(org) != id { // it has another version, organization or spelling
		return nil, ErrBadPlace
	}
	return p, nil
}
