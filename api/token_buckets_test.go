package api

import (
	"testing"
	"time"
)

func TestBuckets_TakeAndRefill(t *testing.T) {
	b := newBuckets[int](RateLimit{Rate: 10, Burst: 20})
	now := time.Unix(1_000_000, 0)
	for i := range 20 {
		if at, ok := b.take(1, now); !ok || at.left != 19-i {
			t.Fatalf("take %d = %+v, %v, want %d left", i, at, ok, 19-i)
		}
	}
	if at, ok := b.take(1, now); ok || at != (level{left: 0, full: 2, wait: 1}) {
		t.Errorf("take from an empty bucket = %+v, %v, want a refusal and a wait of a second", at, ok)
	}
	if _, ok := b.take(2, now); !ok {
		t.Error("another key is refused")
	}
	if _, ok := b.take(1, now.Add(99*time.Millisecond)); ok {
		t.Error("take 99 ms later is accepted, want refused: one comes back in 100 ms")
	}
	if _, ok := b.take(1, now.Add(100*time.Millisecond)); !ok {
		t.Error("take 100 ms later is refused")
	}
	if at, ok := b.take(1, now.Add(time.Hour)); !ok || at.left != 19 {
		t.Errorf("take an hour later = %+v, %v, want 19 left", at, ok)
	}
}

func TestBuckets_RefusalsCostNothing(t *testing.T) {
	b := newBuckets[int](RateLimit{Rate: 1, Burst: 1})
	now := time.Unix(1_000_000, 0)
	b.take(1, now)
	for range 100 {
		b.take(1, now)
	}
	if _, ok := b.take(1, now.Add(time.Second)); !ok {
		t.Error("refused requests delay the next one, want not")
	}
}

// TestBuckets_StayBounded is somebody with more addresses than there are
// buckets. The table stays bounded, and his used-up bucket stays used up.
func TestBuckets_StayBounded(t *testing.T) {
	b := newBuckets[int](RateLimit{Rate: 1.0 / 3600, Burst: 2})
	now := time.Unix(1_000_000, 0)
	b.take(-1, now)
	b.take(-1, now)
	for key := range 4 * maxBuckets {
		now = now.Add(10 * time.Microsecond)
		b.take(key, now)
	}
	if n := b.len(); n > maxBuckets {
		t.Errorf("%d buckets, want at most %d", n, maxBuckets)
	}
	if _, ok := b.take(-1, now); ok {
		t.Error("a used-up bucket was renewed by filling the table")
	}
	refused := 0
	for key := range 1000 {
		if _, ok := b.take(1<<40+key, now); !ok {
			refused++
		}
	}
	if refused < 900 {
		t.Errorf("%d of 1000 newcomers refused while there is no room, want nearly all: they share a bucket", refused)
	}
}

func TestBuckets_FullOnesMakeRoom(t *testing.T) {
	b := newBuckets[int](RateLimit{Rate: 100, Burst: 2})
	now := time.Unix(1_000_000, 0)
	for key := range 4 * maxBuckets {
		now = now.Add(100 * time.Microsecond)
		if _, ok := b.take(key, now); !ok {
			t.Fatalf("newcomer %d is refused, want a bucket: the others' are full again", key)
		}
	}
	if n := b.len(); n > maxBuckets {
		t.Errorf("%d buckets, want at most %d", n, maxBuckets)
	}
}

func TestBuckets_AllocateOnlyForNewcomers(t *testing.T) {
	b := newBuckets[credential](RateLimit{Rate: 1, Burst: 10})
	now, key := time.Unix(1_000_000, 0), credential{"acme", "01tRy6czI6jAOLpZvq3hw1"}
	b.take(key, now)
	if n := testing.AllocsPerRun(100, func() { b.take(key, now) }); n != 0 {
		t.Errorf("take allocates %v times, want 0", n)
	}
}

func BenchmarkBuckets(b *testing.B) {
	t := newBuckets[credential](RateLimit{Rate: 1000, Burst: 1000})
	key := credential{"acme", "01tRy6czI6jAOLpZvq3hw1"}
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		if _, ok := t.take(key, now); !ok {
			b.Fatal("refused")
		}
	}
}
