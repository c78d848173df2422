package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// TestFault_CommittedAgain checks an error with an unknown outcome. The batch must be committed
// again, and be stored exactly once.
func TestFault_CommittedAgain(t *testing.T) {
	for _, what := range []fault{lost, persisted} {
		t.Run(fmt.Sprint(what), func(t *testing.T) {
			store, l := openFake(t)
			mustDecide(t, l, "acme", intent(0))
			store.set(func(f *fake) { f.faults = []fault{what} })
			out := mustDecide(t, l, "acme", intent(1))
			if out.Replayed || encode(out.Record) != store.order[1].bytes {
				t.Errorf("Commit = %+v, want the decision that is stored, as a new one", out)
			}
			if got := ordinal(t, l, "acme"); got != 3 {
				t.Errorf("ordinal = %d, want 3: two are decided", got)
			}
			store.check(t, testKeys(t, testSigner(1)))
		})
	}
}

func TestFault_FailedAndLost(t *testing.T) {
	store, l := openFake(t)
	mustDecide(t, l, "acme", intent(0))
	store.set(func(f *fake) { f.faults = []fault{lost, lost} })
	if out, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); !errors.Is(err, errFault) || out != (Outcome{}) {
		t.Fatalf("Commit = %+v, %v, want nothing but the fault", out, err)
	}
	if got := ordinal(t, l, "acme"); got != 3 {
		t.Errorf("ordinal = %d, want 3: the place is held until it is known", got)
	}
	if err := l.Healthy(t.Context()); err != nil {
		t.Errorf("Healthy = %v", err)
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("ordinal = %d, want 2: nothing was committed", got)
	}
	if out := mustDecide(t, l, "acme", intent(1)); out.Replayed {
		t.Errorf("the retry is a replay of a decision that was lost")
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestFault_FailedButPersisted(t *testing.T) {
	store, l := openFake(t)
	mustDecide(t, l, "acme", intent(0))
	store.set(func(f *fake) { f.faults = []fault{persisted, persisted} })
	if out, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); !errors.Is(err, errFault) || out != (Outcome{}) {
		t.Fatalf("Commit = %+v, %v, want nothing but the fault", out, err)
	}
	if got := ordinal(t, l, "acme"); got != 3 {
		t.Errorf("ordinal = %d, want 3: the store has two decisions", got)
	}
	out := mustDecide(t, l, "acme", intent(1))
	if !out.Replayed || encode(out.Record) != store.order[1].bytes {
		t.Errorf("the retry = %+v, want the persisted decision", out)
	}
	if got := ordinal(t, l, "acme"); got != 3 {
		t.Errorf("ordinal = %d, want 3 once it is known, too", got)
	}
	mustDecide(t, l, "acme", intent(2))
	store.check(t, testKeys(t, testSigner(1)))
}

// TestFault_NothingIsStored checks an error that says that nothing was stored. The batch must not
// be committed again, and its place in the meter must be given back at once.
func TestFault_NothingIsStored(t *testing.T) {
	for _, down := range []error{storage.ErrUnavailable, storage.ErrConflict, errors.New("a corrupt row")} {
		store, l := openFake(t)
		mustDecide(t, l, "acme", intent(0))
		store.set(func(f *fake) { f.down = down })
		if _, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); !errors.Is(err, down) {
			t.Errorf("Commit = %v, want %v", err, down)
		}
		if got, n := ordinal(t, l, "acme"), len(store.batches); got != 2 || n != 2 {
			t.Errorf("ordinal = %d after %d batches, want 2 and 2", got, n)
		}
	}
}

type failing struct {
	*fake
	errs []error
}

func (f *failing) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return storage.Batch{}, err
	}
	return f.fake.Append(ctx, batch, seal)
}

// TestFault_UnknownStaysUnknown checks a batch whose first try has an unknown outcome and whose
// second try fails. The outcome must stay unknown, whatever the second error is.
func TestFault_UnknownStaysUnknown(t *testing.T) {
	l := open(t, &failing{newFake(), []error{storage.ErrUnknown, storage.ErrUnavailable}})
	_, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow))
	if !errors.Is(err, storage.ErrUnknown) || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Commit = %v, want both errors", err)
	}
	if out := mustDecide(t, l, "acme", intent(1)); out.Replayed {
		t.Error("an intent that was not stored was decided")
	}
}

// TestFault_ChainAndMetersSurviveAnySeries checks the chain and the meters after every possible
// series of four faults. The scheduler determines the batches. Each series ends with a restart.
func TestFault_ChainAndMetersSurviveAnySeries(t *testing.T) {
	for i := range 81 {
		series := []fault{fault(i / 27), fault(i / 9 % 3), fault(i / 3 % 3), fault(i % 3)}
		t.Run(fmt.Sprint(series), func(t *testing.T) {
			store := newFake()
			for round := range 3 {
				l := open(t, store)
				store.set(func(f *fake) { f.faults = append([]fault{none}, series...) })
				var wg sync.WaitGroup
				for n := range 8 {
					wg.Go(func() { decideUntilDecided(t, l, intent(8*round+n)) })
				}
				wg.Wait()
				if got, want := ordinal(t, l, "acme"), int64(8*(round+1)+1); got != want {
					t.Errorf("ordinal = %d, want %d", got, want)
				}
				if err := l.Close(t.Context()); err != nil {
					t.Errorf("Close = %v", err)
				}
				store.check(t, testKeys(t, testSigner(1)))
			}
		})
	}
}

func decideUntilDecided(t *testing.T, l *Ledger, in *engine.Intent) {
	for {
		_, err := decide(t.Context(), l, "acme", entry(in, engine.Allow))
		if err == nil {
			return
		}
		if !errors.Is(err, errFault) {
			t.Errorf("Commit = %v, want the injected fault", err)
			return
		}
	}
}

func TestFault_LoggedOnceAnEpisode(t *testing.T) {
	store, log := newFake(), new(logged)
	l := open(t, store, logTo(log))
	for episode := range 2 {
		store.set(func(f *fake) { f.faults = []fault{lost, lost, lost, persisted} })
		for n := range 3 {
			if _, err := decide(t.Context(), l, "acme", entry(intent(10*episode+n), engine.Allow)); err == nil {
				t.Fatal("Commit = nil, want the fault")
			}
		}
		mustDecide(t, l, "acme", intent(10*episode+9))
	}
	lines := log.lines()
	if len(lines) != 4 {
		t.Fatalf("%d log lines for two episodes, want a beginning and an end each:\n%s", len(lines), strings.Join(lines, ""))
	}
	if !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(lines[0], errFault.Error()) {
		t.Errorf("the first line = %s, want the fault as an error", lines[0])
	}
	if !strings.Contains(lines[1], "refused=3") {
		t.Errorf("the second line = %s, want how many were refused", lines[1])
	}
}

// TestFault_NothingIsCommittedWhileABatchIsUnknown checks that no other batch is committed while
// the outcome of a batch is unknown. Meanwhile Healthy must report an error.
func TestFault_NothingIsCommittedWhileABatchIsUnknown(t *testing.T) {
	store, down := newFake(), errors.New("down")
	l := open(t, store)
	mustDecide(t, l, "acme", intent(0))
	begun, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	store.set(func(f *fake) { f.faults = []fault{persisted, persisted} })
	if _, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); !errors.Is(err, errFault) {
		t.Fatalf("Commit = %v, want the fault", err)
	}
	store.set(func(f *fake) { f.down = down })
	if err := l.Healthy(t.Context()); !errors.Is(err, down) {
		t.Errorf("Healthy = %v, want %v", err, down)
	}
	if _, err := commit(t.Context(), l, begun, entry(intent(2), engine.Allow)); !errors.Is(err, down) {
		t.Errorf("Commit = %v, want %v", err, down)
	}
	if len(store.heads) != 2 {
		t.Errorf("%d heads, want 2: nothing after the failure", len(store.heads))
	}
	store.set(func(f *fake) { f.down = nil })
	if err := l.Healthy(t.Context()); err != nil {
		t.Errorf("Healthy after the repair = %v", err)
	}
	mustDecide(t, l, "acme", intent(2))
	if got := ordinal(t, l, "acme"); got != 4 {
		t.Errorf("ordinal = %d, want 4", got)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestFault_StoreBreaksItsContract(t *testing.T) {
	tests := map[string]func(*fake){
		"answers too few": func(f *fake) {
			f.answer = func(_, existing []*storage.Record) []*storage.Record { return existing[1:] }
		},
		"takes as new what it did not seal": func(f *fake) {
			f.answer = func(batch, existing []*storage.Record) []*storage.Record {
				batch[0].Receipt.Sig = ""
				return make([]*storage.Record, len(existing))
			}
		},
		"panics": func(f *fake) {
			f.answer = func(_, _ []*storage.Record) []*storage.Record { panic("store") }
		},
	}
	for name, misbehave := range tests {
		t.Run(name, func(t *testing.T) {
			store, l := openFake(t)
			store.set(misbehave)
			if out, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); err == nil {
				t.Errorf("Commit = %+v, want an error", out)
			}
			store.set(func(f *fake) { f.answer = nil })
			mustDecide(t, l, "acme", intent(2))
			if len(store.heads) != 2 || store.heads[1].Prev != store.heads[0].Hash() {
				t.Errorf("heads = %+v, want two that are chained", store.heads)
			}
		})
	}
}

// sealing is a store that seals records that differ from the given records.
type sealing struct {
	*fake
	wrong func(batch []*storage.Record) []*storage.Record
}

func (s sealing) Append(_ context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	_, _, err := seal(receipt.Chain{}, storage.Batch{Records: s.wrong(batch.Records)})
	return storage.Batch{Records: make([]*storage.Record, len(batch.Records))}, err
}

// resealing is a store that has a batch sealed, and again without any of its records. It then says that all of
// them are new.
type resealing struct{ *fake }

func (s resealing) Append(_ context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	_, _, err := seal(receipt.Chain{}, batch)
	_, _, again := seal(receipt.Chain{}, storage.Batch{})
	return storage.Batch{Records: make([]*storage.Record, len(batch.Records))}, errors.Join(err, again)
}

func TestSeal_OnlyTheLastCallCounts(t *testing.T) {
	l := open(t, resealing{newFake()})
	if out, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); err == nil {
		t.Errorf("Commit = %+v, want an error: the record was not sealed at last", out)
	}
}

func TestSeal_RefusesWhatIsNotOfTheBatchInOrder(t *testing.T) {
	tests := map[string]func([]*storage.Record) []*storage.Record{
		"another record": func([]*storage.Record) []*storage.Record { return []*storage.Record{{}} },
		"a copy": func(b []*storage.Record) []*storage.Record {
			c := *b[0]
			return []*storage.Record{&c}
		},
		"twice": func(b []*storage.Record) []*storage.Record { return []*storage.Record{b[0], b[0]} },
		"none":  func([]*storage.Record) []*storage.Record { return nil },
	}
	for name, wrong := range tests {
		t.Run(name, func(t *testing.T) {
			l := open(t, sealing{newFake(), wrong})
			if out, err := decide(t.Context(), l, "acme", entry(intent(1), engine.Allow)); err == nil {
				t.Errorf("Commit = %+v, want an error", out)
			}
		})
	}
}

// TestSeal_StoreTriesAgainWithFewer checks that a batch can be sealed twice. The store finds an
// earlier decision only after the first seal, so the second seal has fewer records.
func TestSeal_StoreTriesAgainWithFewer(t *testing.T) {
	store := newFake()
	l := open(t, retrying{store})
	mustDecide(t, l, "acme", intent(0))
	store.commitGate = make(chan gated)
	blocker := goDecide(t.Context(), l, "acme", entry(intent(1), engine.Allow))
	g := <-store.commitGate
	replay := goDecide(t.Context(), l, "acme", entry(intent(0), engine.Allow))
	fresh := goDecide(t.Context(), l, "acme", entry(intent(2), engine.Allow))
	awaitQueued(l, 2)
	close(g.open)
	close((<-store.commitGate).open)
	for name, answer := range map[string]<-chan result{"blocker": blocker, "replay": replay, "fresh": fresh} {
		if r := <-answer; r.err != nil || r.out.Replayed != (name == "replay") {
			t.Errorf("Commit of the %s = %+v", name, r)
		}
	}
	last := goDecide(t.Context(), l, "acme", entry(intent(3), engine.Allow))
	close((<-store.commitGate).open)
	if r := <-last; r.err != nil {
		t.Errorf("Commit = %v", r.err)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

// retrying is a store that seals each batch twice. The first seal has all records.
type retrying struct{ *fake }

func (s retrying) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	return s.fake.Append(ctx, batch, func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		if _, _, err := seal(tip, batch); err != nil {
			return storage.Batch{}, receipt.SignedHead{}, err
		}
		return seal(tip, fresh)
	})
}

func TestOpen_RefusesAnUnreadableChain(t *testing.T) {
	store := newFake()
	store.headErr = errFault
	l, err := Open(t.Context(), Config{Store: store, Signer: testSigner(1), Scrub: marking{}})
	if !errors.Is(err, errFault) {
		t.Errorf("Open = %v, %v, want the fault: never a second chain", l, err)
	}
}
