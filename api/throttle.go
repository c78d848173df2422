package api

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/limit"
	"writ.example/writ/internal/telemetry"
)

// credential is the key by which limits count the requests of a credential.
type credential struct{ org, subject string }

// throttle has the limits over time.
type throttle struct {
	credential, evaluate *limit.Limiter[credential]
	changes              *limit.Limiter[string]
	address              *limit.Limiter[limit.Address]
	proxies              limit.Proxies
}

func newThrottle(l RateLimits, reg prometheus.Registerer) *throttle {
	refused := telemetry.CounterVec("writ_rate_limited_total",
		"Requests refused with a 429, by the limit that they met.", "limit")
	reg.MustRegister(refused)
	return &throttle{
		credential: limit.NewLimiter[credential](l.Credential, "credential", "Too many requests with this credential.",
			refused, reg),
		evaluate: limit.NewLimiter[credential](l.Evaluate, "evaluate",
			"Too many evaluations with this credential. Nothing was decided.", refused, reg),
		changes: limit.NewLimiter[string](l.Changes, "changes",
			"This organization has changed too much in a short time. Nothing was changed; what stops or removes "+
				"something is never limited.", refused, reg),
		address: limit.NewLimiter[limit.Address](l.Address, "address",
			"Too many requests from this address without a credential known to be good.", refused, reg),
		proxies: l.TrustedProxies,
	}
}

// SetRateLimits puts other limits in force. The trusted proxies stay.
func (s *Server) SetRateLimits(l RateLimits) error {
	if err := l.check(); err != nil {
		return err
	}
	s.throttle.credential.Set(l.Credential)
	s.throttle.evaluate.Set(l.Evaluate)
	s.throttle.changes.Set(l.Changes)
	s.throttle.address.Set(l.Address)
	return nil
}

// forRoute returns the limit by credential for the requests of a route.
func (t *throttle) forRoute(rt *route) *limit.Limiter[credential] {
	if rt.scope == scopeEvaluate {
		return t.evaluate
	}
	return t.credential
}

// takeAddress counts a request for its address. The request has no good credential.
func (t *throttle) takeAddress(fc *fasthttp.RequestCtx, now time.Time) (limit.Level, error) {
	return t.address.Take(limit.AddressOf(t.proxies.Client(fc)), now)
}

// enter counts a connection for its address, so that no address takes all connections of the server. It does not count
// the connections of trusted proxies, because they carry requests of many callers.
func (s *Server) enter(c net.Conn) (leave func(), ok bool) {
	at := limit.Peer(c.RemoteAddr())
	if s.throttle.proxies.Trust(at) {
		return func() {}, true
	}
	if leave, ok = s.connections.Begin(limit.AddressOf(at)); !ok {
		s.metrics.turnedAway.Inc()
	}
	return leave, ok
}

// RateLimits say how many requests are answered before one is refused with a 429. A limit that is zero is off.
type RateLimits struct {
	// Credential limits the requests of one API key or operator, except evaluations.
	Credential limit.Rate
	// Evaluate limits the evaluations of one API key or operator.
	Evaluate limit.Rate
	// Changes limits the documents that an organization makes or changes, with all its credentials together. It counts
	// new policies, rules, keys and agents, changed rules and enabled agents. Each of these leaves an entry in the
	// history forever. Deleting, revoking and disabling are never refused, because each of them undoes one of these
	// changes, once.
	Changes limit.Rate
	// Address limits the requests of one address that have no credential known to be good. These are requests for
	// public documents or unknown paths, requests with a refused credential, and the first use of a good credential. An
	// IPv6 address stands for its /64.
	//
	// When an address has used up this limit, it can still use credentials that this process has accepted before. So if
	// somebody guesses credentials, others at the same address are not locked out. The guesses neither reach the store
	// nor verify a signature.
	Address limit.Rate
	// TrustedProxies are the networks whose X-Forwarded-For header is believed.
	TrustedProxies []netip.Prefix
}

func (l RateLimits) check() error {
	for _, of := range []struct {
		name string
		rate limit.Rate
	}{{"credential", l.Credential}, {"evaluate", l.Evaluate}, {"changes", l.Changes}, {"address", l.Address}} {
		if err := of.rate.Check(); err != nil {
			return fmt.Errorf("rate limit of %s: %w", of.name, err)
		}
	}
	return nil
}
