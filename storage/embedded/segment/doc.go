// Package segment is an append-only log of frames. The log is stored in files, the segments. A
// frame has everything that one batch stores, namely a signed head and the rows under this head.
// One write writes a frame, and one sync makes the frame durable. Afterwards only [Log.Rewrite]
// changes frames: it replaces items of sealed segments by shorter items.
//
// docs/history-format.md describes the format of the files. A program in the tests of package
// embedded was written from that page alone and reads the files. This package does not interpret
// heads and items.
//
// # Recovery
//
// A crash can leave frames that were not durable in any state: complete, in part, or not at all. So
// a log that was not closed ends before the first incomplete frame. [Open] fills the rest of the
// file with zeros. A later complete frame may say that the broken frame was durable before. Then
// the log is damaged. It is also damaged if a sealed segment is missing or incomplete. For a
// damaged log Open returns [ErrDamaged]. If only the last durable frame is lost, the log looks as
// after a crash. A caller that must notice this loss keeps the number of the last frame elsewhere.
package segment
