package embedded

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"writ/storage"
)

// decoder reads the output of encoder. After the first error it reads zeros. Its texts
// share the memory of the row, which saves 15 allocations a row.
type decoder struct {
	rest string
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errCorrupt, what)
	}
	d.rest = ""
}

func (d *decoder) byte() byte {
	if len(d.rest) == 0 {
		d.fail("short")
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) uint() uint64 {
	var v uint64
	for i := range min(len(d.rest), binary.MaxVarintLen64) {
		b := d.rest[i]
		if i == binary.MaxVarintLen64-1 && b > 1 {
			break // beyond 64 bits
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			d.rest = d.rest[i+1:]
			return v
		}
	}
	d.fail("number")
	return 0
}

func (d *decoder) int() int64 {
	v := d.uint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail("text")
		return ""
	}
	s := d.rest[:n]
	d.rest = d.rest[n:]
	return s
}

func (d *decoder) digest() string {
	switch d.byte() {
	case 0:
		return ""
	case 1:
		if len(d.rest) < sha256.Size {
			d.fail("digest")
			return ""
		}
		var text [len(digestPrefix) + 2*sha256.Size]byte
		copy(text[:], digestPrefix)
		const digits = "0123456789abcdef"
		for i := range sha256.Size {
			text[len(digestPrefix)+2*i] = digits[d.rest[i]>>4]
			text[len(digestPrefix)+2*i+1] = digits[d.rest[i]&15]
		}
		d.rest = d.rest[sha256.Size:]
		return string(text[:])
	case 2:
		return d.text()
	}
	d.fail("digest")
	return ""
}

// length reads the number of elements, each at least one byte, that follow.
func (d *decoder) length() int {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail("length")
		return 0
	}
	return int(n)
}

func (d *decoder) texts() []string {
	n := d.uint()
	if n == 0 {
		return nil
	}
	if n-1 > uint64(len(d.rest)) {
		d.fail("list")
		return nil
	}
	list := make([]string, n-1)
	for i := range list {
		list[i] = d.text()
	}
	return list
}

func (d *decoder) present() bool {
	b := d.byte()
	if b > 1 {
		d.fail("flag")
	}
	return b == 1
}

func (d *decoder) time() time.Time {
	sec, nsec := d.int(), d.uint()
	if nsec >= uint64(time.Second) {
		d.fail("time")
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

func (d *decoder) metadata() map[string]string {
	n := d.length()
	m := make(map[string]string, n)
	for range n {
		k := d.text()
		m[k] = d.text()
	}
	return m
}

func (d *decoder) receipt(r *storage.Record) {
	r.Receipt.Decision = cmp.Or(d.text(), r.Decision.String())
	r.Receipt.DecisionID = cmp.Or(d.text(), r.DecisionID)
	r.Receipt.Digest = d.text()
	r.Receipt.Exp = d.int()
	r.Receipt.Sig = d.text()
	r.Receipt.KeyID = d.text()
}

// optional reads texts. Each must occur at most once and not be empty.
func (d *decoder) optional(r *storage.Record) {
	for range d.length() {
		to := r.TextCalled(string([]byte{d.byte(), d.byte()}))
		switch {
		case to == nil:
			d.fail("text that this version of writ does not know")
			return
		case *to != "":
			d.fail("text that is there twice")
			return
		}
		*to = d.text()
	}
}

func (d *decoder) settlement() storage.Settlement {
	s := storage.Settlement{Outcome: d.text()}
	if d.present() {
		amount := d.int()
		s.AmountMinor = &amount
	}
	s.Currency = d.text()
	s.ExternalRef = d.text()
	s.RecordedAt = d.time()
	return s
}
