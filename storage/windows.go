package storage

import (
	"context"
	"time"
)

// Windows counts what rules count in sliding windows, over all handles of a store. As
// with [Quotas] a handle is granted places, so that it asks the store once for many
// intents. A granted place is counted until it is given back or has left the window: the
// places of a lost handle, or of a lost answer, are taken until then.
type Windows interface {
	// Count gives back and grants what ask says, in one step. It returns ErrNotFound if
	// the window is not kept, see [Windows.Begin]. A window is kept until everything that
	// was counted in it has left it.
	//
	// Places count in the part of the window that is ask's or, if that is later, in the
	// one that the store's clock is in. The window looks back from the earlier of both by
	// its parts and one more. So no clock of a handle makes the total too low, and a place
	// may be used for as long as a part.
	//
	// After an error what was to be given back may be taken still, and places may be taken
	// that nobody has.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Begin keeps a window that has come to parts, unless it is kept already.
	Begin(ctx context.Context, w Window, parts []WindowPart) error
}

// Window names a window.
type Window struct {
	Org string
	// Counter says what is counted, and Of whose it is: to the store they are two texts.
	Counter, Of string
	// Part is the length of a part, whole milliseconds, and Parts how many of them the
	// window has.
	Part  time.Duration
	Parts int64
}

// At returns the number of the part that a time is in.
func (w *Window) At(t time.Time) int64 { return t.UnixMilli() / max(1, w.Part.Milliseconds()) }

// WindowPart is what was counted in a part of a window.
type WindowPart struct {
	At int64 // the number of the part since 1970
	N  int64
}

// Ask is what a handle asks of a window.
type Ask struct {
	// At is the part that the handle's clock is in.
	At int64
	// Back is what is given back. What a part does not have is not given back.
	Back []WindowPart
	// Limit is what the window may come to with what is granted. No places are granted
	// unless Need of them fit. Up to Want are, as long as those above Need are at most a
	// sixteenth of what is left. Nothing is granted for a Want of 0.
	Limit, Need, Want int64
	// Begun says which window is meant if it is not empty: see [Granted]. Another is not
	// found.
	Begun string
}

// Granted is the answer to an [Ask].
type Granted struct {
	N     int64  // places: none, or Need at least
	At    int64  // the part in which they count
	Total int64  // what the window has come to over all handles, with N
	Begun string // differs from that of other windows of the same name, before and after
}
