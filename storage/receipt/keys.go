package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keys is a set of trusted public keys, by key id. It is immutable and safe for concurrent use. The
// zero value trusts no key.
type Keys struct {
	byID map[string]ed25519.PublicKey
}

// KeyID returns the RFC 7638 thumbprint of pub: the base64url SHA-256, without
// padding, of {"crv":"Ed25519","kty":"OKP","x":"…"}.
func KeyID(pub ed25519.PublicKey) string {
	x := base64.RawURLEncoding.EncodeToString(pub)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// NewKeys returns the set of pubs, each with its thumbprint as id. It refuses a key of the wrong
// length or of small order.
func NewKeys(pubs ...ed25519.PublicKey) (Keys, error) {
	byID := make(map[string]ed25519.PublicKey, len(pubs))
	for i, pub := range pubs {
		if err := checkPublic(pub); err != nil {
			return Keys{}, fmt.Errorf("public key %d: %w", i, err)
		}
		byID[KeyID(pub)] = bytes.Clone(pub)
	}
	return Keys{byID}, nil
}

// With returns the keys of both sets. Use it to verify receipts from before a rotation. If both
// sets have a key id, the key of k is used: more never replaces a trusted key.
func (k Keys) With(more Keys) Keys {
	byID := maps.Clone(more.byID)
	if byID == nil {
		return k
	}
	maps.Copy(byID, k.byID)
	return Keys{byID}
}

// IDs returns the key ids in byte order.
func (k Keys) IDs() []string {
	return slices.Sorted(maps.Keys(k.byID))
}

// Only returns the set that has just the key with this id. The set is empty if k does not have the
// key.
func (k Keys) Only(id string) Keys {
	pub, ok := k.byID[id]
	if !ok {
		return Keys{}
	}
	return Keys{map[string]ed25519.PublicKey{id: pub}}
}

// Without returns the set without the key that has this id.
func (k Keys) Without(id string) Keys {
	byID := maps.Clone(k.byID)
	delete(byID, id)
	return Keys{byID}
}

// JWKS returns the set as a JSON Web Key Set (RFC 7517, RFC 8037), sorted by key id. ParseKeys
// reads this form.
func (k Keys) JWKS() []byte {
	dst := []byte(`{"keys":[`)
	for i, id := range k.IDs() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"alg":"EdDSA","crv":"Ed25519","kid":`...)
		dst = append(AppendString(dst, id), `,"kty":"OKP","use":"sig","x":"`...)
		dst = append(base64.RawURLEncoding.AppendEncode(dst, k.byID[id]), `"}`...)
	}
	return append(dst, `]}`...)
}

// ParseKeys reads a JSON Web Key Set. It takes the Ed25519 keys (kty OKP, crv Ed25519) that may
// verify signatures. It ignores all other keys. It refuses the whole set if
//
//   - one of the keys is private;
//   - an Ed25519 key has no kid, the kid of another key, or a wrong alg;
//   - an Ed25519 key is not 32 canonically encoded bytes, or is of small order;
//   - the set has no Ed25519 key.
//
// A kid need not be a thumbprint. It is used unchanged, because receipts name their key by it.
func ParseKeys(jwks []byte) (Keys, error) {
	doc, err := parseJSON(jwks)
	if err != nil {
		return Keys{}, fmt.Errorf("parsing key set: %w", err)
	}
	members, _ := doc.(map[string]any)
	list, ok := members["keys"].([]any)
	if !ok {
		return Keys{}, errors.New("parsing key set: no array keys")
	}
	byID := make(map[string]ed25519.PublicKey)
	for i, jwk := range list {
		if err := addKey(byID, jwk); err != nil {
			return Keys{}, fmt.Errorf("parsing key set: key %d: %w", i, err)
		}
	}
	if len(byID) == 0 {
		return Keys{}, errors.New("parsing key set: no Ed25519 key to verify with")
	}
	return Keys{byID}, nil
}

func addKey(byID map[string]ed25519.PublicKey, v any) error {
	jwk, ok := v.(map[string]any)
	if !ok {
		return errors.New("not an object")
	}
	if _, private := jwk["d"]; private {
		return errors.New("is a private key (member d): publish the public part only")
	}
	if jwk["kty"] != "OKP" || jwk["crv"] != "Ed25519" || !forVerifying(jwk) {
		return nil
	}
	if alg, ok := jwk["alg"]; ok && alg != "EdDSA" && alg != "Ed25519" {
		text, ok := alg.(string)
		if !ok {
			text = kindOf(alg)
		}
		return fmt.Errorf("alg %.32q on an Ed25519 key", text)
	}
	kid, _ := jwk["kid"].(string)
	if err := checkKeyID(kid); err != nil {
		return err
	}
	if _, ok := byID[kid]; ok {
		return fmt.Errorf("duplicate kid %q", kid)
	}
	x, _ := jwk["x"].(string)
	pub, err := encoding().DecodeString(x)
	if err != nil || strings.ContainsAny(x, "\r\n") {
		return errors.New("x is not canonical base64url without padding")
	}
	if err := checkPublic(pub); err != nil {
		return err
	}
	byID[kid] = pub
	return nil
}

// forVerifying reports whether use and key_ops allow the key to verify signatures. Missing members
// allow it.
func forVerifying(jwk map[string]any) bool {
	if use, ok := jwk["use"]; ok && use != "sig" {
		return false
	}
	ops, ok := jwk["key_ops"]
	list, _ := ops.([]any)
	return !ok || slices.Contains(list, any("verify"))
}

// checkPublic refuses points of small order. With the identity as a public key, for example,
// anybody can sign any message.
func checkPublic(pub ed25519.PublicKey) error {
	if len(pub) != ed25519.PublicKeySize {
		return fmt.Errorf("public key of %d bytes, not %d", len(pub), ed25519.PublicKeySize)
	}
	var y [ed25519.PublicKeySize]byte
	copy(y[:], pub)
	y[31] &= 0x7f // clear the sign of x
	switch hex.EncodeToString(y[:]) {
	case "0000000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f":
		return errors.New("public key of small order")
	}
	return nil
}
