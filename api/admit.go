package api

import (
	"github.com/valyala/fasthttp"

	"writ.example/writ/decision/admission"
)

// admit sets the principal of a request, or returns the error that refuses the request. It looks
// for the credential in the cache of accepted credentials first. A request with a cached credential
// does not count for its address. [RateLimits] says which limit counts which requests.
func (s *Server) admit(fc *fasthttp.RequestCtx, rt *route, r *request) error {
	leaked := carriesCredential(fc, rt.param != "")
	if leaked {
		s.auth.failures.count(failedURL)
	}
	if (leaked || rt.scope == public) && !rt.is(unlimited) {
		if err := s.admitStranger(fc, r); err != nil {
			return err
		}
	}
	if leaked {
		return refuseURL(fc, rt.scope != public)
	}
	if rt.scope == public {
		return nil
	}
	h := &fc.Request.Header
	var known bool
	if r.who, known = s.auth.recognize(h, rt.scope, r.now); !known {
		at, err := s.throttle.takeAddress(fc, r.now)
		if err != nil {
			return err
		}
		if r.who, err = s.auth.authenticate(r.ctx, h, rt.scope, r.now); err != nil {
			s.throttle.address.SetHeaders(&fc.Response.Header, at) // an accepted credential has a limit of its own
			return err
		}
	}
	most := s.throttle.forRoute(rt)
	at, err := most.Take(credential{r.who.org, r.who.subject}, r.now)
	if err != nil {
		return err
	}
	most.SetHeaders(&fc.Response.Header, at)
	if rt.is(owned) {
		return nil
	}
	if err := s.auth.permit(&r.who, rt.scope); err != nil {
		return err
	}
	if rt.is(wide) && r.who.agents != nil {
		return s.auth.tooWide(&r.who)
	}
	if !rt.is(stored) {
		return nil
	}
	_, err = s.throttle.changes.Take(r.who.org, r.now)
	return err
}

// admitStranger counts a request without a credential for the request's address.
func (s *Server) admitStranger(fc *fasthttp.RequestCtx, r *request) error {
	at, err := s.throttle.takeAddress(fc, r.now)
	if err == nil {
		s.throttle.address.SetHeaders(&fc.Response.Header, at)
	}
	return err
}

// awaitSlot waits until the gate has a slot for a request whose credential was accepted. Requests
// without a credential need no slot: they are cheap and limited by address. Urgent requests, such
// as the kill switch, do not wait.
func (s *Server) awaitSlot(rt *route, r *request) (err error) {
	if rt.scope == public || rt.scope == service || rt.is(urgent) {
		return nil
	}
	kind := admission.Managing
	if rt.is(deciding) {
		kind = admission.Deciding
	}
	r.slot, err = s.decisions.Enter(r.ctx, r.who.org, kind)
	return err
}
