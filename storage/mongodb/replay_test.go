package mongodb

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest/protocol"
)

// traced records the appends of handles during a test. When the test ends, the model of package
// protocol replays the appends. The test fails if the model does not allow one of the steps.
type traced struct {
	t     testing.TB
	rec   *protocol.Recorder
	trace bytes.Buffer
	n     int
}

// trace begins a trace. It must be called before any handle is opened.
func trace(t testing.TB) *traced {
	tr := &traced{t: t}
	tr.rec = protocol.NewRecorder(&tr.trace)
	t.Cleanup(tr.replay)
	return tr
}

func (tr *traced) replay() {
	events := bytes.Count(tr.trace.Bytes(), []byte("\n"))
	began := time.Now()
	n, err := protocol.Replay(bytes.NewReader(tr.trace.Bytes()))
	if err != nil || tr.rec.Err() != nil {
		tr.t.Errorf("Replay of %d events = %v, %v\n%s", events, err, tr.rec.Err(), tr.trace.String())
		return
	}
	tr.t.Logf("the model can do the first %d of %d events: %v", n, events, time.Since(began).Round(time.Millisecond))
}

// recorded is a handle whose appends are in a trace.
type recorded struct {
	*Store
	t      testing.TB
	handle *protocol.Handle
}

// Append implements storage.Log.
func (r *recorded) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	return r.handle.Append(ctx, batch, seal)
}

// of returns a handle that records the appends of s in the trace.
func (tr *traced) of(s *Store) *recorded {
	tr.t.Helper()
	h, err := tr.rec.Handle(tr.t.Context(), fmt.Sprint("handle-", tr.n), s)
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.n++
	return &recorded{s, tr.t, h}
}
