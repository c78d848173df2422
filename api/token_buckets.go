package api

import (
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	bucketShards = 64
	// sweepPause is the least time between two searches for room in a shard.
	sweepPause = 100 * time.Millisecond
)

// buckets are the token buckets of one limit, by key.
//
// Their number is bounded, and only full buckets are dropped: a full bucket equals a
// new one, so nobody gets a used bucket renewed by filling the table. Filling it takes
// maxBuckets times the limit's rate, because each bucket must be used again whenever it
// refills. If the table is full, new keys share the bucket of their shard until there
// is room. The assignment of keys to shards differs in each process.
type buckets[K comparable] struct {
	limit  RateLimit
	seed   maphash.Seed
	shards [bucketShards]bucketShard[K]
}

type bucketShard[K comparable] struct {
	// mu guards all of it.
	mu     sync.Mutex
	byKey  map[K]*rate.Limiter
	shared *rate.Limiter
	swept  time.Time
}

// level is the state of a bucket after a request.
type level struct {
	left int
	full int // seconds until the bucket is full
	wait int // seconds until one request is left, at least 1
}

func newBuckets[K comparable](limit RateLimit) *buckets[K] {
	b := &buckets[K]{limit: limit, seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].byKey = make(map[K]*rate.Limiter)
		b.shards[i].shared = b.fresh()
	}
	return b
}

func (b *buckets[K]) fresh() *rate.Limiter {
	return rate.NewLimiter(rate.Limit(b.limit.Rate), b.limit.Burst)
}

// take takes one request from key's bucket, if it has one.
func (b *buckets[K]) take(key K, now time.Time) (level, bool) {
	s := &b.shards[maphash.Comparable(b.seed, key)%bucketShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket := s.byKey[key]
	if bucket == nil {
		bucket = b.addLocked(s, key, now)
	}
	ok := bucket.AllowN(now, 1)
	tokens := bucket.TokensAt(now)
	return level{
		left: int(max(tokens, 0)),
		full: b.limit.seconds(float64(b.limit.Burst) - tokens),
		wait: max(b.limit.seconds(1-tokens), 1),
	}, ok
}

// overdraw takes n more requests from key's bucket, which had one just now,
// whether or not it has them: whoever comes next waits until they are back.
func (b *buckets[K]) overdraw(key K, n int, now time.Time) {
	s := &b.shards[maphash.Comparable(b.seed, key)%bucketShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket := s.byKey[key]
	if bucket == nil {
		bucket = s.shared
	}
	for ; n > 0; n -= b.limit.Burst {
		bucket.ReserveN(now, min(n, b.limit.Burst))
	}
}

// addLocked returns a new bucket for key, or the shared one if there is no room.
func (b *buckets[K]) addLocked(s *bucketShard[K], key K, now time.Time) *rate.Limiter {
	full := len(s.byKey) >= maxBuckets/bucketShards
	pause := sweepPause
	if !full {
		refill := time.Duration(b.limit.seconds(float64(b.limit.Burst))) * time.Second
		pause = max(refill, time.Second)
	}
	if now.Sub(s.swept) >= pause {
		s.swept = now
		maps.DeleteFunc(s.byKey, func(_ K, bucket *rate.Limiter) bool { return bucket.TokensAt(now) >= float64(b.limit.Burst) })
		full = len(s.byKey) >= maxBuckets/bucketShards
	}
	if full {
		return s.shared
	}
	bucket := b.fresh()
	s.byKey[key] = bucket
	return bucket
}

func (b *buckets[K]) len() int {
	n := 0
	for i := range b.shards {
		s := &b.shards[i]
		s.mu.Lock()
		n += len(s.byKey)
		s.mu.Unlock()
	}
	return n
}
