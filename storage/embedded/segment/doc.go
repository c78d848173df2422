// Package segment is an append-only log of frames in files, the segments. A frame is what
// one batch stores: a signed head and the rows under it. It is written with one write and
// made durable with one sync, and never changes; only [Log.Rewrite] replaces items of
// sealed segments by shorter ones.
//
// docs/history-format.md has the format of the files. A program in the tests of package
// embedded reads them by that page alone. The package that writes heads and items defines
// them.
//
// # Recovery
//
// A crash can leave the frames that were not durable in any state: whole, in part, or not
// at all. Reading a log that was not closed therefore ends before the first frame that is
// not whole, and [Open] wipes the rest. If a whole frame follows that was written after the
// broken one was durable, the log is damaged. So is a log with a sealed segment that is not
// whole or is missing. The error is [ErrDamaged] then. The loss of the last durable frame
// alone looks like a crash. A caller that must notice it keeps the number of its last frame
// elsewhere.
package segment
