package api

import "github.com/gofiber/fiber/v2"

// admit tells whom a request acts for and lets it through, or says why not. A
// credential that was accepted before is asked first and costs its address
// nothing; see [RateLimits] for who else pays what.
func (s *Server) admit(fc *fiber.Ctx, rt *route, r *request) error {
	if carriesCredential(fc, rt.param != "") {
		s.auth.failures.url.Inc()
		if !rt.is(unlimited) {
			if err := s.throttle.stranger(fc, r.now); err != nil {
				return err
			}
		}
		return refuseURL(fc, rt.scope != public)
	}
	if rt.scope == public {
		if rt.is(unlimited) {
			return nil
		}
		return s.throttle.stranger(fc, r.now)
	}
	h := &fc.Request().Header
	var known bool
	if r.who, known = s.auth.recognize(h, rt.scope, r.now); !known {
		if err := s.throttle.introduce(fc, r.now, func() (err error) {
			r.who, err = s.auth.authenticate(r.ctx, h, rt.scope, r.now)
			return err
		}); err != nil {
			return err
		}
	}
	if err := s.throttle.of(rt).take(fc, credential{r.who.org, r.who.subject}, r.now); err != nil {
		return err
	}
	if rt.is(owned) {
		return nil
	}
	if err := s.auth.permit(&r.who, rt.scope); err != nil || !rt.is(stored) {
		return err
	}
	return s.throttle.changes.also(r.who.org, r.now)
}

// admitUnrouted is admit of a request that no route takes.
func (s *Server) admitUnrouted(fc *fiber.Ctx) error {
	if err := s.throttle.stranger(fc, s.cfg.Now()); err != nil {
		return err
	}
	if carriesCredential(fc, true) {
		s.auth.failures.url.Inc()
		return refuseURL(fc, false)
	}
	return nil
}
