package api

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ/api/limit"
	"writ/internal/telemetry"
)

// credential is the key of the limits by credential.
type credential struct{ org, subject string }

// throttle has the limits over time, nil where they are off.
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

// forRoute returns the limit by credential that a route counts for.
func (t *throttle) forRoute(rt *route) *limit.Limiter[credential] {
	if rt.scope == scopeEvaluate {
		return t.evaluate
	}
	return t.credential
}

// takeAddress counts a request without a good credential for its address.
func (t *throttle) takeAddress(fc *fasthttp.RequestCtx, now time.Time) (limit.Level, error) {
	if t.address == nil {
		return limit.Level{}, nil
	}
	return t.address.Take(limit.AddressOf(t.proxies.Client(fc)), now)
}

// enter counts a connection for its address, so that none takes all connections of the
// server. Those of trusted proxies are their callers'.
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

// RateLimits say how many requests are answered before one is refused with a 429. Zero limits
// are off.
type RateLimits struct {
	// Credential is for the requests of one API key or operator, except
	// evaluations.
	Credential limit.Rate
	// Evaluate is for the evaluations of one API key or operator.
	Evaluate limit.Rate
	// Changes is for the documents that an organization makes or changes, by any credential:
	// new policies, rules, keys and agents, changed rules, enabled agents. Each leaves an
	// entry in the history for good. Deleting, revoking and disabling are never refused: each
	// undoes one of these, once.
	Changes limit.Rate
	// Address is for the requests of one address that come without a credential
	// known to be good: public documents, unknown paths, refused credentials, and
	// the first use of a good one. An IPv6 address stands for its /64.
	//
	// An address that has used it up can still use the credentials that this
	// process has accepted before. So whoever shares it is not locked out by
	// another's guesses, and guesses neither reach the store nor verify a
	// signature.
	Address limit.Rate
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
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
