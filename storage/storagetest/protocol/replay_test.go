package protocol

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"
	"sync"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// plain is a scrubber that removes nothing.
type plain struct{}

func (plain) Text(s string) string                              { return s }
func (plain) Identity(s string) string                          { return s }
func (plain) Name(_, folded string) string                      { return folded }
func (plain) Resource(_, projection string) string              { return projection }
func (plain) Values(values map[string]string) map[string]string { return values }

// faulty is a handle that injects faults into appends.
type faulty struct {
	*storagetest.Handle
	appends *storagetest.Faulty
}

func (f faulty) Append(ctx context.Context, b storage.Batch, seal storage.Seal) (storage.Batch, error) {
	return f.appends.Append(ctx, b, seal)
}

// cluster is a store for several ledgers, with a trace of their events.
type cluster struct {
	*testing.T
	store *storagetest.Memory
	trace bytes.Buffer
	rec   *Recorder
}

// member is one of the ledgers of a cluster.
type member struct {
	*ledger.Ledger
	handle  *storagetest.Handle
	appends *storagetest.Faulty
}

func (c *cluster) open(name string, h *storagetest.Handle) *member {
	c.Helper()
	f := faulty{h, &storagetest.Faulty{Log: h}}
	recorded, err := c.rec.Handle(c.Context(), name, f)
	if err != nil {
		c.Fatal(err)
	}
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	l, err := ledger.Open(c.Context(), ledger.Config{Store: recorded, Signer: signer, Scrub: plain{}})
	if err != nil {
		c.Fatal(err)
	}
	return &member{l, h, f.appends}
}

func (m *member) decide(ctx context.Context, n int) error {
	outs, err := ledgertest.Commit(ctx, m.Ledger, "org", &ledger.Entry{
		Intent: &engine.Intent{
			IntentID: fmt.Sprintf("7d9f1c1e-3b5a-4f5e-8a67-%012d", n), PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
			AgentID: "team-a/deployer", ActionType: "deploy", Resource: "https://example.com/prod", IssuedAt: "2026-11-21T11:59:59Z",
		},
		PolicyVersion: 3,
		Result:        engine.Result{Decision: engine.Allow, Findings: []engine.Finding{{Code: "policy.test", Outcome: engine.Allow, Reason: "policy.test: so"}}},
	})
	if err != nil {
		return err
	}
	return outs[0].Err
}

// decideAll decides intents at the same time. It tries each intent up to 20 times.
func (m *member) decideAll(ctx context.Context, from, to int) {
	var all sync.WaitGroup
	for n := from; n < to; n++ {
		all.Go(func() {
			for range 20 {
				if m.decide(ctx, n) == nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// TestReplay_OfLedgersWithFaults checks that the model can replay the trace of three ledgers that
// race on one store. Some of their answers are lost, and one ledger is given up although it is
// alive.
func TestReplay_OfLedgersWithFaults(t *testing.T) {
	works, lost, persisted := storagetest.Works, storagetest.FailedAndLost, storagetest.FailedButPersisted
	for _, faults := range [][]storagetest.Fault{
		nil, {lost}, {persisted}, {works, lost, lost, lost}, {works, persisted, persisted}, {lost, persisted, lost, works, persisted, lost, lost},
	} {
		t.Run(fmt.Sprint(faults), func(t *testing.T) {
			c := &cluster{T: t, store: storagetest.NewMemory()}
			c.rec = NewRecorder(&c.trace)
			a, b := c.open("a", c.store.Open()), c.open("b", c.store.Open())
			a.appends.Fail(faults...)
			b.appends.Fail(faults...)
			var all sync.WaitGroup
			all.Go(func() { a.decideAll(t.Context(), 0, 12) })
			all.Go(func() { b.decideAll(t.Context(), 6, 18) })
			all.Wait()
			heir := c.open("heir", c.store.TakeOver(t, a.handle).(*storagetest.Handle))
			heir.decideAll(t.Context(), 10, 20)
			if err := a.decide(t.Context(), 100); err == nil {
				t.Error("who was given up has decided")
			}
			heir.decideAll(t.Context(), 100, 101)
			for _, m := range []*member{a, b, heir} {
				if err := m.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
			events := strings.Count(c.trace.String(), "\n")
			if n, err := Replay(bytes.NewReader(c.trace.Bytes())); err != nil || n != events || c.rec.Err() != nil {
				t.Errorf("Replay of %d events = %v, %v\n%s", events, err, c.rec.Err(), c.trace.String())
			}
			t.Logf("%d events", events)
		})
	}
}

// TestReplay_Refuses checks that Replay returns an error for traces that the protocol does not
// allow. Without its last event each trace is allowed.
func TestReplay_Refuses(t *testing.T) {
	for name, trace := range map[string]string{
		"two decisions of one intent": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"b","did":"start","chain":"2"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":1}
			{"replica":"b","did":"append","rows":{"i":"d2"}}
			{"replica":"b","did":"answer","rows":{"i":"d2"},"head":1}`,
		"a head after one that is not there": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"doubt"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":2}`,
		"a head that signs nothing": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":1}
			{"replica":"a","did":"append","rows":{"i":"d2"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":2}`,
		"an acknowledged decision that is gone": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"b","did":"start","chain":"2"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":1}
			{"replica":"a","did":"crash"}
			{"replica":"b","did":"append","rows":{"i":"d2"}}
			{"replica":"b","did":"answer","rows":{"i":"d2"},"head":1}`,
		"another batch after an unknown outcome": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"doubt"}
			{"replica":"a","did":"append","rows":{"j":"d2"}}`,
		"an answer of who was given up": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"h","did":"start","chain":"1"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":1}`,
		"an answer of who was given up and whose slot nobody has taken": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"b","did":"start","chain":"2"}
			{"replica":"a","did":"slot lost"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer","rows":{"i":"d1"},"head":1}`,
		"what was found not to be stored, stored after all": `
			{"replica":"a","did":"start","chain":"1"}
			{"replica":"b","did":"start","chain":"2"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"doubt"}
			{"replica":"a","did":"append","rows":{"i":"d1"}}
			{"replica":"a","did":"answer"}
			{"replica":"b","did":"append","rows":{"i":"d2"}}
			{"replica":"b","did":"answer","rows":{"i":"d1"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			events := strings.Split(strings.TrimSpace(trace), "\n")
			if _, err := Replay(strings.NewReader(strings.Join(events[:len(events)-1], "\n"))); err != nil {
				t.Errorf("Replay without the last event = %v, want nil", err)
			}
			if _, err := Replay(strings.NewReader(trace)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("event %d ", len(events))) {
				t.Errorf("Replay = %v, want event %d refused", err, len(events))
			}
		})
	}
}
