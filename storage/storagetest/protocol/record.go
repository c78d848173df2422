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

	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
)

// The things that an [Event] tells.
const (
	Start    = "start"     // took a slot, with the chain of it
	Append   = "append"    // calls Append with rows
	Answer   = "answer"    // got what stands of them, with the head where one was signed
	Doubt    = "doubt"     // got an error after which nobody knows
	Refuse   = "refuse"    // got another error: nothing was stored
	Crash    = "crash"     // ended without a word
	SlotLost = "slot lost" // has its slot no more, at the latest now
)

// Event is one line of a trace.
type Event struct {
	Replica string `json:"replica"`
	Did     string `json:"did"`
	Chain   string `json:"chain,omitempty"`
	// Rows are decisions by intent: those appended, or those stored. Entries are among them
	// by their unique keys.
	Rows map[string]string `json:"rows,omitempty"`
	Head uint64            `json:"head,omitempty"` // its sequence
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

// Err returns what kept the trace from being written.
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

// Handle returns s with its appends recorded. No two handles have one name. A test that
// crashes the handle or gives it up notes that.
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
	for _, r := range slices.Backward(batch.Records) { // of one intent the first counts
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

// answer returns the event of an Append's answer.
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

// digest tells entries of one name apart.
func digest(e *storage.Entry) string {
	sum := sha256.Sum256(e.Body)
	return hex.EncodeToString(sum[:8])
}
