package limit

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// testLimiter returns a limiter with the rate l and its own metrics.
func testLimiter[K comparable](l Rate) *Limiter[K] {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "refused"}, []string{"limit"})
	return NewLimiter[K](l, "test", "", refused, prometheus.NewRegistry())
}

func TestLimiter_TakeAndRefill(t *testing.T) {
	b := testLimiter[int](Rate{PerSecond: 10, Burst: 20})
	now := time.Unix(1_000_000, 0)
	for i := range 20 {
		if at, err := b.Take(1, now); err != nil || at.left != 19-i {
			t.Fatalf("take %d = %+v, %v, want %d left", i, at, err, 19-i)
		}
	}
	if at, err := b.Take(1, now); err == nil || at != (Level{left: 0, full: 2, wait: 1}) {
		t.Errorf("take from an empty bucket = %+v, %v, want a refusal and a wait of a second", at, err)
	}
	if _, err := b.Take(2, now); err != nil {
		t.Error("another key is refused")
	}
	if _, err := b.Take(1, now.Add(99*time.Millisecond)); err == nil {
		t.Error("take 99 ms later is accepted, want refused: one comes back in 100 ms")
	}
	if _, err := b.Take(1, now.Add(100*time.Millisecond)); err != nil {
		t.Error("take 100 ms later is refused")
	}
	if at, err := b.Take(1, now.Add(time.Hour)); err != nil || at.left != 19 {
		t.Errorf("take an hour later = %+v, %v, want 19 left", at, err)
	}
}

// TestLimiter_RequestsOutOfOrder checks that a request with an earlier time does not make room for
// a later request.
func TestLimiter_RequestsOutOfOrder(t *testing.T) {
	b := testLimiter[int](Rate{PerSecond: 10, Burst: 10})
	now := time.Unix(1_000_000, 0)
	for range 10 {
		_, _ = b.Take(1, now)
	}
	b.Charge(1, 1, now.Add(-time.Second))
	if _, err := b.Take(1, now); err == nil {
		t.Error("take after an earlier charge is accepted, want refused")
	}
	_, _ = b.Take(1, now.Add(100*time.Millisecond))
	_, _ = b.Take(1, now.Add(200*time.Millisecond))
	_, _ = b.Take(1, now.Add(-time.Second))
	if _, err := b.Take(1, now.Add(200*time.Millisecond)); err == nil {
		t.Error("take after an earlier one is accepted, want refused")
	}
}

func TestLimiter_RefusalsCostNothing(t *testing.T) {
	b := testLimiter[int](Rate{PerSecond: 1, Burst: 1})
	now := time.Unix(1_000_000, 0)
	_, _ = b.Take(1, now)
	for range 100 {
		_, _ = b.Take(1, now)
	}
	if _, err := b.Take(1, now.Add(time.Second)); err != nil {
		t.Error("refused requests delay the next one, want not")
	}
}

// TestLimiter_StayBounded sends requests from more addresses than there are buckets. The table must
// stay bounded, and an empty bucket must stay empty.
func TestLimiter_StayBounded(t *testing.T) {
	b := testLimiter[int](Rate{PerSecond: 1.0 / 3600, Burst: 2})
	now := time.Unix(1_000_000, 0)
	_, _ = b.Take(-1, now)
	_, _ = b.Take(-1, now)
	for key := range 4 * maxBuckets {
		now = now.Add(10 * time.Microsecond)
		_, _ = b.Take(key, now)
	}
	if n := b.len(); n > maxBuckets {
		t.Errorf("%d buckets, want at most %d", n, maxBuckets)
	}
	if _, err := b.Take(-1, now); err == nil {
		t.Error("a used-up bucket was renewed by filling the table")
	}
	refused := 0
	for key := range 1000 {
		if _, err := b.Take(1<<40+key, now); err != nil {
			refused++
		}
	}
	if refused < 900 {
		t.Errorf("%d of 1000 newcomers refused while there is no room, want nearly all: they share a bucket", refused)
	}
}

func TestLimiter_FullOnesMakeRoom(t *testing.T) {
	b := testLimiter[int](Rate{PerSecond: 100, Burst: 2})
	now := time.Unix(1_000_000, 0)
	for key := range 4 * maxBuckets {
		now = now.Add(100 * time.Microsecond)
		if _, err := b.Take(key, now); err != nil {
			t.Fatalf("newcomer %d is refused, want a bucket: the others' are full again", key)
		}
	}
	if n := b.len(); n > maxBuckets {
		t.Errorf("%d buckets, want at most %d", n, maxBuckets)
	}
}

func TestLimiter_AllocateOnlyForNewcomers(t *testing.T) {
	b := testLimiter[[2]string](Rate{PerSecond: 1, Burst: 1000})
	now, key := time.Unix(1_000_000, 0), [2]string{"acme", "01tRy6czI6jAOLpZvq3hw1"}
	_, _ = b.Take(key, now)
	if n := testing.AllocsPerRun(100, func() { _, _ = b.Take(key, now) }); n != 0 {
		t.Errorf("take allocates %v times, want 0", n)
	}
}

func TestLimiter_Set(t *testing.T) {
	b := testLimiter[int](Rate{})
	now := time.Unix(1_000_000, 0)
	take := func(want int) {
		t.Helper()
		taken := 0
		for range 30 {
			if _, err := b.Take(1, now); err == nil {
				taken++
			}
		}
		if taken != want {
			t.Errorf("%d of 30 were accepted, want %d", taken, want)
		}
	}
	take(30)
	b.Set(Rate{PerSecond: 1, Burst: 5})
	take(5)
	take(0)
	b.Set(Rate{PerSecond: 1, Burst: 7}) // what was used stays used
	take(2)
	b.Set(Rate{})
	take(30)
}
