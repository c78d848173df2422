// Package apikey makes and reads API keys. It has a pattern that finds API keys in other texts.
//
// An API key is 77 ASCII characters:
//
//	key      = "writ_" id "_" secret checksum
//	id       = 22 base62 digits: 16 random bytes, big endian
//	secret   = 43 base62 digits: 32 random bytes, big endian
//	checksum =  6 base62 digits: CRC-32 (IEEE) of everything before it
//
// Base62 digits are 0-9, A-Z, a-z in this order, most significant first, with leading zeros up to
// the fixed width. The id is public: lists show it, and the store finds the key by it. The secret
// is never stored, only the SHA-256 of the whole key. The checksum protects nothing. It allows junk
// and typing errors to be refused without a look-up, and helps secret scanners to recognize a key.
//
// Worked example, with 16 bytes 0x01 as id and 32 bytes 0x02 as secret:
//
//	writ_01tRy6czI6jAOLpZvq3hw1_0TWD4V5tkyUQGc5qXvlBDd2Fj97aqsMoBGJJjsttG4I4GQovr
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"math/big"
)

// Pattern matches texts that look like an API key, or like the beginning of a key with the whole
// id. A key that was cut or mistyped is a leak, too.
const Pattern = `writ_(?:[0-9A-Za-z]{22}_[0-9A-Za-z]|[0-9A-Za-z]+_[0-9A-Za-z]{40})[0-9A-Za-z]*`

// Prefix begins every key. IDLen is the length of a key's id in characters.
const (
	Prefix      = "writ_"
	IDLen       = 22
	secretLen   = 43
	checksumLen = 6
	idEnd       = len(Prefix) + IDLen
	secretEnd   = idEnd + 1 + secretLen
	length      = secretEnd + checksumLen
	base62      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// ID is the public part of an API key.
type ID [IDLen]byte

// errNotKey is the same for every fault of a key.
var errNotKey = errors.New("not an API key")

// Parse returns the id of a well-formed API key. The key may never have been issued.
func Parse(key []byte) (id ID, err error) {
	if len(key) != length || string(key[:len(Prefix)]) != Prefix || key[idEnd] != '_' {
		return ID{}, errNotKey
	}
	if !isBase62(key[len(Prefix):idEnd]) || !isBase62(key[idEnd+1:secretEnd]) {
		return ID{}, errNotKey
	}
	if checksum(key[:secretEnd]) != [checksumLen]byte(key[secretEnd:]) {
		return ID{}, errNotKey
	}
	return ID(key[len(Prefix):idEnd]), nil
}

// IsID reports whether s is an id as keys have it.
func IsID(s string) bool { return len(s) == IDLen && isBase62([]byte(s)) }

// New returns a fresh API key and its id.
func New() (key string, id string) {
	var idBytes [16]byte
	var secret [32]byte
	rand.Read(idBytes[:]) // cannot fail: crypto/rand crashes the program instead
	rand.Read(secret[:])
	return build(idBytes, secret)
}

func build(idBytes [16]byte, secret [32]byte) (key string, id string) {
	b := make([]byte, 0, length)
	b = append(b, Prefix...)
	b = appendBase62(b, idBytes[:], IDLen)
	b = append(b, '_')
	b = appendBase62(b, secret[:], secretLen)
	sum := checksum(b)
	b = append(b, sum[:]...)
	return string(b), string(b[len(Prefix):idEnd])
}

// Hash returns the hash of a key. Only the hash is stored.
func Hash(key []byte) [sha256.Size]byte { return sha256.Sum256(key) }

// Mask returns a key for lists, with its secret hidden.
func Mask(id, hint string) string { return Prefix + id + "_…" + hint }

// Hint returns the last four characters of a key. The key's owner can compare them.
func Hint(key string) string { return key[len(key)-4:] }

func checksum(b []byte) [checksumLen]byte {
	var sum [checksumLen]byte
	n := crc32.ChecksumIEEE(b)
	for i := checksumLen - 1; i >= 0; i-- {
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
