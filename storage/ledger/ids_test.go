package ledger

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/storage"
)

func TestDecision_Receipts_DecisionIDIsUUIDv7OfTheDecisionsTime(t *testing.T) {
	now := &clock{now: noon.Add(123456789)}
	l := open(t, newFake(), func(c *Config) { c.Now = now.Now })
	r := mustDecide(t, l, "acme", intent(1)).Record
	id, err := uuid.Parse(r.DecisionID)
	if err != nil {
		t.Fatalf("Parse(%s) = %v", r.DecisionID, err)
	}
	if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		t.Errorf("decision id %s is version %d of variant %v, want 7 of RFC 9562", id, id.Version(), id.Variant())
	}
	sec, nsec := id.Time().UnixTime()
	if want := noon.Add(123 * time.Millisecond); !r.DecidedAt.Equal(want) || !time.Unix(sec, nsec).Equal(want) {
		t.Errorf("DecidedAt = %v, the id's time = %v, want %v", r.DecidedAt, time.Unix(sec, nsec), want)
	}
}

func TestIDs_IncreaseWhenTheClockGoesBackALittle(t *testing.T) {
	var s ids
	var last uuid.UUID
	var lastAt time.Time
	next := func(now time.Time) {
		t.Helper()
		id, at := s.next(now)
		if id.String() <= last.String() {
			t.Fatalf("next(%v) = %s, want more than %s", now, id, last)
		}
		if at.Before(lastAt) || at.Before(now.Truncate(time.Millisecond)) {
			t.Fatalf("next(%v) is of %v, want no earlier than that and %v", now, at, lastAt)
		}
		last, lastAt = id, at
	}
	for range 10_000 { // more ids than a millisecond has distinct times
		next(noon)
	}
	if want := noon.Add(2 * time.Millisecond); !lastAt.Equal(want) {
		t.Errorf("the 10,000th id of a millisecond is of %v, want %v", lastAt, want)
	}
	for i := range 1000 {
		next(noon.Add(time.Second + time.Duration(i)*time.Microsecond))
	}
	s.next(noon.Add(-storage.MaxSkew / 2))
	if id, at := s.next(noon.Add(-storage.MaxSkew / 2)); id.String() <= last.String() || at.Before(lastAt) {
		t.Errorf("next after the clock went back = %s of %v, want more than %s of %v", id, at, last, lastAt)
	}
}

// TestDecision_Receipts_TTLAndMonthAfterTheClockWasAhead sets the clock weeks ahead, sets it back,
// and then decides. The receipts must not be valid for weeks. The decisions must not be metered in
// another month.
func TestDecision_Receipts_TTLAndMonthAfterTheClockWasAhead(t *testing.T) {
	now := &clock{now: noon}
	store, l := openFake(t, func(c *Config) { c.Now, c.TTL = now.Now, 300*time.Second })
	now.set(noon.AddDate(0, 0, 30))
	mustDecide(t, l, "acme", intent(1))
	for i, at := range []time.Time{noon, noon.Add(time.Second), noon.Add(-time.Hour)} {
		now.set(at)
		r := mustDecide(t, l, "acme", intent(2+i)).Record
		if want := at.Unix() + 300; !r.DecidedAt.Equal(at) || r.Receipt.Exp != want {
			t.Errorf("decided at %v: DecidedAt = %v, the receipt's end = %d, want %d", at, r.DecidedAt, r.Receipt.Exp, want)
		}
		if n := store.metered("acme", storage.MonthOf(at)); n != int64(i+1) {
			t.Errorf("%d decisions in the month of %v, want %d", n, at, i+1)
		}
	}
}

func TestIDs_UniqueUnderConcurrency(t *testing.T) {
	var s ids
	const callers, each = 8, 2000
	ids := make([][]uuid.UUID, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for range each {
				id, _ := s.next(noon)
				ids[c] = append(ids[c], id)
			}
		})
	}
	wg.Wait()
	seen := make(map[[8]byte]bool) // the ids differ even without their random half
	for _, list := range ids {
		for _, id := range list {
			seen[[8]byte(id[:8])] = true
		}
	}
	if len(seen) != callers*each {
		t.Errorf("%d distinct ids of %d", len(seen), callers*each)
	}
}
