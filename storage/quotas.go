package storage

import (
	"context"
	"time"
)

// Quotas counts intents in windows, over all handles of a store. A window is either the meter
// of a month or the window of a rule's counter. In a meter every stored decision uses up a
// place. The store grants places to a handle in advance. So the handle asks once for many
// intents, and all handles together never exceed a limit.
type Quotas interface {
	// Count gives back and grants places, in one step. After an error it is not known whether
	// the store has taken the places back. The caller must neither use them nor give them back
	// again. After an error some places may stay taken although no handle holds them.
	//
	// In a meter, an appended record uses up one of the handle's places. Callers must hold a
	// place for each record. A handle can give back only its own places. While the store cannot
	// commit, it takes them back later. If a handle is given up, its places become free, and it
	// gets ErrConflict instead of more places.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Metered returns the number of distinct intents of org that were decided in month. It
	// counts the decisions of all handles.
	Metered(ctx context.Context, org string, month Month) (int64, error)
	// Meters calls f once for each organization with a decision in month, in any order.
	// decided is the result of Metered for the organization. f may call the store. An error
	// of f ends the walk, and Meters returns the error.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
	// Windows returns the windows of rules' counters that all handles share. It returns nil if
	// only one process writes the store, because that process counts in its own memory.
	Windows() Windows
}

// Windows counts in the sliding windows of rules. A granted place is counted until it is given
// back or has left the window. If a handle or an answer of the store is lost, its places stay
// taken until they have left the window.
type Windows interface {
	// Count is [Quotas.Count]. It returns ErrNotFound if the window is not kept, see
	// [Windows.Begin]. A window is kept until all its counts have left it.
	//
	// Places count in ask's part of the window, or in the part of the store's clock if this
	// part is later. The window begins w.Parts+1 parts before the earlier one of these two
	// parts. So the clock of a handle can't make the total too low, and a place may be used for
	// as long as a part. Any handle may give a place back.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Begin makes the store keep a window with these counts, unless it keeps the window
	// already.
	Begin(ctx context.Context, w Window, parts []WindowPart) error
}

// Window names a window.
type Window struct {
	Org string
	// Month is the month of a meter. For a meter all fields but Org and Month are empty. Month
	// is 0 for the window of a rule.
	Month Month
	// Counter and Of name a rule's counter and its subject. The store does not interpret
	// them.
	Counter, Of string
	// Part is the length of a part in whole milliseconds. Parts is the number of parts in the
	// window.
	Part  time.Duration
	Parts int64
}

// At returns the number of the part that a time is in.
func (w *Window) At(t time.Time) int64 { return t.UnixMilli() / max(1, w.Part.Milliseconds()) }

// WindowPart is the count in a part of a window.
type WindowPart struct {
	At int64 // the number of the part since 1970; a meter ignores it
	N  int64
}

// Ask is a request of a handle about a window.
type Ask struct {
	// At is the part of the window that the handle's clock is in.
	At int64
	// Back are places to give back. The store takes at most as many places out of a part as the
	// part has.
	Back []WindowPart
	// Limit bounds the total of the window, including the granted places. If fewer than Need
	// places fit, none is granted. Otherwise at least Need and at most Want places are granted.
	// A store with several handles grants more than Need only up to a sixteenth of the free
	// places. If Want is 0, none is granted.
	Limit, Need, Want int64
	// Begun, if not empty, must equal the Begun of the window, see [Granted]. Otherwise Count
	// returns ErrNotFound.
	Begun string
}

// Granted is the answer to an [Ask].
type Granted struct {
	N     int64  // granted places: none, or at least Need
	At    int64  // the part in which they count
	Total int64  // total of the window over all handles, including N
	Begun string // identifies this window among earlier and later ones of the same name
}
