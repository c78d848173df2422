package storage

import (
	"context"
	"time"
)

// Quotas counts intents in windows, over all handles of a store. A window is the meter of a
// month, in which every stored decision uses up a place, or the window of a rule's counter. A
// handle is granted places, so that it asks the store once for many intents, and all handles
// together never exceed a limit.
type Quotas interface {
	// Count gives back and grants places, in one step. After an error the places to give
	// back may or may not be taken: they must be neither used nor given back again. Places
	// that nobody holds may stay taken.
	//
	// In a meter, appending a record uses up one of the handle's places, and callers must
	// hold one for each record. Only a handle's own places can be given back: at once or,
	// while the store cannot commit, later. The places of a handle that is given up become
	// free, and that handle gets ErrConflict instead of more places.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Metered returns the number of distinct intents of org that were decided in month. It
	// counts the decisions of all handles.
	Metered(ctx context.Context, org string, month Month) (int64, error)
	// Meters calls f once for each organization with a decision in month, in any order.
	// decided is the result of Metered for the organization. f may call the store. An error
	// of f ends the walk, and Meters returns the error.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
	// Windows returns the windows of rules' counters that all handles share. It returns nil
	// if only one process writes the store: that process counts in its own memory.
	Windows() Windows
}

// Windows counts in the sliding windows of rules. A granted place is counted until it is given
// back or has left the window. The places of a lost handle, or of a lost answer, are taken until
// then.
type Windows interface {
	// Count is [Quotas.Count]. It returns ErrNotFound if the window is not kept, see
	// [Windows.Begin]. A window is kept until all its counts have left it.
	//
	// Places count in ask's part of the window, or in the part of the store's clock if that
	// is later. The window looks back from the earlier of both by its parts and one more. So
	// no clock of a handle makes the total too low, and a place may be used for as long as a
	// part. Any handle may give a place back.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Begin keeps a window with these counts, unless it is kept already.
	Begin(ctx context.Context, w Window, parts []WindowPart) error
}

// Window names a window.
type Window struct {
	Org string
	// Month is the month of a meter, whose other fields are empty. It is 0 for the window of
	// a rule.
	Month Month
	// Counter and Of name a rule's counter and its subject. The store does not interpret
	// them.
	Counter, Of string
	// Part is the length of a part, whole milliseconds, and Parts how many of them the
	// window has.
	Part  time.Duration
	Parts int64
}

// At returns the number of the part that a time is in.
func (w *Window) At(t time.Time) int64 { return t.UnixMilli() / max(1, w.Part.Milliseconds()) }

// WindowPart is the count in a part of a window.
type WindowPart struct {
	At int64 // the number of the part since 1970; any in a meter
	N  int64
}

// Ask is a question of a handle about a window.
type Ask struct {
	// At is the part of the handle's clock.
	At int64
	// Back are places to give back. A part gives back no more places than it has.
	Back []WindowPart
	// Limit bounds the total of the window, with the granted places. If fewer than Need
	// places fit, none are granted. Otherwise up to Want are. A store with several handles
	// grants more than Need only up to a sixteenth of the free places. With a Want of 0
	// nothing is granted.
	Limit, Need, Want int64
	// Begun, if not empty, is the Begun of the wanted window: see [Granted]. Another window
	// of the same name is not found.
	Begun string
}

// Granted is the answer to an [Ask].
type Granted struct {
	N     int64  // places: none, or Need at least
	At    int64  // the part in which they count
	Total int64  // of the window, over all handles, with N
	Begun string // differs from that of other windows of the same name, before and after
}
