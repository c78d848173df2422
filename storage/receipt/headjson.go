package receipt

import (
	"encoding/hex"
	"fmt"
)

// MarshalJSON returns h as one object. Servers list heads in this form, and anchor files contain
// it. The members have the names of the package documentation. chain, prev and root are in
// lower-case hex. seq, size and time are integers. sig is in base64url without padding. kid is a
// string. [ParseHead] reads this form.
func (h SignedHead) MarshalJSON() ([]byte, error) {
	if err := checkKeyID(h.KeyID); err != nil {
		return nil, fmt.Errorf("encoding head %d: %w", h.Seq, err)
	}
	if h.Seq > maxSafeInt || !safe(h.UnixMilli) {
		return nil, fmt.Errorf("encoding head %d: its seq or time is no safe integer", h.Seq)
	}
	dst := AppendString([]byte(`{"chain":`), hex.EncodeToString(h.Chain[:]))
	dst = AppendInt(append(dst, `,"seq":`...), int64(h.Seq))
	dst = AppendInt(append(dst, `,"size":`...), int64(h.Size))
	dst = AppendInt(append(dst, `,"time":`...), h.UnixMilli)
	dst = AppendMember(dst, `,"prev":`, hex.EncodeToString(h.Prev[:]))
	dst = AppendMember(dst, `,"root":`, hex.EncodeToString(h.Root[:]))
	dst = AppendMember(dst, `,"sig":`, encoding().EncodeToString(h.Sig[:]))
	dst = AppendMember(dst, `,"kid":`, h.KeyID)
	return append(dst, '}'), nil
}

// ParseHead reads the form of MarshalJSON. Each member must occur exactly once, in any order, and
// there may be no further members. An error is ErrMalformed. It does not verify the signature.
func ParseHead(data []byte) (SignedHead, error) {
	v, err := parseJSON(data)
	if err != nil {
		return SignedHead{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	f := fieldsOf(v)
	f.only("chain", "seq", "size", "time", "prev", "root", "sig", "kid")
	h := SignedHead{KeyID: f.string("kid")}
	f.bytes("chain", hex.DecodeString, hex.EncodeToString, h.Chain[:])
	h.Seq = uint64(f.within("seq", 1, maxSafeInt))
	h.Size = uint32(f.within("size", 0, 1<<32-1))
	h.UnixMilli = f.within("time", -maxSafeInt, maxSafeInt)
	f.bytes("prev", hex.DecodeString, hex.EncodeToString, h.Prev[:])
	f.bytes("root", hex.DecodeString, hex.EncodeToString, h.Root[:])
	f.bytes("sig", encoding().DecodeString, encoding().EncodeToString, h.Sig[:])
	if err := checkKeyID(h.KeyID); err != nil {
		f.fail("%v", err)
	}
	if f.err != nil {
		return SignedHead{}, f.err
	}
	return h, nil
}

// bytes reads a string that decodes to exactly len(dst) bytes. The string must be the one that
// encode writes for these bytes.
func (f *fields) bytes(name string, decode func(string) ([]byte, error), encode func([]byte) string, dst []byte) {
	s := f.string(name)
	b, err := decode(s)
	if err != nil || len(b) != len(dst) || encode(b) != s {
		f.fail("%s is not %d bytes as they are written", name, len(dst))
	}
	copy(dst, b)
}

func (f *fields) within(name string, least, most int64) int64 {
	n := f.int(name)
	if n < least || n > most {
		f.fail("%s is not between %d and %d", name, least, most)
	}
	return n
}
