package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	magic      = "writ segment 1\n\x00"
	frameMagic = "wfrm"
	endMagic   = "wend"

	headerLen      = 16 + 16 + 8 + 8 + 12 + 4
	frameHeaderLen = 4 + 4 + 4 + 4 + 8 + 8
	endLen         = 4 + 4 + 4 + 4
	alignment      = 8
)

// ErrDamaged says that frames are missing or unreadable.
var ErrDamaged = errors.New("the segment log is damaged: restore the data directory from a backup")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame has everything that one batch stores. The bytes of a Frame must not be modified.
type Frame struct {
	Number uint64 // the first frame has 1
	Head   []byte
	Items  [][]byte
}

// header is the start of a segment.
type header struct {
	log           [16]byte
	number, first uint64
}

func (h header) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = append(dst, h.log[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, h.number)
	dst = binary.LittleEndian.AppendUint64(dst, h.first)
	dst = append(dst, make([]byte, 12)...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

func parseHeader(b []byte) (h header, err error) {
	const end = headerLen - 4
	if len(b) < headerLen || string(b[:len(magic)]) != magic ||
		binary.LittleEndian.Uint32(b[end:]) != crc32.Checksum(b[:end], castagnoli) {
		return h, fmt.Errorf("%w: its first bytes are no header", ErrDamaged)
	}
	b = b[len(magic):]
	b = b[copy(h.log[:], b):]
	h.number, h.first = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	return h, nil
}

// padded returns n rounded up to the next multiple of the alignment.
func padded(n int) int { return (n + alignment - 1) &^ (alignment - 1) }

// appendFrame appends f to dst. durable is the number up to which all frames are durable. log is
// the checksum of the log's id.
func appendFrame(dst []byte, f Frame, durable uint64, log uint32) ([]byte, error) {
	start := len(dst)
	dst = append(dst, make([]byte, frameHeaderLen)...)
	dst = append(binary.AppendUvarint(dst, uint64(len(f.Head))), f.Head...)
	for _, item := range f.Items {
		dst = append(binary.AppendUvarint(dst, uint64(len(item))), item...)
	}
	length := len(dst) - start - frameHeaderLen
	if length > math.MaxInt32 {
		return dst[:start], fmt.Errorf("a frame of %d bytes", length)
	}
	dst = append(dst, make([]byte, padded(length)-length)...)
	b := dst[start:]
	copy(b, frameMagic)
	binary.LittleEndian.PutUint32(b[8:], uint32(length))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(f.Items)))
	binary.LittleEndian.PutUint64(b[16:], f.Number)
	binary.LittleEndian.PutUint64(b[24:], durable)
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(log, castagnoli, b[8:]))
	return dst, nil
}

// frameHeader is the part of a frame with a fixed size, at its start.
type frameHeader struct {
	length, items   int
	number, durable uint64
}

// size returns the length of the frame with its header and padding.
func (h frameHeader) size() int { return padded(frameHeaderLen + h.length) }

func parseFrameHeader(b []byte) (h frameHeader, ok bool) {
	if len(b) < frameHeaderLen || string(b[:4]) != frameMagic {
		return h, false
	}
	length, items := binary.LittleEndian.Uint32(b[8:]), binary.LittleEndian.Uint32(b[12:])
	h = frameHeader{
		length: int(length), items: int(items),
		number: binary.LittleEndian.Uint64(b[16:]), durable: binary.LittleEndian.Uint64(b[24:]),
	}
	return h, length <= math.MaxInt32 && items <= length
}

var errNoFrame = fmt.Errorf("%w: a frame is not whole", ErrDamaged)

// parseFrame reads the frame at the start of b. The frame shares the memory of b, and of items if all fit.
func parseFrame(b []byte, log uint32, items [][]byte) (f Frame, h frameHeader, err error) {
	h, ok := parseFrameHeader(b)
	if !ok || len(b) < h.size() || binary.LittleEndian.Uint32(b[4:]) != crc32.Update(log, castagnoli, b[8:h.size()]) {
		return f, h, errNoFrame
	}
	if items == nil || cap(items) < h.items {
		items = make([][]byte, h.items)
	}
	f, rest := Frame{Number: h.number, Items: items[:h.items]}, b[frameHeaderLen:frameHeaderLen+h.length]
	if f.Head, rest, ok = cut(rest); !ok {
		return f, h, errNoFrame
	}
	for i := range f.Items {
		if f.Items[i], rest, ok = cut(rest); !ok {
			return f, h, errNoFrame
		}
	}
	if len(rest) > 0 {
		return f, h, errNoFrame
	}
	return f, h, nil
}

// cut reads a length at the start of b. It returns the next bytes, as many as the length says, and
// the bytes after them.
func cut(b []byte) (first, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n) : size+int(n)], b[size+int(n):], true
}

// appendTrailer appends the trailer of a segment whose frames begin at offsets. The last frame ends
// at end.
func appendTrailer(dst []byte, offsets []uint32, end uint32) []byte {
	start := len(dst)
	for _, at := range offsets {
		dst = binary.LittleEndian.AppendUint32(dst, at)
	}
	sum := crc32.Checksum(dst[start:], castagnoli)
	tail := binary.LittleEndian.AppendUint32(nil, uint32(len(offsets)))
	tail = binary.LittleEndian.AppendUint32(tail, end)
	dst = append(dst, endMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Update(sum, castagnoli, tail))
	return append(dst, tail...)
}

// trailerSum returns the checksum in a trailer.
func trailerSum(trailer []byte) uint32 {
	return binary.LittleEndian.Uint32(trailer[len(trailer)-endLen+4:])
}

// trailerEnd is the part of a trailer with a fixed size, at its end.
type trailerEnd struct{ sum, frames, end uint32 }

// at returns the position of the trailer in a segment of size bytes.
func (t trailerEnd) at(size int64) int64 { return size - endLen - 4*int64(t.frames) }

// parseEnd reads the last endLen bytes of a segment of size bytes. ok is false if the segment
// is not sealed.
func parseEnd(b []byte, size int64) (t trailerEnd, ok bool) {
	if len(b) != endLen || string(b[:4]) != endMagic {
		return t, false
	}
	t = trailerEnd{
		sum:    binary.LittleEndian.Uint32(b[4:]),
		frames: binary.LittleEndian.Uint32(b[8:]), end: binary.LittleEndian.Uint32(b[12:]),
	}
	return t, t.end >= headerLen && t.end%alignment == 0 && t.at(size) >= int64(t.end)
}

// whole reports whether b holds exactly the offsets that the trailer's checksum covers.
func (t trailerEnd) whole(b []byte) bool {
	tail := binary.LittleEndian.AppendUint32(nil, t.frames)
	tail = binary.LittleEndian.AppendUint32(tail, t.end)
	return crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, tail) == t.sum
}

// laterDurable reports whether a broken frame was durable. b begins with the broken frame, whose
// number is given. A later whole frame in b proves it if that frame was written when the broken
// frame was already durable.
func laterDurable(b []byte, number uint64, log uint32) bool {
	for at := 0; at+frameHeaderLen <= len(b); {
		i := bytes.Index(b[at:], []byte(frameMagic))
		if i < 0 {
			return false
		}
		if at += i; at%alignment != 0 {
			at++
			continue
		}
		if h, ok := parseFrameHeader(b[at:]); ok && h.number > number && h.durable >= number {
			if _, _, err := parseFrame(b[at:], log, nil); err == nil {
				return true
			}
		}
		at += alignment
	}
	return false
}
