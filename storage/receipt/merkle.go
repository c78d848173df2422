package receipt

import (
	"crypto/sha256"
	"errors"
	"math/bits"
)

const (
	leafPrefix = 0x00
	nodePrefix = 0x01
	headPrefix = 0x02
)

type hash = [sha256.Size]byte

func hashNode(left, right *hash) hash {
	var buf [1 + 2*sha256.Size]byte
	buf[0] = nodePrefix
	copy(buf[1:], left[:])
	copy(buf[1+sha256.Size:], right[:])
	return sha256.Sum256(buf[:])
}

// tree has all levels of an RFC 9162 Merkle tree, leaves first. If a level has an odd number of
// nodes, its last node moves up unchanged. This yields the left-heavy tree of the RFC.
type tree [][]hash

func newTree(leaves []hash) tree {
	levels := tree{leaves}
	nodes := make([]hash, 0, len(leaves)+bits.Len(uint(len(leaves))))
	for level := leaves; len(level) > 1; {
		start := len(nodes)
		for i := 0; i+1 < len(level); i += 2 {
			nodes = append(nodes, hashNode(&level[i], &level[i+1]))
		}
		if len(level)%2 == 1 {
			nodes = append(nodes, level[len(level)-1])
		}
		level = nodes[start:]
		levels = append(levels, level)
	}
	return levels
}

func (t tree) root() hash {
	top := t[len(t)-1]
	if len(top) == 0 {
		return sha256.Sum256(nil)
	}
	return top[0]
}

// appendProof appends the siblings on the way from leaf i to the root.
func (t tree) appendProof(dst []byte, i int) []byte {
	for _, level := range t {
		if sibling := i ^ 1; sibling < len(level) {
			dst = append(dst, level[sibling][:]...)
		}
		i /= 2
	}
	return dst
}

var errProofLength = errors.New("proof length does not fit index and size")

// rootFromProof computes the root from a leaf and its siblings, as RFC 9162 §2.1.3.2 does. proof
// must have the length that index and size require.
func rootFromProof(leaf hash, index, size uint32, proof []hash) (hash, error) {
	i, width := uint64(index), uint64(size)
	if i >= width {
		return hash{}, errors.New("index is not below size")
	}
	node := leaf
	for ; width > 1; i, width = i/2, (width+1)/2 {
		if i^1 >= width {
			continue
		}
		if len(proof) == 0 {
			return hash{}, errProofLength
		}
		if i%2 == 1 {
			node = hashNode(&proof[0], &node)
		} else {
			node = hashNode(&node, &proof[0])
		}
		proof = proof[1:]
	}
	if len(proof) > 0 {
		return hash{}, errProofLength
	}
	return node, nil
}
