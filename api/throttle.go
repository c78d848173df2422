package api

import (
	"hash/maphash"
	"maps"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ/internal/telemetry"
)

const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"

	// maxBuckets is how many buckets one limit keeps, in all of its shards.
	maxBuckets   = 32 << 10
	bucketShards = 64
	// sweepPause is the least time between two searches for room in a shard.
	sweepPause = 100 * time.Millisecond
)

// credential is the key of the limits by credential.
type credential struct{ org, subject string }

// throttle has the limits over time, nil where they are off.
type throttle struct {
	credential, evaluate *limiter[credential]
	changes              *limiter[string]
	address              *limiter[address]
	proxies              proxies
}

func newThrottle(l RateLimits, reg prometheus.Registerer) *throttle {
	refused := telemetry.CounterVec("writ_rate_limited_total",
		"Requests refused with a 429, by the limit that they met.", "limit")
	reg.MustRegister(refused)
	return &throttle{
		credential: newLimiter[credential](l.Credential, "credential", "Too many requests with this credential.",
			refused, reg),
		evaluate: newLimiter[credential](l.Evaluate, "evaluate",
			"Too many evaluations with this credential. Nothing was decided.", refused, reg),
		changes: newLimiter[string](l.Changes, "changes",
			"This organization has changed too much in a short time. Nothing was changed; what stops or removes "+
				"something is never limited.", refused, reg),
		address: newLimiter[address](l.Address, "address",
			"Too many requests from this address without a credential known to be good.", refused, reg),
		proxies: l.TrustedProxies,
	}
}

// forRoute returns the limit by credential that a route counts for.
func (t *throttle) forRoute(rt *route) *limiter[credential] {
	if rt.scope == scopeEvaluate {
		return t.evaluate
	}
	return t.credential
}

// takeAddress counts a request without a good credential for its address.
func (t *throttle) takeAddress(fc *fasthttp.RequestCtx, now time.Time) (level, error) {
	if t.address == nil {
		return level{}, nil
	}
	return t.address.take(addressOf(t.proxies.client(fc)), now)
}

// limiter is one limit over time: a token bucket for each key; nil if it is off.
//
// The number of buckets is bounded, and only full ones are dropped: a full bucket equals a
// new one, so nobody gets a used bucket renewed by filling the table. Filling it takes
// maxBuckets times the limit's rate, because each bucket must be used again whenever it
// refills. If the table is full, new keys share the bucket of their shard until there
// is room. The assignment of keys to shards differs in each process.
type limiter[K comparable] struct {
	name, policy string // policy is the value of RateLimit-Policy
	detail       string // of the 429
	refused      prometheus.Counter
	interval     time.Duration // until one request is back
	depth        time.Duration // until all are
	seed         maphash.Seed
	shards       [bucketShards]bucketShard[K]
}

type bucketShard[K comparable] struct {
	// mu guards all of it.
	mu     sync.Mutex
	byKey  map[K]*bucket
	shared bucket
	swept  time.Time
}

// bucket is a token bucket: the time until it was full again, at a time.
type bucket struct {
	used time.Duration
	at   time.Time
}

// usedAt returns what is not back yet. A clock that is set back gives nothing back.
func (b *bucket) usedAt(now time.Time) time.Duration { return max(0, b.used-max(0, now.Sub(b.at))) }

// set sets what is not back yet. Requests come in another order than their times: an earlier
// time gives nothing back twice.
func (b *bucket) set(used time.Duration, now time.Time) {
	if b.used = used; now.After(b.at) {
		b.at = now
	}
}

// level is the state of a bucket after a request.
type level struct {
	left int
	full int // seconds until the bucket is full
	wait int // seconds until one request is left, at least 1
}

func newLimiter[K comparable](
	l RateLimit, name, detail string, refused *prometheus.CounterVec, reg prometheus.Registerer,
) *limiter[K] {
	lim := &limiter[K]{name: name, detail: detail, refused: refused.WithLabelValues(name), seed: maphash.MakeSeed()}
	if l.on() {
		lim.interval = time.Duration(float64(time.Second) / l.Rate)
		lim.depth = lim.interval * time.Duration(l.Burst)
		lim.policy = `"` + name + `";q=` + strconv.Itoa(l.Burst) + ";w=" + strconv.Itoa(seconds(lim.depth))
	}
	for i := range lim.shards {
		lim.shards[i].byKey = make(map[K]*bucket)
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "writ_rate_limit_buckets", Help: "Token buckets kept, by limit.",
		ConstLabels: prometheus.Labels{"limit": name},
	}, func() float64 { return float64(lim.len()) }))
	if !l.on() {
		return nil
	}
	return lim
}

// seconds is d in whole seconds, rounded up.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// take counts a request of key. It returns the 429 if there were too many.
func (l *limiter[K]) take(key K, now time.Time) (at level, err error) {
	if l == nil {
		return at, nil
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byKey[key]
	if b == nil {
		b = l.addLocked(s, key, now)
	}
	used := b.usedAt(now)
	ok := used+l.interval <= l.depth
	if ok {
		used += l.interval
		b.set(used, now)
	}
	left := l.depth - used
	at = level{left: int(max(0, left) / l.interval), full: seconds(used), wait: max(seconds(l.interval-left), 1)}
	if ok {
		return at, nil
	}
	l.refused.Inc()
	return at, refuseWith(problem{
		Code: codeRateLimited, Detail: l.detail,
		retryAfter: at.wait, rateLimit: string(l.level(at)), ratePolicy: l.policy,
	})
}

// charge counts n further requests of key after one was let through: the intents of a
// batch beyond the first. They are not refused; later requests wait until they are back.
func (l *limiter[K]) charge(key K, n int, now time.Time) {
	if l == nil {
		return
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.byKey[key]
	if b == nil {
		b = &s.shared
	}
	b.set(b.usedAt(now)+time.Duration(n)*l.interval, now)
}

func (l *limiter[K]) shard(key K) *bucketShard[K] {
	return &l.shards[maphash.Comparable(l.seed, key)%bucketShards]
}

// addLocked returns a new bucket for key, or the shared one if there is no room.
func (l *limiter[K]) addLocked(s *bucketShard[K], key K, now time.Time) *bucket {
	pause := max(l.depth, time.Second)
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

func (l *limiter[K]) len() (n int) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.byKey)
		s.mu.Unlock()
	}
	return n
}

// setHeaders sets the fields of draft-ietf-httpapi-ratelimit-headers-10.
func (l *limiter[K]) setHeaders(fc *fasthttp.RequestCtx, at level) {
	if l == nil {
		return
	}
	h := &fc.Response.Header
	h.SetCanonical([]byte(headerRateLimitPolicy), []byte(l.policy))
	h.SetCanonical([]byte(headerRateLimit), l.level(at))
}

func (l *limiter[K]) level(at level) []byte {
	b := append(make([]byte, 0, 64), '"')
	b = append(b, l.name...)
	b = append(b, `";r=`...)
	b = strconv.AppendInt(b, int64(at.left), 10)
	b = append(b, ";t="...)
	return strconv.AppendInt(b, int64(at.full), 10)
}
