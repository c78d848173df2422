// Package segment is an append-only log of frames in files, the segments. A frame has everything
// that one batch stores, namely a signed head and the rows under it. It is written with one write
// and made durable with one sync. After that only [Log.Rewrite] changes frames: it replaces items
// of sealed segments by shorter ones.
//
// docs/history-format.md has the format of the files. The tests of package embedded have a program
// that was written from that page alone and reads the files. The package that appends heads and
// items defines their content.
//
// # Recovery
//
// A crash can leave the frames that were not durable in any state: whole, in part, or not at all.
// Therefore reading a log that was not closed ends before the first frame that is not whole, and
// [Open] fills the rest of the file with zeros. A log is damaged if a later frame is whole and says
// that the broken frame was durable before. It is also damaged if a sealed segment is missing or is
// not whole. Open returns [ErrDamaged] for a damaged log. If only the last durable frame is lost,
// the log looks as after a crash. A caller that must notice this loss keeps the number of the last
// frame elsewhere.
package segment
