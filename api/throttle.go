package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ/telemetry"
)

const (
	headerRateLimit       = "RateLimit"
	headerRateLimitPolicy = "RateLimit-Policy"
)

// credential is the key of the limits by credential.
type credential struct{ org, subject string }

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
	detail  string // of the 429
	refused prometheus.Counter
}

func newThrottle(l RateLimits, reg prometheus.Registerer) *throttle {
	refused := telemetry.CounterVec("writ_rate_limited_total", "Requests refused with a 429, by the limit that they met.", "limit")
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

// take counts a request of key and sets the headers of the limit. It returns the 429 if
// there were too many.
func (l *limiter[K]) take(fc *fasthttp.RequestCtx, key K, now time.Time) error {
	if l == nil {
		return nil
	}
	at, ok := l.buckets.take(key, now)
	if !ok {
		return l.refuse(at)
	}
	l.setHeaders(fc, at)
	return nil
}

// takeQuietly is take for a second limit of a request, whose headers are those of the
// first unless this one refuses.
func (l *limiter[K]) takeQuietly(key K, now time.Time) error {
	if l == nil {
		return nil
	}
	if at, ok := l.buckets.take(key, now); !ok {
		return l.refuse(at)
	}
	return nil
}

// charge counts n further requests of key after one was let through: the intents of a
// batch beyond the first. They are not refused; later requests wait for them.
func (l *limiter[K]) charge(key K, n int, now time.Time) {
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

// setHeaders sets the fields of draft-ietf-httpapi-ratelimit-headers-10.
func (l *limiter[K]) setHeaders(fc *fasthttp.RequestCtx, at level) {
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

// forRoute returns the limit by credential that a route counts for.
func (t *throttle) forRoute(rt *route) *limiter[credential] {
	if rt.scope == scopeEvaluate {
		return t.evaluate
	}
	return t.credential
}

// takeAddress counts a request without a credential for its address.
func (t *throttle) takeAddress(fc *fasthttp.RequestCtx, now time.Time) error {
	if t.address == nil {
		return nil
	}
	return t.address.take(fc, addressOf(t.proxies.client(fc)), now)
}

// takeUnknown counts a request with an unknown credential for its address, and calls
// authenticate. The response has the headers of the address only if that fails: a good
// credential has a limit of its own.
func (t *throttle) takeUnknown(fc *fasthttp.RequestCtx, now time.Time, authenticate func() error) error {
	if t.address == nil {
		return authenticate()
	}
	at, ok := t.address.buckets.take(addressOf(t.proxies.client(fc)), now)
	if !ok {
		return t.address.refuse(at)
	}
	err := authenticate()
	if err != nil {
		t.address.setHeaders(fc, at)
	}
	return err
}
