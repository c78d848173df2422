package api

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"math/big"
)

// An API key is 77 ASCII characters:
//
//	key      = "writ_" id "_" secret checksum
//	id       = 22 base62 digits: 16 random bytes, big endian
//	secret   = 43 base62 digits: 32 random bytes, big endian
//	checksum =  6 base62 digits: CRC-32 (IEEE) of all that stands before it
//
// Base62 digits are 0-9, A-Z, a-z in this order, most significant first, with
// leading zeros up to the fixed width. The id is public: it finds the key and
// names it in lists. The secret is never stored; the SHA-256 of the whole key
// is. The checksum protects nothing: it lets junk and typing errors be refused
// without a look-up, and secret scanners know a key when they see one.
//
// Worked example, with 16 bytes 0x01 as id and 32 bytes 0x02 as secret:
//
//	writ_01tRy6czI6jAOLpZvq3hw1_0TWD4V5tkyUQGc5qXvlBDd2Fj97aqsMoBGJJjsttG4I4GQovr
const (
	keyPrefix      = "writ_"
	keyIDLen       = 22
	keySecretLen   = 43
	keyChecksumLen = 6
	keyIDEnd       = len(keyPrefix) + keyIDLen
	keySecretEnd   = keyIDEnd + 1 + keySecretLen
	keyLen         = keySecretEnd + keyChecksumLen
	base62         = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// keyID is the public part of an API key.
type keyID [keyIDLen]byte

// errNotKey says no more than that: which rule a key breaks is nobody's business.
var errNotKey = errors.New("not an API key")

// ParseKey returns the id of a well-formed API key. It makes no statement on
// whether the key was ever issued.
func ParseKey(key string) (id string, err error) {
	kid, err := parseKey([]byte(key))
	if err != nil {
		return "", err
	}
	return string(kid[:]), nil
}

func parseKey(key []byte) (id keyID, err error) {
	if len(key) != keyLen || string(key[:len(keyPrefix)]) != keyPrefix || key[keyIDEnd] != '_' {
		return keyID{}, errNotKey
	}
	if !isBase62(key[len(keyPrefix):keyIDEnd]) || !isBase62(key[keyIDEnd+1:keySecretEnd]) {
		return keyID{}, errNotKey
	}
	if keyChecksum(key[:keySecretEnd]) != [keyChecksumLen]byte(key[keySecretEnd:]) {
		return keyID{}, errNotKey
	}
	return keyID(key[len(keyPrefix):keyIDEnd]), nil
}

// newKey returns a fresh API key and its id.
func newKey() (key string, id string) {
	var idBytes [16]byte
	var secret [32]byte
	rand.Read(idBytes[:]) // never fails: crypto/rand crashes the program instead
	rand.Read(secret[:])
	return makeKey(idBytes, secret)
}

func makeKey(idBytes [16]byte, secret [32]byte) (key string, id string) {
	b := make([]byte, 0, keyLen)
	b = append(b, keyPrefix...)
	b = appendBase62(b, idBytes[:], keyIDLen)
	b = append(b, '_')
	b = appendBase62(b, secret[:], keySecretLen)
	sum := keyChecksum(b)
	b = append(b, sum[:]...)
	return string(b), string(b[len(keyPrefix):keyIDEnd])
}

// hashKey is what is stored of a key.
func hashKey(key []byte) [sha256.Size]byte { return sha256.Sum256(key) }

// maskKey shows which key a list row is about and nothing to guess the rest
// from.
func maskKey(id, hint string) string { return keyPrefix + id + "_…" + hint }

// keyHint is the end of a key, which its owner can compare.
func keyHint(key string) string { return key[len(key)-4:] }

func keyChecksum(b []byte) [keyChecksumLen]byte {
	var sum [keyChecksumLen]byte
	n := crc32.ChecksumIEEE(b)
	for i := keyChecksumLen - 1; i >= 0; i-- {
		sum[i] = base62[n%62]
		n /= 62
	}
	return sum
}

func appendBase62(dst, b []byte, width int) []byte {
	n, digit, base := new(big.Int).SetBytes(b), new(big.Int), big.NewInt(62)
	start := len(dst)
	dst = append(dst, make([]byte, width)...)
	for i := start + width - 1; i >= start; i-- {
		n.DivMod(n, base, digit)
		dst[i] = base62[digit.Int64()]
	}
	return dst
}

func isBase62(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}
