package operator

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/lestrrat-go/jwx/v3/jwk"
)

// keySet is one state of the keys. gen differs between states. A token verified under one gen must
// be verified again under the next.
type keySet struct {
	gen    uint64
	source [sha256.Size]byte // the hash of the document from which the set was read
	byID   map[string]any
	only   any // the key of a set with one key, for tokens without a key id
}

func (s *keySet) key(kid string) any {
	if kid == "" {
		return s.only
	}
	return s.byID[kid]
}

// parseJWKS returns the keys of a set that can verify alg. As RFC 7517 says, it skips keys for
// other purposes, broken keys, and unknown types and curves. Refusing the whole set for such a key
// would keep a withdrawn key in force. A secret or private key in the set is an error.
func parseJWKS(data []byte, alg string) (*keySet, error) {
	set, err := jwk.Parse(data, jwk.WithIgnoreParseError(true))
	if err != nil {
		set, err = jwk.Parse(data) // data may be a single key
	}
	if err != nil {
		return nil, fmt.Errorf("parsing the key set: %w", err)
	}
	s := &keySet{byID: make(map[string]any)}
	n := 0
	for i := range set.Len() {
		k, _ := set.Key(i)
		public, err := verifyingKey(k, alg)
		if err != nil {
			return nil, fmt.Errorf("key %d of the set: %w", i, err)
		}
		if public == nil {
			continue
		}
		n++
		s.only = public
		if kid, ok := k.KeyID(); ok && kid != "" {
			if _, twice := s.byID[kid]; twice {
				return nil, fmt.Errorf("key %d of the set: key id %q occurs twice", i, kid)
			}
			s.byID[kid] = public
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("the key set has no key that can verify %s", alg)
	}
	if n > 1 {
		s.only = nil
	}
	return s, nil
}

// verifyingKey returns the public key in k, or nil if k is not a key for verifying alg.
func verifyingKey(k jwk.Key, alg string) (any, error) {
	private, err := jwk.IsPrivateKey(k)
	if err != nil || private {
		return nil, errors.New("is a secret or private key: publish public keys only")
	}
	if use, ok := k.KeyUsage(); ok && use != "sig" {
		return nil, nil
	}
	if a, ok := k.Algorithm(); ok && a.String() != alg {
		return nil, nil
	}
	var public any
	if jwk.Export(k, &public) != nil {
		return nil, nil //nolint:nilerr // the curve is not known, so the key is skipped
	}
	fits := false
	switch p := public.(type) {
	case *rsa.PublicKey:
		if bits := p.N.BitLen(); bits < keyBits[alg] {
			return nil, fmt.Errorf("has %d bits: want at least %d", bits, keyBits[alg])
		}
		fits = alg == algRS256
	case *ecdsa.PublicKey:
		fits = alg == algES256 && p.Curve == elliptic.P256()
	case ed25519.PublicKey:
		fits = alg == algEdDSA
	}
	if !fits {
		return nil, nil
	}
	return public, nil
}
