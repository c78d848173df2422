package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// credential is whose requests are counted together.
type credential struct{ org, subject string }

// throttle holds the limits that are on.
type throttle struct {
	credential, evaluate *limiter[credential]
	changes              *limiter[string]
	address              *limiter[address]
	proxies              proxies
}

// limiter is one limit; nil if it is off.
type limiter[K comparable] struct {
	buckets *buckets[K]
	name    string
	policy  string // the value of RateLimit-Policy
	detail  string // what a refused caller is told
	refused prometheus.Counter
}

func newThrottle(l RateLimits, reg prometheus.Registerer) *throttle {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "writ_rate_limited_total", Help: "Requests refused with a 429, by the limit that they met.",
	}, []string{"limit"})
	reg.MustRegister(refused)
	return &throttle{
		credential: newLimiter[credential](l.Credential, "credential", "Too many requests with this credential.", refused, reg),
		evaluate:   newLimiter[credential](l.Evaluate, "evaluate", "Too many evaluations with this credential. Nothing was decided.", refused, reg),
		changes:    newLimiter[string](l.Changes, "changes", "This organization has changed too much in a short time. Nothing was changed; what stops or removes something is never limited.", refused, reg),
		address:    newLimiter[address](l.Address, "address", "Too many requests from this address without a credential known to be good.", refused, reg),
		proxies:    l.TrustedProxies,
	}
}

func newLimiter[K comparable](l RateLimit, name, detail string, refused *prometheus.CounterVec, reg prometheus.Registerer) *limiter[K] {
	lim := &limiter[K]{name: name, detail: detail, refused: refused.WithLabelValues(name)}
	tracked := func() float64 { return 0 }
	if l.on() {
		lim.buckets = newBuckets[K](l)
		lim.policy = `"` + name + `";q=` + strconv.Itoa(l.Burst) + ";w=" + strconv.Itoa(l.seconds(float64(l.Burst)))
		tracked = func() float64 { return float64(lim.buckets.len()) }
	}
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "writ_rate_limit_buckets", Help: "Token buckets kept, by limit.",
		ConstLabels: prometheus.Labels{"limit": name},
	}, tracked))
	if !l.on() {
		return nil
	}
	return lim
}

// take counts a request of key and says so in its answer. It returns the 429
// when there were too many.
func (l *limiter[K]) take(fc *fiber.Ctx, key K, now time.Time) error {
	if l == nil {
		return nil
	}
	at, ok := l.buckets.take(key, now)
	if !ok {
		return l.refuse(at)
	}
	l.tell(fc, at)
	return nil
}

// also counts a request that another limit has counted: only the refusal says so.
func (l *limiter[K]) also(key K, now time.Time) error {
	if l == nil {
		return nil
	}
	if at, ok := l.buckets.take(key, now); !ok {
		return l.refuse(at)
	}
	return nil
}

// more counts n further requests of key, one of whose was just let through: the
// intents of a batch beyond the first. They are not refused, and the next has to
// wait for them.
func (l *limiter[K]) more(key K, n int, now time.Time) {
	if l != nil {
		l.buckets.overdraw(key, n, now)
	}
}

func (l *limiter[K]) refuse(at level) error {
	l.refused.Inc()
	return refuse(problem{
		Status: http.StatusTooManyRequests, Code: codeRateLimited, Detail: l.detail,
		retryAfter: at.wait, rateLimit: string(l.level(at)), ratePolicy: l.policy,
	})
}

// tell sets the fields of draft-ietf-httpapi-ratelimit-headers-10.
func (l *limiter[K]) tell(fc *fiber.Ctx, at level) {
	h := &fc.Response().Header
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

// of returns the limit of a route that needs a credential.
func (t *throttle) of(rt *route) *limiter[credential] {
	if rt.scope == scopeEvaluate {
		return t.evaluate
	}
	return t.credential
}

// stranger counts a request without a credential.
func (t *throttle) stranger(fc *fiber.Ctx, now time.Time) error {
	if t.address == nil {
		return nil
	}
	return t.address.take(fc, addressOf(t.proxies.client(fc.Context())), now)
}

// introduce counts a request whose credential is not known to be good, and has
// ask find out. The answer speaks of the address only if the credential is not:
// a good one has a limit of its own.
func (t *throttle) introduce(fc *fiber.Ctx, now time.Time, ask func() error) error {
	if t.address == nil {
		return ask()
	}
	at, ok := t.address.buckets.take(addressOf(t.proxies.client(fc.Context())), now)
	if !ok {
		return t.address.refuse(at)
	}
	err := ask()
	if err != nil {
		t.address.tell(fc, at)
	}
	return err
}
