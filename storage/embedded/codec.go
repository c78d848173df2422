package embedded

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// codec writes or reads the fields of a stored value. Because one function can do both, each format
// is stated once. Each method codes one field: it writes the value of the field, or reads a value
// into it. After the first error a codec reads nothing more. Texts that are read share the memory
// of the row, which saves 15 allocations for each row.
type codec struct {
	b     []byte // the bytes written so far
	reads bool
	rest  string // the bytes that are not read yet
	err   error
}

// decoding returns a codec that reads v.
func decoding(v []byte) codec { return codec{reads: true, rest: string(v)} }

func (c *codec) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s", errCorrupt, what)
	}
	c.rest = ""
}

// end returns the first error of reading. Bytes that are left are also an error.
func (c *codec) end() error {
	if n := len(c.rest); n > 0 {
		c.fail(fmt.Sprintf("%d bytes too many", n))
	}
	return c.err
}

// bytes codes the bytes of b. Their number is not written.
func (c *codec) bytes(b []byte) {
	switch {
	case !c.reads:
		c.b = append(c.b, b...)
	case len(c.rest) < len(b):
		c.fail("short")
	default:
		c.rest = c.rest[copy(b, c.rest):]
	}
}

func (c *codec) byte(b *byte) {
	switch {
	case !c.reads:
		c.b = append(c.b, *b)
	case len(c.rest) == 0:
		c.fail("short")
	default:
		*b, c.rest = c.rest[0], c.rest[1:]
	}
}

// version codes the number of a format. Reading another number is an error.
func (c *codec) version(version byte) {
	v := version
	if c.byte(&v); v != version {
		c.fail("version")
	}
}

func (c *codec) uint(v *uint64) {
	if !c.reads {
		c.b = binary.AppendUvarint(c.b, *v)
		return
	}
	var read uint64
	for i := range min(len(c.rest), binary.MaxVarintLen64) {
		b := c.rest[i]
		if i == binary.MaxVarintLen64-1 && b > 1 {
			break // the number exceeds 64 bits
		}
		read |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*v, c.rest = read, c.rest[i+1:]
			return
		}
	}
	c.fail("number")
}

func (c *codec) int(v *int64) {
	zigzag := uint64(*v<<1) ^ uint64(*v>>63)
	if c.uint(&zigzag); c.reads {
		*v = int64(zigzag>>1) ^ -int64(zigzag&1)
	}
}

// count codes the number of elements that follow, and returns it. Each element takes at least one
// byte.
func (c *codec) count(n int) int {
	u := uint64(n)
	if c.uint(&u); c.reads && u > uint64(len(c.rest)) {
		c.fail("length")
		return 0
	}
	return int(u)
}

func (c *codec) text(s *string) {
	if !c.reads {
		c.b = append(binary.AppendUvarint(c.b, uint64(len(*s))), *s...)
		return
	}
	n := c.count(0)
	*s, c.rest = c.rest[:n], c.rest[n:]
}

// texts codes a list, which may be nil. The format must have another field after the list.
func (c *codec) texts(list *[]string) {
	n := 0
	if *list != nil {
		n = len(*list) + 1
	}
	if n = c.count(n); c.reads && n > 0 {
		*list = make([]string, n-1)
	}
	for i := range *list {
		c.text(&(*list)[i])
	}
}

// present codes whether an optional part follows, and returns whether the part follows.
func (c *codec) present(is bool) bool {
	var b byte
	if is {
		b = 1
	}
	if c.byte(&b); b > 1 {
		c.fail("flag")
	}
	return b == 1
}

func (c *codec) time(t *time.Time) {
	sec, nsec := t.Unix(), uint64(t.Nanosecond())
	c.int(&sec)
	c.uint(&nsec)
	switch {
	case !c.reads:
	case nsec >= uint64(time.Second):
		c.fail("time")
	default:
		*t = time.Unix(sec, int64(nsec)).UTC()
	}
}

// digestPrefix is the start of a digest as text. Hex digits follow it.
const digestPrefix = "sha256:"

func (c *codec) digest(s *string) {
	var sum [sha256.Size]byte
	var text [len(digestPrefix) + 2*len(sum)]byte
	copy(text[:], digestPrefix)
	digits := text[len(digestPrefix):]
	form := byte(0)
	if *s != "" {
		form = 2
		if found, ok := strings.CutPrefix(*s, digestPrefix); ok && copy(digits, found) == len(found) {
			_, err := hex.Decode(sum[:], digits)
			hex.Encode(digits, sum[:])
			if err == nil && string(digits) == found { // the digits are lower case
				form = 1
			}
		}
	}
	switch c.byte(&form); form {
	case 0:
	case 1:
		if c.bytes(sum[:]); c.reads {
			hex.Encode(digits, sum[:])
			*s = string(text[:])
		}
	case 2:
		c.text(s)
	default:
		c.fail("digest")
	}
}
