package limit

import (
	"hash/maphash"
	"maps"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
)

const (
	// HeaderLevel is the name of the header with the number of requests left.
	HeaderLevel = "RateLimit"
	// HeaderPolicy is the name of the header that describes the limit.
	HeaderPolicy = "RateLimit-Policy"

	// maxBuckets bounds the buckets of one limit, over all shards.
	maxBuckets   = 32 << 10
	bucketShards = 64
	// sweepPause is the least time between two searches of a shard for full buckets to drop.
	sweepPause = 100 * time.Millisecond
)

// ExceededError is returned for a request that exceeds a limit.
type ExceededError struct {
	Detail string
	// RetryAfter is the number of seconds after which the next request is accepted.
	RetryAfter int
	// Level and Policy are the values of HeaderLevel and HeaderPolicy.
	Level, Policy string
}

// Error implements error.
func (e *ExceededError) Error() string { return e.Detail }

// Limiter is one limit over time. It has a token bucket for each key. A nil Limiter is off.
//
// The number of buckets is bounded. Only full buckets are dropped, and a full bucket equals a new
// one. A sender therefore cannot reset a used bucket by filling the table. To keep the table full,
// a sender needs maxBuckets times the limit's rate: each bucket must be used again as soon as it is
// full. While the table is full, new keys share one bucket per shard. The assignment of keys to
// shards differs in each process.
type Limiter[K comparable] struct {
	name    string
	detail  string // Detail of an ExceededError
	refused prometheus.Counter
	rate    atomic.Pointer[inForce] // nil while the limit is off
	seed    maphash.Seed
	shards  [bucketShards]bucketShard[K]
}

// inForce is a rate that is in force.
type inForce struct {
	policy   string        // the value of HeaderPolicy
	interval time.Duration // the time in which the bucket regains one request
	depth    time.Duration // the time in which an empty bucket becomes full
}

type bucketShard[K comparable] struct {
	// mu guards all fields of the shard.
	mu     sync.Mutex
	byKey  map[K]*bucket
	shared bucket
	swept  time.Time
}

// bucket is a token bucket. It is full again at the time at + used.
type bucket struct {
	used time.Duration
	at   time.Time
}

// usedAt returns the time from now until the bucket is full. A now before b.at counts as b.at.
func (b *bucket) usedAt(now time.Time) time.Duration { return max(0, b.used-max(0, now.Sub(b.at))) }

// set sets the time from now until the bucket is full. Requests may arrive out of the order of
// their times. An earlier now does not set b.at back: the bucket would then regain the same time
// twice.
func (b *bucket) set(used time.Duration, now time.Time) {
	if b.used = used; now.After(b.at) {
		b.at = now
	}
}

// Level is the state of a bucket after a request.
type Level struct {
	left int
	full int // seconds until the bucket is full
	wait int // seconds until the next request is accepted, at least 1
}

// NewLimiter returns the limit called name. The error of a refused request has
// the text detail. The limit's metrics have the label name.
func NewLimiter[K comparable](
	l Rate, name, detail string, refused *prometheus.CounterVec, reg prometheus.Registerer,
) *Limiter[K] {
	lim := &Limiter[K]{name: name, detail: detail, refused: refused.WithLabelValues(name), seed: maphash.MakeSeed()}
	lim.Set(l)
	for i := range lim.shards {
		lim.shards[i].byKey = make(map[K]*bucket)
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "writ_rate_limit_buckets", Help: "Token buckets kept, by limit.",
		ConstLabels: prometheus.Labels{"limit": name},
	}, func() float64 { return float64(lim.len()) }))
	return lim
}

// Set puts another rate in force. Requests that a bucket has counted stay counted.
func (l *Limiter[K]) Set(r Rate) {
	if !r.on() {
		l.rate.Store(nil)
		return
	}
	interval := time.Duration(float64(time.Second) / r.PerSecond)
	depth := interval * time.Duration(r.Burst)
	l.rate.Store(&inForce{
		policy:   `"` + l.name + `";q=` + strconv.Itoa(r.Burst) + ";w=" + strconv.Itoa(Seconds(depth)),
		interval: interval, depth: depth,
	})
}

// inForce returns the rate, or nil if the limit is off.
func (l *Limiter[K]) inForce() *inForce {
	if l == nil {
		return nil
	}
	return l.rate.Load()
}

// Seconds returns d in whole seconds, rounded up.
func Seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// Take counts a request of key. It returns an [*ExceededError] if the bucket of key is empty.
func (l *Limiter[K]) Take(key K, now time.Time) (at Level, err error) {
	r := l.inForce()
	if r == nil {
		return at, nil
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byKey[key]
	if b == nil {
		b = l.addLocked(s, key, r.depth, now)
	}
	used := b.usedAt(now)
	ok := used+r.interval <= r.depth
	if ok {
		used += r.interval
		b.set(used, now)
	}
	left := r.depth - used
	at = Level{left: int(max(0, left) / r.interval), full: Seconds(used), wait: max(Seconds(r.interval-left), 1)}
	if ok {
		return at, nil
	}
	l.refused.Inc()
	return at, &ExceededError{Detail: l.detail, RetryAfter: at.wait, Level: string(l.level(at)), Policy: r.policy}
}

// Charge counts n more requests of key and never refuses. A batch is first counted as one request;
// Charge then counts its other intents. Later requests are refused until the bucket regains
// requests.
func (l *Limiter[K]) Charge(key K, n int, now time.Time) {
	r := l.inForce()
	if r == nil {
		return
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byKey[key]
	if b == nil {
		b = &s.shared
	}
	b.set(b.usedAt(now)+time.Duration(n)*r.interval, now)
}

func (l *Limiter[K]) shard(key K) *bucketShard[K] {
	return &l.shards[maphash.Comparable(l.seed, key)%bucketShards]
}

// addLocked returns a new bucket for key. If the table is full, it returns the bucket that new keys
// share.
func (l *Limiter[K]) addLocked(s *bucketShard[K], key K, depth time.Duration, now time.Time) *bucket {
	pause := max(depth, time.Second)
	if len(s.byKey) >= maxBuckets/bucketShards {
		pause = sweepPause
	}
	if now.Sub(s.swept) >= pause {
		s.swept = now
		maps.DeleteFunc(s.byKey, func(_ K, b *bucket) bool { return b.usedAt(now) == 0 })
	}
	if len(s.byKey) >= maxBuckets/bucketShards {
		return &s.shared
	}
	b := new(bucket)
	s.byKey[key] = b
	return b
}

func (l *Limiter[K]) len() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.byKey)
		s.mu.Unlock()
	}
	return n
}

// SetHeaders sets the fields of draft-ietf-httpapi-ratelimit-headers-10.
func (l *Limiter[K]) SetHeaders(h *fasthttp.ResponseHeader, at Level) {
	r := l.inForce()
	if r == nil {
		return
	}
	h.SetCanonical([]byte(HeaderPolicy), []byte(r.policy))
	h.SetCanonical([]byte(HeaderLevel), l.level(at))
}

func (l *Limiter[K]) level(at Level) []byte {
	b := append(make([]byte, 0, 64), '"')
	b = append(b, l.name...)
	b = append(b, `";r=`...)
	b = strconv.AppendInt(b, int64(at.left), 10)
	b = append(b, ";t="...)
	return strconv.AppendInt(b, int64(at.full), 10)
}
