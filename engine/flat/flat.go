// Package flat reads what is compiled into one piece of memory.
//
// A compiled policy lies in one string: numbers in little-endian order, and texts as they
// are, at places that the numbers before them say. A policy of pointers is spread over a
// hundred lines of the processor's caches, and each of them that has to be fetched from
// memory costs what a whole comparison does. One string needs a tenth of the lines, which
// follow each other, nothing for the garbage collector to look through, and can be shared
// between policies that say the same.
//
// Write with [encoding/binary.LittleEndian]. A place that is not in b panics.
package flat

// Uint32 returns the number at a place.
func Uint32(b string, at int) uint32 {
	b = b[at : at+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// Uint64 returns the number at a place.
func Uint64(b string, at int) uint64 {
	b = b[at : at+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// Int returns the Uint32 at a place: a count, a length or another place.
func Int(b string, at int) int { return int(Uint32(b, at)) }
