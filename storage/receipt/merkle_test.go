package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

func testLeaves(n int) []hash {
	leaves := make([]hash, n)
	for i := range leaves {
		leaves[i] = sha256.Sum256(fmt.Appendf(nil, "leaf %d", i))
	}
	return leaves
}

// rfcRoot computes a root exactly as RFC 9162 §2.1.1 defines it.
func rfcRoot(leaves []hash) hash {
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := rfcSplit(len(leaves))
	left, right := rfcRoot(leaves[:k]), rfcRoot(leaves[k:])
	return hashNode(&left, &right)
}

// rfcProof computes a proof exactly as RFC 9162 §2.1.3.1 defines it.
func rfcProof(m int, leaves []hash) []hash {
	if len(leaves) == 1 {
		return nil
	}
	k := rfcSplit(len(leaves))
	if m < k {
		return append(rfcProof(m, leaves[:k]), rfcRoot(leaves[k:]))
	}
	return append(rfcProof(m-k, leaves[k:]), rfcRoot(leaves[:k]))
}

func rfcSplit(n int) int { return 1 << (bits.Len(uint(n-1)) - 1) }

func proofOf(t tree, i int) []hash {
	var proof []hash
	for b := t.appendProof(nil, i); len(b) > 0; b = b[sha256.Size:] {
		proof = append(proof, hash(b))
	}
	return proof
}

// TestTreeKnownRoots checks roots that are known from the tests of certificate transparency
// implementations.
func TestTreeKnownRoots(t *testing.T) {
	inputs := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var leaves []hash
	for n, want := range roots {
		if got := newTree(leaves).root(); hex.EncodeToString(got[:]) != want {
			t.Errorf("root of %d leaves = %x, want %s", n, got, want)
		}
		if n < len(inputs) {
			data, err := hex.DecodeString(inputs[n])
			must(t, err)
			leaves = append(leaves, sha256.Sum256(append([]byte{leafPrefix}, data...)))
		}
	}
}

func TestProofEverySizeAndIndex(t *testing.T) {
	for size := 1; size <= 130; size++ {
		leaves := testLeaves(size)
		tr := newTree(leaves)
		root := tr.root()
		if want := rfcRoot(leaves); root != want {
			t.Fatalf("root of %d leaves = %x, want %x", size, root, want)
		}
		for i := range leaves {
			proof := proofOf(tr, i)
			if want := rfcProof(i, leaves); !slices.Equal(proof, want) {
				t.Fatalf("proof(%d of %d) = %x, want %x", i, size, proof, want)
			}
			got, err := rootFromProof(leaves[i], uint32(i), uint32(size), proof)
			if err != nil || got != root {
				t.Fatalf("rootFromProof(%d of %d) = %x, %v, want %x", i, size, got, err, root)
			}
		}
	}
}

func TestProofOfAnotherPlaceFails(t *testing.T) {
	for size := 1; size <= 130; size++ {
		leaves := testLeaves(size)
		tr := newTree(leaves)
		root := tr.root()
		for i := range leaves {
			proof := proofOf(tr, i)
			for other := range uint32(size + 2) {
				if got, err := rootFromProof(leaves[i], other, uint32(size), proof); err == nil && got == root && other != uint32(i) {
					t.Fatalf("the proof of leaf %d of %d also proves index %d", i, size, other)
				}
			}
			for _, short := range [][]hash{proof[:max(0, len(proof)-1)], append(slices.Clone(proof), hash{})} {
				if len(short) != len(proof) {
					if _, err := rootFromProof(leaves[i], uint32(i), uint32(size), short); err == nil {
						t.Fatalf("leaf %d of %d: a proof of %d nodes is taken for %d", i, size, len(short), len(proof))
					}
				}
			}
		}
	}
}

// rfcProofLen returns the length of rfcProof's result.
func rfcProofLen(m, n int) int {
	if n == 1 {
		return 0
	}
	k := rfcSplit(n)
	if m < k {
		return 1 + rfcProofLen(m, k)
	}
	return 1 + rfcProofLen(m-k, n-k)
}

// TestProofOfAnotherSize checks that a size is refused if it needs a proof of another length.
// Another size may need a proof of equal length and yield the same root. The signature covers the
// size, so a receipt with that size still does not verify. The vectors of batch sizes show this.
func TestProofOfAnotherSize(t *testing.T) {
	for size := 1; size <= 40; size++ {
		tr := newTree(testLeaves(size))
		for i := range size {
			proof := proofOf(tr, i)
			for other := i + 1; other <= 70; other++ {
				_, err := rootFromProof(tr[0][i], uint32(i), uint32(other), proof)
				if fits := rfcProofLen(i, other) == len(proof); (err == nil) != fits {
					t.Fatalf("leaf %d, proof of %d nodes, size %d: err = %v, want fit %t", i, len(proof), other, err, fits)
				}
			}
		}
	}
}

func TestProofLargestTree(t *testing.T) {
	const size = 1<<32 - 1
	if room := (sigMaxLen - sigMinLen) / sha256.Size; room != bits.Len32(size) {
		t.Errorf("a sig has room for a proof of %d nodes, want %d", room, bits.Len32(size))
	}
	for _, index := range []uint32{0, 1, 1 << 31, size - 2} {
		proof := make([]hash, 32)
		if _, err := rootFromProof(hash{}, index, size, proof); err != nil {
			t.Errorf("rootFromProof(%d of %d) with %d nodes: %v", index, size, len(proof), err)
		}
	}
	if _, err := rootFromProof(hash{}, size, size, make([]hash, 32)); err == nil {
		t.Error("index = size is taken")
	}
}

// TestForest_IsTheTree checks that a Forest and a tree of the same leaves have the same root.
func TestForest_IsTheTree(t *testing.T) {
	var f Forest
	leaves := testLeaves(300)
	for n := range len(leaves) + 1 {
		if got, want := f.Root(), Root(leaves[:n]); got != want {
			t.Fatalf("Root of %d leaves = %x, want %x", n, got, want)
		}
		if n < len(leaves) {
			f.Add(leaves[n])
		}
	}
	if len(f.nodes) > 9 {
		t.Errorf("a Forest of 300 leaves holds %d nodes, want at most 9", len(f.nodes))
	}
}
