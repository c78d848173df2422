package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage/receipt"
)

// noon is the time of the tests' clocks at the start.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// logged is a log that a test reads.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range bytes.Lines(l.buf.Bytes()) {
		lines = append(lines, string(line))
	}
	return lines
}

// marking is a scrubber. It treats two texts as secrets: each text with "hunter", and the value of
// ticket.
type marking struct{}

func (marking) Text(s string) string {
	if strings.Contains(s, "hunter") {
		return "[scrubbed]"
	}
	return s
}

func (m marking) Identity(s string) string {
	if m.Text(s) != s {
		return "[tagged]"
	}
	return s
}

func (m marking) Name(_, folded string) string { return m.Identity(folded) }

func (m marking) Resource(raw, projection string) string {
	if m.Text(raw) != raw {
		return m.Text(projection)
	}
	return projection
}

func (m marking) Values(metadata map[string]string) map[string]string {
	kept := make(map[string]string)
	for key, value := range metadata {
		if kept[key] = m.Text(value); key == "ticket" {
			kept[key] = "[scrubbed]"
		}
	}
	return kept
}

func testSigner(seed byte) *receipt.Signer {
	return receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)))
}

func testKeys(t testing.TB, signers ...*receipt.Signer) receipt.Keys {
	t.Helper()
	var pubs []ed25519.PublicKey
	for _, s := range signers {
		pubs = append(pubs, s.Public())
	}
	keys, err := receipt.NewKeys(pubs...)
	must(t, err)
	return keys
}

// open returns a ledger on store. The ledger is closed when the test ends. change may modify the
// ledger's configuration.
func open(t testing.TB, store Store, change ...func(*Config)) *Ledger {
	t.Helper()
	cfg := Config{Store: store, Signer: testSigner(1), Scrub: marking{}, Now: (&clock{now: noon}).Now}
	for _, f := range change {
		f(&cfg)
	}
	l, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		failed := t.Failed()
		if failed {
			stop() // commits may still wait at a gate
		}
		if err := l.Close(ctx); err != nil && !failed {
			t.Errorf("Close = %v", err)
		}
	})
	return l
}

// openFake returns a ledger on a new store.
func openFake(t testing.TB, change ...func(*Config)) (*fake, *Ledger) {
	t.Helper()
	store := newFake()
	return store, open(t, store, change...)
}

func logTo(log *logged) func(*Config) {
	return func(c *Config) { c.Log = slog.New(slog.NewTextHandler(log, nil)) }
}

// intent returns the n-th of a series of intents.
func intent(n int) *engine.Intent {
	return &engine.Intent{
		IntentID:   fmt.Sprintf("7d9f1c1e-3b5a-4f5e-8a67-%012d", n),
		PolicyID:   "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
		AgentID:    "team-a/deployer",
		ActionType: "deploy",
		Resource:   "https://user:password@example.com/prod?token=secret#fragment",
		Cost:       &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
		Metadata:   map[string]string{"ticket": "OPS-7", "env": "prod"},
		IssuedAt:   "2026-11-21T11:59:59Z",
	}
}

func entry(in *engine.Intent, d engine.Decision) Entry {
	return Entry{Intent: in, PolicyVersion: 3, Credential: "operator:alice", Result: engine.Result{
		Decision: d,
		Findings: []engine.Finding{{Code: "policy.test", Outcome: d, Reason: "policy.test: the test decided so"}},
	}}
}

// decide reserves a place for org and commits e with the reservation.
func decide(ctx context.Context, l *Ledger, org string, e Entry) (Outcome, error) {
	reservation, err := l.Reserve(ctx, nil, org, plenty)
	if err != nil {
		return Outcome{}, err
	}
	return commit(ctx, l, reservation, e)
}

// commit commits e with the reservation r.
func commit(ctx context.Context, l *Ledger, r *Reservation, e Entry) (Outcome, error) {
	e.Reservation = r
	p, err := l.Enqueue(ctx, []*Entry{&e}, false)
	if err != nil {
		return Outcome{}, err
	}
	var outs [1]Outcome
	if err := p.Wait(ctx, outs[:]); err != nil {
		return Outcome{}, err
	}
	out := outs[0]
	out.Err = nil
	return out, outs[0].Err
}

// mustDecide decides an allow for the intent in. An error ends the test.
func mustDecide(t *testing.T, l *Ledger, org string, in *engine.Intent) Outcome {
	t.Helper()
	out, err := decide(t.Context(), l, org, entry(in, engine.Allow))
	if err != nil {
		t.Fatalf("Commit(%s) = %v", in.IntentID, err)
	}
	return out
}

// plenty is a limit that no test reaches.
const plenty = 1_000_000

// ordinal returns the number of decisions in the meter plus one. This number is the smallest limit
// that allows another decision.
func ordinal(t *testing.T, l *Ledger, org string) int64 {
	t.Helper()
	for limit := int64(1); ; limit++ {
		reservation, err := l.Reserve(t.Context(), nil, org, limit)
		if err != nil {
			t.Fatalf("Reserve: %v", err)
		}
		exceeded := reservation.Exceeded()
		if reservation.Release(); !exceeded {
			return limit
		}
	}
}

// result is what decide returns in a goroutine.
type result struct {
	out Outcome
	err error
}

// goDecide runs decide in a goroutine.
func goDecide(ctx context.Context, l *Ledger, org string, e Entry) <-chan result {
	done := make(chan result, 1)
	go func() {
		out, err := decide(ctx, l, org, e)
		done <- result{out, err}
	}()
	return done
}

// awaitQueued waits until n commits are in the queue.
func awaitQueued(l *Ledger, n int) {
	for l.queue.len() != n {
		runtime.Gosched()
	}
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
