package mongodb

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

const digestPrefix = "sha256:"

// digestBytes appends the bytes that a digest says, where it is written as receipts
// write it.
func digestBytes(dst []byte, s string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(s, digestPrefix)
	if !ok || len(digits) != 64 || strings.ContainsAny(digits, "ABCDEF") {
		return nil, false
	}
	dst, err := hex.AppendDecode(dst, []byte(digits))
	return dst, err == nil
}

func digestText(b []byte) string {
	return string(hex.AppendEncode(append(make([]byte, 0, 71), digestPrefix...), b))
}

// sigBytes appends the bytes that a sig is the base64url of, where it is written as
// receipts write it.
func sigBytes(dst []byte, s string) ([]byte, bool) {
	if s == "" || strings.ContainsAny(s, "\r\n") { // the decoder skips these
		return nil, false
	}
	dst, err := base64.RawURLEncoding.Strict().AppendDecode(dst, []byte(s))
	return dst, err == nil
}

func indexKey(i int) string { return strconv.Itoa(i) }
