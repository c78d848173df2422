package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// together commits intents in one call.
func together(ctx context.Context, l *Ledger, org string, whole bool, intents ...int) ([]Outcome, error) {
	entries := make([]*Entry, len(intents))
	for i, n := range intents {
		reservation, err := l.Reserve(ctx, nil, org, plenty)
		if err != nil {
			return nil, err
		}
		e := entry(intent(n), engine.Allow)
		e.Reservation, entries[i] = reservation, &e
	}
	p, err := l.Enqueue(ctx, entries, whole)
	if err != nil {
		return nil, err
	}
	outs := make([]Outcome, len(intents))
	return outs, p.Wait(ctx, outs)
}

func TestEnqueue_WhatIsDecidedTogetherIsOneBatch(t *testing.T) {
	store, l := openFake(t)
	outs, err := together(t.Context(), l, "acme", false, 1, 2, 3, 1)
	must(t, err)
	if len(store.heads) != 1 || store.heads[0].Size != 3 {
		t.Errorf("heads = %+v, want one over the three intents", store.heads)
	}
	for i, out := range outs {
		if out.Err != nil || out.Record == nil || out.Replayed != (i == 3) {
			t.Errorf("outcome %d = %+v, want the last to repeat the first", i, out)
		}
	}
	if outs[3].Record.DecisionID != outs[0].Record.DecisionID {
		t.Error("an intent given twice has two decisions")
	}
	if got := ordinal(t, l, "acme"); got != 4 {
		t.Errorf("the next ordinal = %d, want 4: three were decided", got)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

func TestEnqueue_AllOrNone(t *testing.T) {
	store, l := openFake(t)
	mustDecide(t, l, "acme", intent(2))
	if _, err := together(t.Context(), l, "acme", true, 1, 2, 3); !errors.Is(err, ErrRaced) {
		t.Fatalf("Wait with an intent that was decided = %v, want ErrRaced", err)
	}
	if len(store.order) != 1 || len(store.heads) != 1 {
		t.Errorf("%d rows under %d heads, want those of the first alone", len(store.order), len(store.heads))
	}
	if got := ordinal(t, l, "acme"); got != 2 {
		t.Errorf("the next ordinal = %d, want 2: nothing else was decided", got)
	}
	outs, err := together(t.Context(), l, "acme", true, 1, 3)
	if err != nil || outs[0].Record == nil || outs[1].Record == nil || outs[0].Replayed || outs[1].Replayed {
		t.Errorf("Wait without it = %+v, %v, want both decided", outs, err)
	}
	store.check(t, testKeys(t, testSigner(1)))
}

// TestEnqueue_AllOrNoneUnderRace commits groups of intents. Other groups and single commits of the
// same intents run at the same time. Each group must be stored as a whole or not at all. No caller
// may get a record that is not stored.
func TestEnqueue_AllOrNoneUnderRace(t *testing.T) {
	store, l := openFake(t)
	const intents = 40
	var wg sync.WaitGroup
	for caller := range 16 {
		random := rand.New(rand.NewPCG(uint64(caller), 1))
		wg.Go(func() {
			for range 30 {
				group := random.Perm(intents)[:1+random.IntN(4)]
				whole := random.IntN(3) > 0
				outs, err := together(context.Background(), l, "acme", whole, group...)
				switch {
				case whole && errors.Is(err, ErrRaced):
					continue
				case err != nil:
					t.Errorf("Wait = %v", err)
					return
				}
				for i, out := range outs {
					stands, err := store.Decided(context.Background(), "acme", intent(group[i]).IntentID, "")
					if err != nil || out.Record == nil || stands.DecisionID != out.Record.DecisionID || whole && out.Replayed {
						t.Errorf("answered %+v for an intent for which %v, %v stands", out, stands, err)
					}
				}
			}
		})
	}
	wg.Wait()
	store.check(t, testKeys(t, testSigner(1)))
	if got := ordinal(t, l, "acme"); got != int64(len(store.order))+1 {
		t.Errorf("the next ordinal = %d with %d rows", got, len(store.order))
	}
}

func TestQueue_KeepsTogetherWhatWasPutTogether(t *testing.T) {
	q := newQueue(1000)
	put := func(org string, n int) {
		var records []*storage.Record
		for i := range n {
			records = append(records, &storage.Record{OrganizationID: org, IntentID: fmt.Sprint(org, i)})
		}
		must(t, q.put(waiterOf(records...)))
	}
	put("a", 6)
	put("a", 6)
	put("b", 1)
	if got := q.len(); got != 13 {
		t.Errorf("len = %d, want 13 intents", got)
	}
	var sizes []string
	for q.len() > 0 {
		var batch []string
		for _, w := range q.take(nil, 7) {
			batch = append(batch, fmt.Sprint(w.org(), len(w.places)))
		}
		sizes = append(sizes, fmt.Sprint(batch))
	}
	if got, want := fmt.Sprint(sizes), "[[a6 b1] [a6]]"; got != want {
		t.Errorf("batches of 7 = %s, want %s", got, want)
	}
}
