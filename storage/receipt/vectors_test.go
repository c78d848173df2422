package receipt

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// After a deliberate change of the format, run "go test -update ./storage/receipt". It rewrites
// testdata/vectors.json. Review the difference.
var update = flag.Bool("update", false, "rewrite testdata/vectors.json")

const vectorsFile = "testdata/vectors.json"

// vectors is the content of vectors.json. All its values are computed from fixed seeds. A receipt
// is a string with JSON, because some receipts are not valid JSON.
type vectors struct {
	About   string          `json:"about"`
	Now     int64           `json:"now"`
	Keys    json.RawMessage `json:"keys"`
	Payload payloadVector   `json:"payload"`
	Chain   []batchVector   `json:"chain"`
	Refused []refusedVector `json:"refused"`
}

type payloadVector struct {
	Canonical string `json:"canonical"`
	Digest    string `json:"digest"`
	Receipt   string `json:"receipt"`
}

// batchVector is one batch. All batches form one chain.
type batchVector struct {
	SignedHead string          `json:"signed_head"` // hex of SignedHead.MarshalBinary
	HeadBytes  string          `json:"head_bytes"`  // hex
	HeadHash   string          `json:"head_hash"`   // hex
	Size       uint32          `json:"size"`
	Receipts   []receiptVector `json:"receipts"` // all receipts of a small batch, some of a large batch
}

type receiptVector struct {
	Index    uint32 `json:"index"`
	Leaf     string `json:"leaf"`
	LeafHash string `json:"leaf_hash"` // hex
	Receipt  string `json:"receipt"`
}

type refusedVector struct {
	Name    string `json:"name"`
	Error   string `json:"error"`   // malformed, unknown_key, signature or expired
	Because string `json:"because"` // a part of this package's error message
	Now     int64  `json:"now"`
	Receipt string `json:"receipt"`
}

func errorClass(err error) string {
	for class, target := range map[string]error{
		"malformed": ErrMalformed, "unknown_key": ErrUnknownKey, "signature": ErrSignature, "expired": ErrExpired,
	} {
		if errors.Is(err, target) {
			return class
		}
	}
	return "none"
}

func parseAndVerify(data string, keys Keys, now int64) error {
	r, err := Parse([]byte(data))
	if err != nil {
		return err
	}
	return Verify(r, keys, time.Unix(now, 0))
}

func readVectors(t testing.TB) (vectors, Keys) {
	t.Helper()
	data, err := os.ReadFile(vectorsFile)
	must(t, err)
	var v vectors
	must(t, json.Unmarshal(data, &v))
	keys, err := ParseKeys(v.Keys)
	must(t, err)
	return v, keys
}

func TestVectorsAreCurrent(t *testing.T) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	must(t, enc.Encode(makeVectors(t)))
	if *update {
		must(t, os.WriteFile(vectorsFile, buf.Bytes(), 0o644))
	}
	have, err := os.ReadFile(vectorsFile)
	must(t, err)
	if !bytes.Equal(have, buf.Bytes()) {
		t.Errorf("%s is not what the fixed seeds give: the format has changed; if that was meant, run with -update and review", vectorsFile)
	}
}

func TestVectorsVerify(t *testing.T) {
	v, keys := readVectors(t)
	var heads []SignedHead
	var sizes []uint32
	for _, b := range v.Chain {
		sizes = append(sizes, b.Size)
		var h SignedHead
		must(t, h.UnmarshalBinary(unhex(t, b.SignedHead)))
		heads = append(heads, h)
		if got := h.Hash(); hex.EncodeToString(got[:]) != b.HeadHash || hex.EncodeToString(h.Bytes()) != b.HeadBytes {
			t.Errorf("batch of %d: head bytes or hash differ", b.Size)
		}
		for _, rv := range b.Receipts {
			r, err := Parse([]byte(rv.Receipt))
			if err != nil {
				t.Fatalf("batch of %d: Parse(receipt %d) = %v", b.Size, rv.Index, err)
			}
			if err := Verify(r, keys, time.Unix(v.Now, 0)); err != nil {
				t.Errorf("batch of %d: Verify(receipt %d) = %v, want nil", b.Size, rv.Index, err)
			}
			if got, err := r.SignedHead(); err != nil || got != h {
				t.Errorf("batch of %d: receipt %d stands under %+v, %v, want %+v", b.Size, rv.Index, got, err, h)
			}
			if got := r.LeafHash(); string(r.AppendLeaf(nil)) != rv.Leaf || hex.EncodeToString(got[:]) != rv.LeafHash {
				t.Errorf("batch of %d: leaf of receipt %d = %s, want %s", b.Size, rv.Index, r.AppendLeaf(nil), rv.Leaf)
			}
		}
	}
	if want := []uint32{1, 2, 3, 7, 64}; !slices.Equal(sizes, want) {
		t.Errorf("batch sizes = %v, want %v", sizes, want)
	}
	if tip, err := VerifyChain(Chain{ID: vectorChain}, slices.Values(heads), keys); err != nil || tip.Seq != 5 {
		t.Errorf("VerifyChain = head %d, %v, want head 5", tip.Seq, err)
	}
}

func TestVectorsPayload(t *testing.T) {
	v, keys := readVectors(t)
	p := vectorPayload()
	if got := string(p.AppendCanonical(nil)); got != v.Payload.Canonical {
		t.Errorf("AppendCanonical = %s, want %s", got, v.Payload.Canonical)
	}
	if again := canonical(t, []byte(v.Payload.Canonical)); again != v.Payload.Canonical {
		t.Errorf("the canonical form = %s, want %s", again, v.Payload.Canonical)
	}
	if got := p.Digest(); got != v.Payload.Digest {
		t.Errorf("Digest = %s, want %s", got, v.Payload.Digest)
	}
	r, err := Parse([]byte(v.Payload.Receipt))
	must(t, err)
	if err := errors.Join(Verify(r, keys, time.Unix(v.Now, 0)), VerifyPayload(r, p)); err != nil {
		t.Error(err)
	}
}

func TestVectorsRefused(t *testing.T) {
	v, keys := readVectors(t)
	if len(v.Refused) < 20 {
		t.Errorf("%d refused vectors, want at least 20", len(v.Refused))
	}
	names := make(map[string]bool)
	for _, rv := range v.Refused {
		t.Run(rv.Name, func(t *testing.T) {
			if names[rv.Name] {
				t.Errorf("the name is used twice")
			}
			names[rv.Name] = true
			err := parseAndVerify(rv.Receipt, keys, rv.Now)
			if got := errorClass(err); got != rv.Error || err == nil || !strings.Contains(err.Error(), rv.Because) {
				t.Errorf("error = %v (%s), want %s with %q", err, got, rv.Error, rv.Because)
			}
		})
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	must(t, err)
	return b
}
