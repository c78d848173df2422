package storage

import (
	"context"
	"time"
)

// Quotas counts intents in windows, over all handles of a store. A window is the meter of
// a month, in which every stored decision uses a place up, or what a rule counts. A handle
// is granted places, so that it asks the store once for many intents, and all handles
// together never exceed a limit.
type Quotas interface {
	// Count gives back and grants what ask says, in one step. After an error what was to
	// be given back may be taken still, or not: it must be neither used nor given back
	// again. Places may be taken that nobody has.
	//
	// In a meter, appending a record uses up one of the handle's places; callers must hold
	// one for each, and only a handle's own places are given back, at once or, while the
	// store cannot commit, later. The places of a handle that is given up become free, and
	// that handle gets ErrConflict instead of more.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Metered returns how many distinct intents org had decided in month, counted
	// over all handles.
	Metered(ctx context.Context, org string, month Month) (int64, error)
	// Meters calls f once for each organization with a decision in month, in any order,
	// with what Metered returns. f may call the store; its error ends the walk and is
	// returned.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
	// Windows returns where handles count together what rules count, nil for a store
	// that one process writes: that process counts by itself.
	Windows() Windows
}

// Windows counts what rules count in sliding windows. A granted place is counted until it
// is given back or has left the window: the places of a lost handle, or of a lost answer,
// are taken until then.
type Windows interface {
	// Count is [Quotas.Count]. It returns ErrNotFound if the window is not kept, see
	// [Windows.Begin]. A window is kept until everything that was counted in it has left it.
	//
	// Places count in the part of the window that is ask's or, if that is later, in the
	// one that the store's clock is in. The window looks back from the earlier of both by
	// its parts and one more. So no clock of a handle makes the total too low, and a place
	// may be used for as long as a part. Any handle may give a place back.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Begin keeps a window that has come to parts, unless it is kept already.
	Begin(ctx context.Context, w Window, parts []WindowPart) error
}

// Window names a window.
type Window struct {
	Org string
	// Month is that of a meter, which has nothing of what follows. It is 0 for what a rule
	// counts.
	Month Month
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
	At int64 // the number of the part since 1970; any in a meter
	N  int64
}

// Ask is what a handle asks of a window.
type Ask struct {
	// At is the part that the handle's clock is in.
	At int64
	// Back is what is given back. What a part does not have is not given back.
	Back []WindowPart
	// Limit is what the window may come to with what is granted. No places are granted
	// unless Need of them fit. Up to Want are; a store that others use grants at most a
	// sixteenth of what is left above Need. Nothing is granted for a Want of 0.
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
