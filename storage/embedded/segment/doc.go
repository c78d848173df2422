// Package segment is an append-only log of frames in files, the segments. A frame is what
// one batch stores: a signed head and the rows under it. It is written with one write and
// made durable with one sync, and never changes; only [Log.Rewrite] replaces items of
// sealed segments by shorter ones.
//
// docs/history-format.md has the format of the files, and a program of its tests reads them
// by that page alone. What a head and an item mean is for the package that writes them.
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
