package receipt

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// testChain returns n signed heads of one chain, with batches of 0, 1, 2, …
func testChain(s *Signer, id byte, n int) []SignedHead {
	tip := Chain{ID: [16]byte{id}}
	heads := make([]SignedHead, n)
	for i := range heads {
		heads[i], _, _ = s.Seal(tip, time.UnixMilli(int64(1000-i)), testLeaves(i))
		tip = tip.Next(heads[i].Head)
	}
	return heads
}

func TestVerifyChain(t *testing.T) {
	s := testSigner(1)
	keys := keysOf(t, s.Public())
	heads := testChain(s, 1, 6)
	tip, err := VerifyChain(Chain{ID: [16]byte{1}}, slices.Values(heads), keys)
	want := Chain{ID: [16]byte{1}}.Next(heads[5].Head)
	if err != nil || tip != want {
		t.Errorf("VerifyChain(whole) = %+v, %v, want %+v", tip, err, want)
	}
	middle := Chain{ID: [16]byte{1}}.Next(heads[2].Head)
	if _, err := VerifyChain(middle, slices.Values(heads[3:]), keys); err != nil {
		t.Errorf("VerifyChain(from head 3) = %v", err)
	}
	if tip, err := VerifyChain(middle, slices.Values([]SignedHead(nil)), Keys{}); err != nil || tip != middle {
		t.Errorf("VerifyChain(nothing) = %+v, %v, want %+v", tip, err, middle)
	}
}

func TestVerifyChainSaysWhereItBreaks(t *testing.T) {
	s, other := testSigner(1), testSigner(2)
	keys := keysOf(t, s.Public())
	fork, _, _ := s.Seal(Chain{ID: [16]byte{1}}.Next(testChain(s, 1, 2)[1].Head), time.UnixMilli(7), testLeaves(9))
	// sealedOn returns a head that the trusted signer has sealed on a tip.
	sealedOn := func(tip Chain) SignedHead {
		h, _, _ := s.Seal(tip, time.UnixMilli(7), testLeaves(1))
		return h
	}
	for _, tc := range []struct {
		name string
		edit func(h []SignedHead) []SignedHead
		seq  uint64
		want error
	}{
		{"right prev and seq, wrong chain", func(h []SignedHead) []SignedHead {
			h[2] = sealedOn(Chain{ID: [16]byte{2}, Seq: 2, Prev: h[1].Hash()})
			return h
		}, 3, ErrChain},
		{"right prev and chain, seq skipped", func(h []SignedHead) []SignedHead {
			h[2] = sealedOn(Chain{ID: [16]byte{1}, Seq: 3, Prev: h[1].Hash()})
			return h
		}, 3, ErrChain},
		{"first head missing", func(h []SignedHead) []SignedHead { return h[1:] }, 1, ErrChain},
		{"head left out", func(h []SignedHead) []SignedHead { return slices.Delete(h, 2, 3) }, 3, ErrChain},
		{"head twice", func(h []SignedHead) []SignedHead { return slices.Insert(h, 2, h[1]) }, 3, ErrChain},
		{"heads swapped", func(h []SignedHead) []SignedHead { h[3], h[4] = h[4], h[3]; return h }, 4, ErrChain},
		{"genuine head of a fork", func(h []SignedHead) []SignedHead { h[2] = fork; return h }, 4, ErrChain},
		{"head of another chain", func(h []SignedHead) []SignedHead { h[2] = testChain(s, 2, 3)[2]; return h }, 3, ErrChain},
		{"prev of the first not zero", func(h []SignedHead) []SignedHead { h[0].Prev[31] = 1; return h }, 1, ErrChain},
		{"root changed", func(h []SignedHead) []SignedHead { h[4].Root[0] ^= 1; return h }, 5, ErrSignature},
		{"size changed", func(h []SignedHead) []SignedHead { h[4].Size++; return h }, 5, ErrSignature},
		{"time changed", func(h []SignedHead) []SignedHead { h[4].UnixMilli++; return h }, 5, ErrSignature},
		{"signature changed", func(h []SignedHead) []SignedHead { h[5].Sig[63] ^= 1; return h }, 6, ErrSignature},
		{"unknown key", func(h []SignedHead) []SignedHead { h[1].KeyID = other.KeyID(); return h }, 2, ErrUnknownKey},
	} {
		t.Run(tc.name, func(t *testing.T) {
			heads := tc.edit(testChain(s, 1, 6))
			tip, err := VerifyChain(Chain{ID: [16]byte{1}}, slices.Values(heads), keys)
			var broken *ChainError
			if !errors.As(err, &broken) || broken.Seq != tc.seq || !errors.Is(err, tc.want) {
				t.Fatalf("VerifyChain = %v, want %v at head %d", err, tc.want, tc.seq)
			}
			if tip.Seq != tc.seq-1 {
				t.Errorf("tip = head %d, want %d", tip.Seq, tc.seq-1)
			}
		})
	}
}

func TestChainSurvivesKeyRotation(t *testing.T) {
	old, recent := testSigner(1), testSigner(2)
	a, _, _ := old.Seal(Chain{}, benchTime, testLeaves(2))
	b, _, _ := recent.Seal(Chain{}.Next(a.Head), benchTime, testLeaves(2))
	if _, err := VerifyChain(Chain{}, slices.Values([]SignedHead{a, b}), keysOf(t, old.Public(), recent.Public())); err != nil {
		t.Errorf("VerifyChain across keys = %v", err)
	}
}

func TestHeadBytes(t *testing.T) {
	h := Head{Seq: 1, Size: 2, UnixMilli: -1}
	if got := h.Bytes(); len(got) != 113 || !bytes.HasPrefix(got, []byte("writ/head/v1\n")) {
		t.Errorf("Bytes = %d bytes %q, want 113 with the domain first", len(got), got)
	}
}

// TestHeadFieldsAreBound changes each field of a head. The hash must change, and the signature must
// become invalid.
func TestHeadFieldsAreBound(t *testing.T) {
	s := testSigner(1)
	keys := keysOf(t, s.Public())
	head := testChain(s, 1, 4)[3]
	for i := range head.Bytes()[len(headDomain):] {
		b, err := head.MarshalBinary()
		must(t, err)
		b[len(headDomain)+i] ^= 0x80
		var changed SignedHead
		must(t, changed.UnmarshalBinary(b))
		if changed.Hash() == head.Hash() {
			t.Errorf("byte %d is not bound by the hash", i)
		}
		if err := changed.Verify(keys); !errors.Is(err, ErrSignature) {
			t.Errorf("byte %d changed: Verify = %v, want ErrSignature", i, err)
		}
	}
}

func TestSignedHeadBinary(t *testing.T) {
	head := testChain(testSigner(1), 1, 3)[2]
	head.UnixMilli = -1
	data, err := head.MarshalBinary()
	must(t, err)
	var back SignedHead
	if err := back.UnmarshalBinary(data); err != nil || back != head {
		t.Errorf("UnmarshalBinary(MarshalBinary) = %+v, %v, want %+v", back, err, head)
	}
	fixed := headLen + 64
	for name, bad := range map[string][]byte{
		"nothing":           nil,
		"cut in the head":   data[:100],
		"cut in the sig":    data[:fixed-1],
		"no key id":         data[:fixed],
		"another domain":    append([]byte("X"), data[1:]...),
		"key id not UTF-8":  append(bytes.Clone(data[:fixed]), 0xff),
		"key id over-long":  append(bytes.Clone(data[:fixed]), strings.Repeat("k", maxKeyID+1)...),
		"another format v2": append([]byte("writ/head/v2\n"), data[len(headDomain):]...),
	} {
		got := head
		if err := got.UnmarshalBinary(bad); !errors.Is(err, ErrMalformed) || got != head {
			t.Errorf("%s: UnmarshalBinary = %v, want ErrMalformed and no change", name, err)
		}
	}
	head.KeyID = ""
	if _, err := head.MarshalBinary(); err == nil {
		t.Error("MarshalBinary without a key id = nil error")
	}
}

func FuzzSignedHead(f *testing.F) {
	data, err := testChain(testSigner(1), 1, 3)[2].MarshalBinary()
	must(f, err)
	f.Add(data)
	f.Add(data[:headLen+64])
	keys := keysOf(f, testSigner(1).Public())
	f.Fuzz(func(t *testing.T, in []byte) {
		var h SignedHead
		if h.UnmarshalBinary(in) != nil {
			return
		}
		out, err := h.MarshalBinary()
		if err != nil || !bytes.Equal(in, out) {
			t.Fatalf("MarshalBinary(UnmarshalBinary(%x)) = %x, %v", in, out, err)
		}
		if h.Verify(keys) == nil && !bytes.Equal(in, data) {
			t.Fatalf("%x verifies but was never signed", in)
		}
	})
}

func TestSealEdges(t *testing.T) {
	s := testSigner(1)
	keys := keysOf(t, s.Public())
	empty, sigs, _ := s.Seal(Chain{}, time.UnixMilli(math.MinInt32), nil)
	if err := empty.Verify(keys); err != nil || len(sigs) != 0 || empty.Seq != 1 || empty.Size != 0 {
		t.Errorf("Seal(no leaves) = %+v with %d sigs, Verify = %v", empty, len(sigs), err)
	}
	one, _, _ := s.Seal(Chain{}, benchTime, testLeaves(1))
	if one.Root != testLeaves(1)[0] {
		t.Errorf("root of one leaf = %x, want the leaf hash %x", one.Root, testLeaves(1)[0])
	}
	again, _, _ := s.Seal(Chain{}, benchTime, testLeaves(1))
	if again != one {
		t.Errorf("Seal with the same arguments = %+v, want %+v", again, one)
	}
}
