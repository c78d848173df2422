package decision

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func one(int) int64 { return 1 }

func get(t *testing.T, c *Cache[string, int], key string, want int) {
	t.Helper()
	if got, err := c.Get(t.Context(), key); err != nil || got != want {
		t.Errorf("Get(%q) = %d, %v, want %d", key, got, err, want)
	}
}

func TestCache_LoadsOnceAndCounts(t *testing.T) {
	loads := 0
	c := NewCache(10, one, func(context.Context, string) (int, error) {
		loads++
		return loads, nil
	})
	get(t, c, "a", 1)
	get(t, c, "a", 1)
	get(t, c, "b", 2)
	s := c.Stats()
	s.LoadTime = 0
	want := CacheStats{Hits: 1, Misses: 2, Loads: 2, Bytes: 2, Entries: 2}
	if s != want {
		t.Errorf("Stats() = %+v, want %+v", s, want)
	}
}

func TestCache_ErrorsAreNotKept(t *testing.T) {
	failing := errors.New("down")
	err := failing
	c := NewCache(10, one, func(context.Context, string) (int, error) { return 7, err })
	if _, got := c.Get(t.Context(), "a"); !errors.Is(got, failing) {
		t.Fatalf("Get = %v, want %v", got, failing)
	}
	err = nil
	get(t, c, "a", 7)
	if s := c.Stats(); s.LoadErrors != 1 || s.Entries != 1 {
		t.Errorf("Stats() = %+v, want 1 load error and 1 entry", s)
	}
}

func TestCache_InvalidateForgets(t *testing.T) {
	loads := 0
	c := NewCache(10, one, func(context.Context, string) (int, error) {
		loads++
		return loads, nil
	})
	get(t, c, "a", 1)
	c.Invalidate("a")
	c.Invalidate("never seen")
	get(t, c, "a", 2)
	get(t, c, "b", 3)
	c.Invalidate("a")
	c.Invalidate("b")
	if s := c.Stats(); s.Bytes != 0 || s.Entries != 0 {
		t.Errorf("after Invalidate of all: Stats() = %+v, want nothing resident", s)
	}
	get(t, c, "a", 4)
}

func TestCache_StaysWithinItsBytes(t *testing.T) {
	c := NewCache(100, func(n int) int64 { return int64(n) }, func(_ context.Context, k int) (int, error) { return k, nil })
	for k := range 60 {
		if _, err := c.Get(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Bytes > 100 {
			t.Fatalf("after Get(%d): %d bytes resident, want at most 100", k, s.Bytes)
		}
	}
	if s := c.Stats(); s.Evictions == 0 {
		t.Error("nothing was evicted")
	}
	if got, err := c.Get(t.Context(), 1000); got != 1000 || err != nil {
		t.Errorf("Get of a value larger than the cache = %d, %v, want it served", got, err)
	}
	if s := c.Stats(); s.Bytes > 100 {
		t.Errorf("%d bytes resident after a value larger than the cache", s.Bytes)
	}
}

func TestCache_EvictionSparesWhatIsUsed(t *testing.T) {
	loads := map[string]int{}
	c := NewCache(4, one, func(_ context.Context, k string) (int, error) {
		loads[k]++
		return 0, nil
	})
	for i := range 40 {
		get(t, c, "hot", 0)
		get(t, c, fmt.Sprint("cold", i), 0)
	}
	if loads["hot"] != 1 {
		t.Errorf("a value in constant use was loaded %d times, want 1", loads["hot"])
	}
}

func TestCache_OneLoadHoweverManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads atomic.Int32
		release := make(chan struct{})
		c := NewCache(10, one, func(context.Context, string) (int, error) {
			loads.Add(1)
			<-release
			return 5, nil
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { get(t, c, "a", 5) })
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if loads.Load() != 1 {
			t.Errorf("%d loads, want 1", loads.Load())
		}
	})
}

func TestCache_WaiterHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := NewCache(10, one, func(context.Context, string) (int, error) {
			<-release
			return 5, nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { get(t, c, "a", 5) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("Get with an ended context = %v, want context.Canceled", err)
		}
		close(release)
		wg.Wait()
	})
}

func TestCache_WaiterOutlivesALoaderThatGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(10, one, func(ctx context.Context, _ string) (int, error) {
			if ctx.Value(patience{}) == nil {
				return 5, nil
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), patience{}, "none"))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
				t.Errorf("the loader's Get = %v, want context.Canceled", err)
			}
		})
		synctest.Wait()
		wg.Go(func() { get(t, c, "a", 5) })
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

type patience struct{}

func TestCache_PanicIsAnErrorForEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := NewCache(10, one, func(context.Context, string) (int, error) {
			<-release
			panic("boom")
		})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "boom") {
					t.Errorf("Get = %v, want an error that says boom", err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
	})
}

// TestCache_InvalidationDuringALoad checks a load that began before an invalidation. A Get that
// starts after the invalidation must not see its value.
func TestCache_InvalidationDuringALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stored atomic.Int64
		stored.Store(1)
		gate := make(chan struct{})
		c := NewCache(10, one, func(context.Context, string) (int, error) {
			v := int(stored.Load())
			if v == 1 {
				<-gate
			}
			return v, nil
		})
		var wg sync.WaitGroup
		wg.Go(func() { get(t, c, "a", 1) })
		synctest.Wait()
		stored.Store(2)
		c.Invalidate("a")
		get(t, c, "a", 2)
		close(gate)
		wg.Wait()
		get(t, c, "a", 2)
	})
}

func TestCache_NeverServesStale(t *testing.T) {
	var stored atomic.Int64
	c := NewCache(10, func(int64) int64 { return 1 }, func(context.Context, string) (int64, error) { return stored.Load(), nil })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				before := stored.Load()
				if got, err := c.Get(t.Context(), "a"); err != nil || got < before-1 {
					t.Errorf("Get = %d, %v, want at least %d", got, err, before-1)
					return
				}
			}
		})
	}
	for range 2000 {
		now := stored.Add(1)
		c.Invalidate("a")
		if got, err := c.Get(t.Context(), "a"); err != nil || got < now {
			t.Errorf("Get after Invalidate = %d, %v, want at least %d", got, err, now)
		}
	}
	wg.Wait()
}

func BenchmarkCacheHit(b *testing.B) {
	type key struct{ org, id string }
	c := NewCache(1<<20, one, func(context.Context, key) (int, error) { return 1, nil })
	k := key{"acme", "7b0c2f6e-3d1a-4c55-9a53-0c1f1a2b3c4d"}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Get(ctx, k); err != nil {
			b.Fatal(err)
		}
	}
}

func TestCache_InvalidateAllForgets(t *testing.T) {
	var loads atomic.Int64
	entered, release := make(chan struct{}), make(chan struct{})
	c := NewCache(10, one, func(_ context.Context, key string) (int, error) {
		n := int(loads.Add(1))
		if key == "slow" && n == 3 {
			close(entered)
			<-release
		}
		return n, nil
	})
	get(t, c, "a", 1)
	get(t, c, "b", 2)
	var slow sync.WaitGroup
	slow.Go(func() { get(t, c, "slow", 3) })
	<-entered
	c.InvalidateAll()
	close(release)
	slow.Wait()
	if s := c.Stats(); s.Entries != 0 || s.Bytes != 0 {
		t.Errorf("Stats() = %+v, want nothing resident", s)
	}
	get(t, c, "slow", 4)
	get(t, c, "a", 5)
	get(t, c, "a", 5)
}

func TestCache_OnlyWhileFresh(t *testing.T) {
	loads, fresh := 0, true
	var failing error
	c := NewCache(10, one, func(context.Context, string) (int, error) {
		loads++
		return loads, failing
	})
	c.OnlyWhile(func() bool { return fresh })
	get(t, c, "a", 1)
	fresh = false
	if v, ok := c.Kept("a"); ok {
		t.Errorf("Kept of what may be out of date = %d", v)
	}
	get(t, c, "a", 2)
	get(t, c, "b", 3)
	failing = errors.New("down")
	if v, err := c.Get(t.Context(), "a"); !errors.Is(err, failing) {
		t.Errorf("Get of what can't be read = %d, %v, want the error", v, err)
	}
	failing, fresh = nil, true
	get(t, c, "a", 1)
	get(t, c, "b", 5)
}
