package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

func executed(ref string) storage.Settlement {
	return storage.Settlement{Outcome: storage.Executed, ExternalRef: ref, RecordedAt: noon}
}

// TestSettle_ByAClockThatIsBehind decides on a replica whose clock is ahead, and settles on a
// replica whose clock is behind. The settlement's time must not be before the decision's time. The
// history must be provable.
func TestSettle_ByAClockThatIsBehind(t *testing.T) {
	log := storagetest.NewMemoryLog()
	ahead, behind := &clock{now: noon.Add(storage.MaxSkew)}, &clock{now: noon.Add(-storage.MaxSkew)}
	a := open(t, fakeOn(log), func(c *Config) { c.Now = ahead.Now })
	b := open(t, fakeOn(log), func(c *Config) { c.Now = behind.Now })
	out, err := decide(t.Context(), a, "acme", entry(intent(1), engine.Allow))
	must(t, err)
	s := executed("a")
	s.RecordedAt = behind.Now()
	r, _, err := b.Settle(t.Context(), "acme", out.Record.DecisionID, s)
	if err != nil || !r.Settlement.RecordedAt.Equal(out.Record.DecidedAt) {
		t.Errorf("Settle two minutes before the decision = %+v, %v, want it recorded when that was made", r, err)
	}
	if _, err := proveLog(t, log); err != nil {
		t.Errorf("Prove = %v", err)
	}
}

// TestSettle_OnceAndSigned checks that the first settlement is stored with its own receipt. A later
// call with an equal settlement must return the first settlement.
func TestSettle_OnceAndSigned(t *testing.T) {
	store, keys := newFake(), testKeys(t, testSigner(1))
	l := open(t, store)
	out, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Deny))
	must(t, err)
	id := out.Record.DecisionID
	if _, _, err := l.Settle(t.Context(), "rival", id, executed("a")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Settle of another's = %v, want %v", err, storage.ErrNotFound)
	}
	r, _, err := l.Settle(t.Context(), "acme", id, executed("a"))
	if err != nil || !r.Settlement.Unapproved || VerifySettlement(r, keys) != nil || r.Settlement.Receipt == nil {
		t.Fatalf("Settle = %+v, %v, want it unapproved, with a receipt that verifies", r, err)
	}
	if out.Record.Settlement != nil {
		t.Error("Settle changed the record that the decision was answered with")
	}
	later := executed("a")
	later.RecordedAt = noon.Add(time.Hour)
	again, _, err := l.Settle(t.Context(), "acme", id, later)
	if err != nil || encode(again) != encode(r) {
		t.Errorf("Settle again = %+v, %v, want the first", again, err)
	}
	if _, _, err := l.Settle(t.Context(), "acme", id, executed("b")); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("Settle otherwise = %v, want %v", err, storage.ErrConflict)
	}
	for name, forge := range map[string]func(*storage.Settlement){
		"outcome":  func(s *storage.Settlement) { s.Outcome, s.Unapproved = "failed", false },
		"approved": func(s *storage.Settlement) { s.Unapproved = false },
		"ref":      func(s *storage.Settlement) { s.ExternalRef = "b" },
		"time":     func(s *storage.Settlement) { s.RecordedAt = noon.Add(time.Second) },
		"receipt": func(s *storage.Settlement) {
			s.Receipt = &receipt.Inclusion{Sig: r.Receipt.Sig, KeyID: r.Receipt.KeyID}
		},
		"no receipt": func(s *storage.Settlement) { s.Receipt = &receipt.Inclusion{} },
	} {
		forged, s := *r, *r.Settlement
		forge(&s)
		forged.Settlement = &s
		if err := VerifySettlement(&forged, keys); err == nil {
			t.Errorf("VerifySettlement of a forged %s = nil, want an error", name)
		}
	}
	store.check(t, keys)
}

// TestSettle_Races checks that exactly one of several concurrent settlements is stored. If the
// decision is removed in the meantime, the settlement must fail.
func TestSettle_Races(t *testing.T) {
	store, l := openFake(t)
	id := mustDecide(t, l, "acme", intent(1)).Record.DecisionID
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 16 {
		wg.Go(func() {
			_, _, err := l.Settle(t.Context(), "acme", id, executed(fmt.Sprint(i)))
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, storage.ErrConflict) {
				t.Errorf("Settle = %v, want %v", err, storage.ErrConflict)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d settlements stand, want 1", won.Load())
	}
	other := mustDecide(t, l, "acme", intent(2)).Record.DecisionID
	store.set(func(f *fake) { f.removed = true })
	if _, _, err := l.Settle(t.Context(), "acme", other, executed("a")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Settle of what was removed meanwhile = %v, want %v", err, storage.ErrNotFound)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

// TestSettle_Faults checks that a settlement is stored exactly once, even if the store's error
// means that the outcome is unknown.
func TestSettle_Faults(t *testing.T) {
	for _, faults := range [][]fault{{lost}, {persisted}, {lost, lost}, {persisted, lost}, {lost, persisted}} {
		t.Run(fmt.Sprint(faults), func(t *testing.T) {
			store, l := openFake(t)
			id := mustDecide(t, l, "acme", intent(1)).Record.DecisionID
			store.set(func(f *fake) { f.faults = faults })
			_, _, err := l.Settle(t.Context(), "acme", id, executed("a"))
			if (err != nil) != (len(faults) > 1) {
				t.Errorf("Settle = %v after %d faults", err, len(faults))
			}
			r, _, err := l.Settle(t.Context(), "acme", id, executed("a"))
			if err != nil || VerifySettlement(r, testKeys(t, testSigner(1))) != nil || len(store.entries) != 1 {
				t.Errorf("Settle = %+v, %v with %d entries, want one that verifies", r, err, len(store.entries))
			}
			store.check(t, testKeys(t, testSigner(1)))
		})
	}
}

// source is a Changes whose first call of Trim fails.
type source struct {
	changes []storage.Change
	fail    error
	another bool // each Trim is followed by another change
}

func (s *source) Changes(_ context.Context, after storage.Change, max int) ([]storage.Change, error) {
	if after != (storage.Change{}) {
		return nil, errors.New("changes after another one")
	}
	return s.changes[:min(max, len(s.changes))], nil
}

func (s *source) Trim(_ context.Context, changes []storage.Change) error {
	if err := s.fail; err != nil {
		s.fail = nil
		return err
	}
	last := changes[len(changes)-1]
	if s.changes = s.changes[len(changes):]; s.another {
		last.Revision++
		s.changes = append(s.changes, last)
	}
	return nil
}

// TestSignChanges_EachOnce checks a change that was signed but not trimmed. The change must not be
// signed again. If its content differs now, the call must fail.
func TestSignChanges_EachOnce(t *testing.T) {
	store, l := openFake(t)
	all := make([]storage.Change, 2*maxCommit+1)
	for i := range all {
		all[i] = storage.Change{Org: fmt.Sprint("org-", i%3), Kind: storage.RuleKind, ID: "r", Revision: uint64(i + 1), Digest: [32]byte{1}}
	}
	src := &source{changes: all, fail: errFault}
	if err := l.SignChanges(t.Context(), src); !errors.Is(err, errFault) {
		t.Errorf("SignChanges = %v, want the fault", err)
	}
	if err := l.SignChanges(t.Context(), src); err != nil || len(src.changes) > 0 {
		t.Errorf("SignChanges = %v with %d left, want none", err, len(src.changes))
	}
	if len(store.entries) != len(all) {
		t.Errorf("%d entries for %d changes", len(store.entries), len(all))
	}
	for i, e := range store.entries {
		want := Change{OrganizationID: all[i].Org, Kind: "rule", ID: "r", Revision: int64(i + 1), Digest: "sha256:01" + strings.Repeat("00", 31)}
		if c, err := ParseChange(e); err != nil || c != want {
			t.Errorf("ParseChange = %+v, %v, want %+v", c, err, want)
		}
	}
	all[0].Digest[0] = 2
	if err := l.SignChanges(t.Context(), &source{changes: all[:1]}); err == nil {
		t.Error("SignChanges of a change that is another now = nil, want an error")
	}
	if err := l.SignChanges(t.Context(), &source{changes: []storage.Change{{Kind: storage.CountsKind, Revision: 1}}}); err == nil {
		t.Error("SignChanges of a change of no known kind = nil, want an error")
	}
	store.check(t, testKeys(t, testSigner(1)))
}

// TestSignChanges_Ends checks that a call ends although documents change all the time.
func TestSignChanges_Ends(t *testing.T) {
	store, l := openFake(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	src := &source{another: true, changes: []storage.Change{{Org: "acme", Kind: storage.RuleKind, ID: "r", Revision: 1, Digest: [32]byte{1}}}}
	if err := l.SignChanges(ctx, src); err != nil || len(store.entries) != 1 || len(src.changes) != 1 {
		t.Errorf("SignChanges = %v with %d entries and %d changes left, want one of each", err, len(store.entries), len(src.changes))
	}
}

// TestRetain_IsInTheChain checks that each announcement adds an entry to the chain.
func TestRetain_IsInTheChain(t *testing.T) {
	store, l := openFake(t)
	before := noon.Add(time.Microsecond)
	for range 2 {
		must(t, l.Retain(t.Context(), "acme", before, storage.Expired{Records: 3, Settled: 2}))
	}
	for _, e := range store.entries {
		r, err := parseBody(e, (*Removal).entry)
		if err != nil || r.Count != 3 || r.Settled != 2 || !r.Before.Equal(noon) || r.OrganizationID != "acme" {
			t.Errorf("the entry says %+v, %v, want 3, of which 2 are settled, of acme's before noon", r, err)
		}
	}
	if len(store.entries) != 2 {
		t.Errorf("%d entries, want 2", len(store.entries))
	}
	store.set(func(f *fake) { f.down = storage.ErrUnavailable })
	if err := l.Retain(t.Context(), "acme", before, storage.Expired{Records: 3, Settled: 2}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Retain = %v, want %v", err, storage.ErrUnavailable)
	}
	store.check(t, testKeys(t, testSigner(1)))
}
