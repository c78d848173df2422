package receipt

import (
	"bytes"
	"crypto/ed25519"
	"testing"
)

// seal seals rs as one batch on the chain c and sets KeyID and Sig. It returns the key set that
// verifies rs.
func seal(t testing.TB, s *Signer, c Chain, rs []Receipt) Keys {
	t.Helper()
	leaves := make([][32]byte, len(rs))
	for i := range rs {
		rs[i].KeyID = s.KeyID()
		leaves[i] = rs[i].LeafHash()
	}
	_, sigs, _ := s.Seal(c, benchTime, leaves)
	for i := range rs {
		rs[i].Sig = sigs[i]
	}
	return keysOf(t, s.Public())
}

func keysOf(t testing.TB, pubs ...ed25519.PublicKey) Keys {
	t.Helper()
	keys, err := NewKeys(pubs...)
	must(t, err)
	return keys
}

func examplePayload() Payload {
	return Payload{
		OrganizationID: "org_acme",
		IntentID:       "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11",
		IntentDigest:   DigestBytes([]byte(`{}`)),
		PolicyID:       "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
		PolicyVersion:  3,
		Decision:       Allow,
		DecisionID:     "0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
		Reasons:        []string{"policy.allow: the policy allows this action"},
		Exp:            1800000300,
	}
}

// testSigner returns a signer. The seed of its key is 32 bytes of the value seed.
func testSigner(seed byte) *Signer { return NewSigner(testKey(seed)) }

func testKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
