package api

import "github.com/valyala/fasthttp"

// admit sets the principal of a request and lets it through, or returns why not. A
// credential that is known to be good is looked up first and does not count for its
// address; [RateLimits] says what counts for which limit.
func (s *Server) admit(fc *fasthttp.RequestCtx, rt *route, r *request) error {
	if carriesCredential(fc, rt.param != "") {
		s.auth.failures.url.Inc()
		if !rt.is(unlimited) {
			if err := s.throttle.takeAddress(fc, r.now); err != nil {
				return err
			}
		}
		return refuseURL(fc, rt.scope != public)
	}
	if rt.scope == public {
		if rt.is(unlimited) {
			return nil
		}
		return s.throttle.takeAddress(fc, r.now)
	}
	h := &fc.Request.Header
	var known bool
	if r.who, known = s.auth.recognize(h, rt.scope, r.now); !known {
		if err := s.throttle.takeUnknown(fc, r.now, func() (err error) {
			r.who, err = s.auth.authenticate(r.ctx, h, rt.scope, r.now)
			return err
		}); err != nil {
			return err
		}
	}
	if err := s.throttle.forRoute(rt).take(fc, credential{r.who.org, r.who.subject}, r.now); err != nil {
		return err
	}
	if rt.is(owned) {
		return nil
	}
	if err := s.auth.permit(&r.who, rt.scope); err != nil || !rt.is(stored) {
		return err
	}
	return s.throttle.changes.takeQuietly(r.who.org, r.now)
}

// admitUnrouted is admit for a request that no route takes.
func (s *Server) admitUnrouted(fc *fasthttp.RequestCtx) error {
	if err := s.throttle.takeAddress(fc, s.cfg.Now()); err != nil {
		return err
	}
	if carriesCredential(fc, true) {
		s.auth.failures.url.Inc()
		return refuseURL(fc, false)
	}
	return nil
}
