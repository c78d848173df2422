package storage

import (
	"context"
	"math"
	"time"
)

// Quotas counts intents in windows, over all handles of a store. A window is either an
// organization's meter of a month or the window of a rule's counter. A place is the right to count
// one intent. The store grants a handle several places in advance, so it need not ask for each
// intent. All handles together never exceed a limit.
type Quotas interface {
	// Count takes back places from the handle and grants others, in one step. After an error, the
	// handle doesn't know whether the store took the places back. It must neither use these places
	// nor give them back again. Some places may then stay taken although no handle has them.
	//
	// In a meter, each appended record uses one of the handle's places. Callers must have a place
	// for each record. A handle can give back only its own places. If the store can't commit, it
	// takes them back later. If a handle is given up, its places become free, and Count returns
	// ErrConflict to that handle.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Scarce reports for each meter whether its places are scarce. Then a handle must not keep idle
	// places, see [Granted].
	Scarce(ctx context.Context, meters []Window) ([]bool, error)
	// Metered returns the number of distinct intents of org that were decided in month. It
	// counts the decisions of all handles.
	Metered(ctx context.Context, org string, month Month) (int64, error)
	// Meters calls f once for each organization with a decision in month, in any order. decided is
	// the result of Metered for the organization. f may call the store. If f returns an error,
	// Meters stops and returns it.
	Meters(ctx context.Context, month Month, f func(org string, decided int64) error) error
	// Windows returns the windows of rules' counters that all handles share. It returns nil if
	// only one process writes the store, because that process counts in its own memory.
	Windows() Windows
}

// Windows counts in the sliding windows of rules. A granted place is counted until it is given back
// or has left the window. If a handle ends or an answer of the store is lost, the places stay
// counted until they have left the window.
type Windows interface {
	// Count works as [Quotas.Count] does. It returns ErrNotFound if the store does not keep the
	// window, see [Windows.Begin]. The store keeps a window until all its counts have left it.
	//
	// If Count takes back or grants places, the window gets the names of w that it lacks.
	//
	// A window has parts of equal length. Granted places count in the later of two parts: the part
	// of the handle's clock in ask, and the part of the store's clock. The window begins w.Parts+1
	// parts before the earlier of these two. So a wrong clock can't make the total too low, and a
	// place can be used for the length of a part. Any handle may give a place back.
	Count(ctx context.Context, w Window, ask Ask) (Granted, error)
	// Begin makes the store keep a window with these counts. If the store already keeps the window,
	// Begin changes nothing.
	Begin(ctx context.Context, w Window, parts []WindowPart) error
}

// NoLimit is a limit that no count reaches.
const NoLimit = math.MaxInt64 / 2

// Window names a window.
type Window struct {
	Org string
	// Month is the month of a meter. It is 0 for a rule's window. In a meter, all fields except Org
	// and Month are empty.
	Month Month
	// Counter names a rule's counter, and Of its subject. A subject can have several names. The
	// store finds its window by any of them, so two subjects must have no name in common. The store
	// does not interpret names.
	Counter string
	Of      []string
	// Part is the length of a part in whole milliseconds. Parts is the number of parts in the
	// window.
	Part  time.Duration
	Parts int64
}

// At returns the number of the part that contains t.
func (w *Window) At(t time.Time) int64 { return t.UnixMilli() / max(1, w.Part.Milliseconds()) }

// WindowPart is the count in a part of a window.
type WindowPart struct {
	At int64 // number of the part since 1970; ignored for a meter
	N  int64
}

// Ask is a handle's request to give back and get places in a window.
type Ask struct {
	// At is the part of the window that the handle's clock is in.
	At int64
	// Back are the places to give back. If a part has fewer places, the store takes back only
	// those.
	Back []WindowPart
	// Limit bounds the total of the window, including the granted places. If fewer than Need places
	// are free, none is granted. Otherwise the store grants at least Need and at most Want places.
	// With several handles, it grants at most a sixteenth of the free places, unless Need is
	// greater. If Want is 0, no place is granted. A Limit of at least NoLimit is none.
	Limit, Need, Want int64
	// Begun is empty, or the Begun that [Granted] had earlier. Count returns ErrNotFound if the
	// window has another Begun.
	Begun string
}

// Granted is the answer to an [Ask].
type Granted struct {
	N     int64  // number of granted places: 0, or at least Need
	At    int64  // the part in which the granted places count
	Total int64  // total of the window over all handles, including N
	Begun string // distinguishes the window from earlier and later windows with the same name

	// Ample says that the places of all handles in a meter are fewer than an eighth of the free
	// places. Then the handle may keep idle places for minutes. Meanwhile it must ask Scarce every
	// second, and give idle places back once they are scarce. Places are scarce from the first Count
	// with Want and with a limit at which they are not ample, until they are ample again.
	//
	// If Ample is false, the handle must give back places after a second without use.
	Ample bool
	// Wait is 0 unless another handle may have idle places in a meter that it has yet to give back. If
	// the limit is reached meanwhile, the caller must ask again after Wait. The limit counts as reached
	// only if Wait is 0 and Ample is false. The sum of such waits is about two seconds.
	Wait time.Duration
}
