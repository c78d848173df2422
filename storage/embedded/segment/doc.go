// Package segment is an append-only log of frames in files, the segments. A frame is what
// one batch stores: a signed head and the rows under it. It is written with one write and
// made durable with one sync, and never changes; only [Log.Rewrite] replaces items of
// sealed segments by shorter ones.
//
// # Format
//
// The log is the files "<number>.segment" of one directory; number is ten decimal digits,
// from 0000000001 without a gap. All numbers in them are little-endian, but uvarints as
// encoding/binary has them. A checksum is a CRC-32 with the Castagnoli polynomial.
//
//	segment = header *frame *zero            of the segment that is appended to, the last
//	        | header *frame *zero trailer    of a sealed segment
//	header  = magic(16) log(16) number(8) first(8) zeros(12) checksum(4)
//	frame   = "wfrm" checksum(4) length(4) items(4) number(8) durable(8) body(length) padding
//	body    = uvarint(n) head(n) *item
//	item    = uvarint(n) bytes(n)
//	trailer = *offset(4) "wend" checksum(4) frames(4) end(4)
//
// The magic is "writ segment 1\n" and a zero byte. Log is a random id that all segments of
// a log share. First is the number of the segment's first frame. The header's checksum is
// of the 60 bytes before it.
//
// Frames are numbered from 1 without a gap, through all segments. A frame begins at a
// multiple of 8 bytes from the start of the file; zeros pad it. Length is that of the body,
// items the number of items. When a frame was written, all frames up to the one numbered
// durable were already durable. The frame's checksum is of the log's id and of everything
// from length to the end of the padding, so that no text of a client's passes for a frame.
//
// The trailer ends where the file ends. It has the offset of each frame from the start of
// the file; then frames is how many there are, end is where the last one, with its padding,
// ends, and the checksum is of all the trailer before "wend", and of frames and end.
//
// The second frame of a log, with the head "h" and the two items "ab" and "", is
//
//	77 66 72 6d  xx xx xx xx  06 00 00 00  02 00 00 00
//	02 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00
//	01 68  02 61 62  00  00 00
//
// What a head and an item mean is for the package that writes them.
//
// # Recovery
//
// A crash can leave the frames that were not durable in any state: whole, in part, or not
// at all. Reading a log that was not closed therefore ends before the first frame that is
// not whole, and [Open] wipes what follows. But where a whole frame follows that was
// written after the broken one was durable, the log is damaged, and so is one whose sealed
// segments are not whole or not all there: the error is [ErrDamaged]. The loss of the last
// durable frame alone looks like a crash. A caller that must notice it keeps the number of
// its last frame elsewhere.
package segment
