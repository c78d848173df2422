package receipt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Canonicalize returns the RFC 8785 canonical form of an I-JSON document, so
// that a client can compute the digest of his own JSON. It refuses what has no
// single meaning: duplicate members, invalid UTF-8, lone surrogates, numbers
// beyond a double's range, data after the value, nesting deeper than encoding/json
// follows (10,000), and integers written in full that a double would change, such as
// 9007199254740993. It is made to be right, not fast.
func Canonicalize(json []byte) ([]byte, error) {
	v, err := parseJSON(json)
	if err != nil {
		return nil, fmt.Errorf("canonicalizing: %w", err)
	}
	out, err := appendValue(make([]byte, 0, len(json)), v)
	if err != nil {
		return nil, fmt.Errorf("canonicalizing: %w", err)
	}
	return out, nil
}

func appendValue(dst []byte, v value) ([]byte, error) {
	switch v.kind {
	case kindString:
		return AppendString(dst, v.text), nil
	case kindNumber:
		return appendNumber(dst, v.text)
	case kindArray:
		return appendArray(dst, v.items)
	case kindObject:
		return appendObject(dst, v.members)
	}
	return append(dst, v.text...), nil
}

func appendArray(dst []byte, items []value) ([]byte, error) {
	dst = append(dst, '[')
	for i, item := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendValue(dst, item); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func appendObject(dst []byte, members []member) ([]byte, error) {
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, m.name), ':')
		var err error
		if dst, err = appendValue(dst, m.value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// appendNumber appends the canonical form of a JSON number literal.
func appendNumber(dst []byte, literal string) ([]byte, error) {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return nil, fmt.Errorf("number %.40s: %w", literal, errors.Unwrap(err))
	}
	start := len(dst)
	dst = appendFloat(dst, f)
	whole := !strings.ContainsAny(literal, ".eE")
	if whole && math.Abs(f) > maxSafeInt && string(dst[start:]) != literal {
		return nil, fmt.Errorf("number %.40s: not a safe integer, a double would change it", literal)
	}
	return dst, nil
}

// appendFloat is ECMAScript's Number::toString, on which RFC 8785 §3.2.2.3
// rests: the shortest digits that read back as f, with an exponent below 1e-6
// and from 1e21 up. f must be finite.
func appendFloat(dst []byte, f float64) []byte {
	abs := math.Abs(f)
	switch {
	case f == 0:
		return append(dst, '0')
	case 1e-6 <= abs && abs < 1e21:
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go writes at least two digits of exponent: 1e-09 for 1e-9.
	if n := len(dst); dst[n-4] == 'e' && dst[n-2] == '0' {
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst
}
