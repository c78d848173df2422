package receipt

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"
	"time"
)

// refusedSigs returns vectors with a changed field of sig. The proof of leaf 3 of 7 has 3 nodes.
func refusedSigs(t *testing.T, batch, otherBatch []Receipt) []refusedVector {
	c := &refuser{t: t}
	base := batch[3]
	for _, f := range []struct {
		name string
		at   int
	}{
		{"chain id", atChain}, {"last byte of the chain id", atSeq - 1}, {"seq", atSize - 1}, {"high byte of seq", atSeq},
		{"time", atPrev - 1}, {"previous head", atPrev}, {"last byte of the previous head", atR - 1},
		{"R of the signature", atR}, {"S of the signature", atS}, {"index to its neighbour's", atProof - 1},
		{"proof node 0", atProof}, {"proof node 1", atProof + 32}, {"proof node 2", atProof + 64 + 31},
	} {
		c.receipt(f.name+" changed", "signature", noVerify, flip(t, base, f.at))
	}
	edit := func(name, class, because string, f func(b []byte) []byte) {
		c.receipt(name, class, because, editSig(t, base, f))
	}
	size := func(n uint32) func(b []byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint32(b[atSize:], n); return b }
	}
	const proofLength = "proof length does not fit"
	edit("version 0", "malformed", "version 0", func(b []byte) []byte { b[0] = 0; return b })
	edit("version 2", "malformed", "version 2", func(b []byte) []byte { b[0] = 2; return b })
	edit("batch size that fits the same proof", "signature", noVerify, size(8))
	edit("batch size that needs a longer proof", "malformed", proofLength, size(64))
	edit("batch size that needs a shorter proof", "malformed", proofLength, size(4))
	edit("batch size below the index", "malformed", "index is not below size", size(2))
	edit("batch size 0", "malformed", "index is not below size", size(0))
	edit("index equal to the size", "malformed", "index is not below size", func(b []byte) []byte { b[atProof-1] = 7; return b })
	edit("index that needs a shorter proof", "malformed", proofLength, func(b []byte) []byte { b[atProof-1] = 6; return b })
	edit("proof nodes in another order", "signature", noVerify, func(b []byte) []byte {
		return append(append(b[:atProof:atProof], b[atProof+32:atProof+64]...), append(b[atProof:atProof+32:atProof+32], b[atProof+64:]...)...)
	})
	edit("signature malleated by the group order", "signature", noVerify, addOrder)
	edit("signature of zeros", "signature", noVerify, func(b []byte) []byte { clear(b[atR:atIndex]); return b })
	edit("last proof node cut off", "malformed", proofLength, func(b []byte) []byte { return b[:len(b)-32] })
	edit("whole proof cut off", "malformed", proofLength, func(b []byte) []byte { return b[:atProof] })
	edit("last byte cut off", "malformed", "232 bytes", func(b []byte) []byte { return b[:len(b)-1] })
	edit("cut inside the signature", "malformed", "100 bytes", func(b []byte) []byte { return b[:100] })
	edit("extended by a node", "malformed", proofLength, func(b []byte) []byte { return append(b, make([]byte, 32)...) })
	edit("extended by a byte", "malformed", "234 bytes", func(b []byte) []byte { return append(b, 0) })
	edit("extended beyond any proof", "malformed", "characters", func(b []byte) []byte { return append(b, make([]byte, 1024)...) })
	edit("head of another batch", "signature", noVerify, graft(t, otherBatch[1]))
	edit("head of another chain", "signature", noVerify, graft(t, crossChain(t)))
	return append(c.out, refusedEncodings(t, batch)...)
}

// graft returns a function that changes a sig: its head and signature become the head and signature
// of the receipt from. The index and the proof stay unchanged.
func graft(t *testing.T, from Receipt) func(b []byte) []byte {
	return func(b []byte) []byte {
		editSig(t, from, func(other []byte) []byte {
			copy(b[:atIndex], other[:atIndex])
			binary.BigEndian.PutUint32(b[atSize:], 7)
			return other
		})
		return b
	}
}

// crossChain returns a genuine receipt from another ledger's chain, signed by the same key.
func crossChain(t *testing.T) Receipt {
	signer, _, _ := vectorSigners()
	rs := vectorReceipts(9, 7)
	makeBatch(t, signer, Chain{ID: [16]byte([]byte("test-vectors-002"))}, time.Unix(vectorNow, 0), rs)
	return rs[3]
}

// refusedEncodings returns vectors with other encodings of the bytes of a sig. The sig of leaf 3 of
// 7 has 233 bytes in 311 characters. The last character has two unused bits.
func refusedEncodings(t *testing.T, batch []Receipt) []refusedVector {
	c := &refuser{t: t}
	respell := func(name, because string, f func(s string) string) {
		r := batch[3]
		r.Sig = f(r.Sig)
		c.receipt(name, "malformed", because, r)
	}
	respell("trailing bits not zero", badB64, func(s string) string {
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		last := strings.IndexByte(alphabet, s[len(s)-1])
		return s[:len(s)-1] + alphabet[last|1:last|1+1]
	})
	respell("padding", badB64, func(s string) string { return s + "=" })
	respell("newline inside", "line break", func(s string) string { return s[:100] + "\n" + s[100:] })
	respell("carriage return at the end", "line break", func(s string) string { return s + "\r" })
	respell("space at the end", badB64, func(s string) string { return s + " " })
	respell("NUL at the end", badB64, func(s string) string { return s + "\x00" })
	respell("standard alphabet", badB64, func(s string) string {
		b, err := encoding().DecodeString(s)
		must(t, err)
		b[atR], b[atR+1], b[atR+2] = 0xfb, 0xff, 0xff
		return base64.RawStdEncoding.EncodeToString(b)
	})
	respell("one character cut off", badB64, func(s string) string { return s[:len(s)-1] })
	return c.out
}

// refusedJSON returns vectors of JSON that two readers might read as different receipts.
func refusedJSON(t *testing.T, batch []Receipt) []refusedVector {
	c := &refuser{t: t}
	text := encode(t, batch[3])
	respell := func(name, because, from, to string) {
		if !strings.Contains(text, from) {
			t.Fatalf("%s: no %q in %s", name, from, text)
		}
		c.text(name, "malformed", because, strings.Replace(text, from, to, 1))
	}
	respell("duplicate member", `duplicate member "decision"`, `{`, `{"decision":"deny",`)
	respell("duplicate member by escape", `duplicate member "decision"`, `{`, `{"decisio\u006e":"deny",`)
	respell("case variant of a member", `unknown member "Decision"`, `"decision":`, `"Decision":`)
	respell("case variant beside the member", `unknown member "EXP"`, `{`, `{"EXP":1,`)
	respell("member left out", `no member "kid"`, `,"kid":"`+batch[3].KeyID+`"`, ``)
	respell("null", `kid is null, not string`, `"`+batch[3].KeyID+`"`, `null`)
	respell("exp as a string", `exp is string, not number`, `"exp":1800000300`, `"exp":"1800000300"`)
	respell("exp with a fraction", `is not an integer`, `"exp":1800000300`, `"exp":1800000300.0`)
	respell("exp with an exponent", `is not an integer`, `"exp":1800000300`, `"exp":18000003e2`)
	respell("exp of minus nought", `is not an integer`, `"exp":1800000300`, `"exp":-0`)
	respell("exp beyond int64", `is not an integer`, `"exp":1800000300`, `"exp":18446744075509551916`)
	respell("decision in a list", `decision is array, not string`, `"allow"`, `["allow"]`)
	respell("lone surrogate", `lone surrogate`, `"allow"`, `"allow\ud800"`)
	c.text("data after the receipt", "malformed", "after top-level value", text+"{}")
	c.text("list of one receipt", "malformed", "not an object", "["+text+"]")
	c.text("nothing", "malformed", "end of JSON input", "")
	return c.out
}

// refusedKeys returns receipts that an untrusted key has signed.
func refusedKeys(t *testing.T, batch []Receipt) []refusedVector {
	c := &refuser{t: t}
	_, _, foreign := vectorSigners()
	rs := vectorReceipts(4, 7)
	makeBatch(t, foreign, Chain{ID: vectorChain}, time.Unix(vectorNow, 0), rs)
	c.receipt("foreign key", "unknown_key", "unknown key", rs[3])
	posing := rs[3]
	posing.KeyID = batch[3].KeyID
	c.receipt("foreign key under a trusted kid", "signature", noVerify, forge(t, foreign, posing))
	jwks := string(keysOf(t, foreign.Public()).JWKS())
	jwk := strings.TrimSuffix(strings.TrimPrefix(jwks, `{"keys":[`), `]}`)
	text := strings.TrimSuffix(encode(t, rs[3]), "}")
	c.text("foreign key brought along as jwk", "malformed", `unknown member "jwk"`, text+`,"jwk":`+jwk+`}`)
	c.text("foreign key set brought along", "malformed", `unknown member "keys"`, text+`,`+strings.TrimPrefix(jwks, "{"))
	c.text("foreign key brought along as jku", "malformed", `unknown member "jku"`, text+`,"jku":"https://example.org/jwks.json"}`)
	inKid := rs[3]
	inKid.KeyID = jwk
	c.receipt("foreign key brought along in kid", "unknown_key", "unknown key", forge(t, foreign, inKid))
	return c.out
}

// forge returns r with a signature by s in a batch of one. r keeps its key id.
func forge(t *testing.T, s *Signer, r Receipt) Receipt {
	t.Helper()
	_, sigs, _ := s.Seal(Chain{ID: vectorChain}, time.Unix(vectorNow, 0), [][32]byte{r.LeafHash()})
	r.Sig = sigs[0]
	return r
}
