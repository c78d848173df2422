package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// The values of Did in an [Event].
const (
	Start    = "start"     // took a slot; Chain is the slot's chain
	Append   = "append"    // calls Append with Rows
	Answer   = "answer"    // Append returned the stored Rows, and the Head if one was signed
	Doubt    = "doubt"     // Append returned an error; the rows may be stored or not
	Refuse   = "refuse"    // Append returned another error; nothing was stored
	Crash    = "crash"     // the replica was killed
	SlotLost = "slot lost" // lost its slot, now or earlier
)

// Event is one line of a trace.
type Event struct {
	Replica string `json:"replica"`
	Did     string `json:"did"`
	Chain   string `json:"chain,omitempty"`
	// Rows has the appended or the stored decisions by intent. It also has entries, by their unique
	// keys.
	Rows map[string]string `json:"rows,omitempty"`
	Head uint64            `json:"head,omitempty"` // sequence of the head
}

// Recorder writes the trace of handles on one store.
type Recorder struct {
	mu  sync.Mutex
	out *json.Encoder
	err error
}

// NewRecorder returns a recorder that writes to w.
func NewRecorder(w io.Writer) *Recorder { return &Recorder{out: json.NewEncoder(w)} }

// Note writes an event.
func (r *Recorder) Note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, r.out.Encode(e))
}

// Err returns the errors of writing the trace.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Handle is a handle on a store whose appends are recorded.
type Handle struct {
	ledger.Store
	to   *Recorder
	name string
}

// Handle returns a handle that records the appends of s. Each handle needs a name of its own. A
// test that kills the handle, or lets another handle give it up, must call Note.
func (r *Recorder) Handle(ctx context.Context, name string, s ledger.Store) (*Handle, error) {
	tip, err := s.Tip(ctx)
	if err != nil {
		return nil, err
	}
	r.Note(Event{Replica: name, Did: Start, Chain: hex.EncodeToString(tip.ID[:])})
	return &Handle{s, r, name}, nil
}

// Note writes an event of the handle that has no rows.
func (h *Handle) Note(did string) { h.to.Note(Event{Replica: h.name, Did: did}) }

// Append implements storage.Log.
func (h *Handle) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	called := Event{Replica: h.name, Did: Append, Rows: make(map[string]string)}
	for _, r := range slices.Backward(batch.Records) { // the first record of an intent wins
		called.Rows[recordName(r)] = r.DecisionID
	}
	for _, e := range slices.Backward(batch.Entries) {
		called.Rows[entryName(e)] = digest(e)
	}
	h.to.Note(called)
	var sealed storage.Batch
	var head receipt.SignedHead
	existing, err := h.Store.Append(ctx, batch, func(
		tip receipt.Chain, fresh storage.Batch,
	) (_ storage.Batch, _ receipt.SignedHead, err error) {
		sealed, head, err = seal(tip, fresh)
		return sealed, head, err
	})
	switch {
	case errors.Is(err, storage.ErrUnknown):
		h.Note(Doubt)
	case err != nil:
		h.Note(Refuse)
	default:
		h.to.Note(h.answer(batch, existing, sealed, head))
	}
	return existing, err
}

// answer returns the event for the result of an Append.
func (h *Handle) answer(batch, existing, sealed storage.Batch, head receipt.SignedHead) Event {
	e := Event{Replica: h.name, Did: Answer, Rows: make(map[string]string)}
	for i, r := range batch.Records {
		switch stands := existing.Records[i]; {
		case stands != nil:
			e.Rows[recordName(r)] = stands.DecisionID
		case slices.Contains(sealed.Records, r):
			e.Rows[recordName(r)], e.Head = r.DecisionID, head.Seq
		}
	}
	for i, n := range batch.Entries {
		switch stands := existing.Entries[i]; {
		case stands != nil:
			e.Rows[entryName(n)] = digest(stands)
		case slices.Contains(sealed.Entries, n):
			e.Rows[entryName(n)], e.Head = digest(n), head.Seq
		}
	}
	return e
}

func recordName(r *storage.Record) string { return r.OrganizationID + "/" + r.IntentID }

func entryName(e *storage.Entry) string {
	return e.OrganizationID + "/" + string(e.Kind) + "/" + e.Key
}

// digest returns a short digest of e. It differs for different entries of the same name.
func digest(e *storage.Entry) string {
	sum := sha256.Sum256(e.Body)
	return hex.EncodeToString(sum[:8])
}
