package api

import "github.com/gofiber/fiber/v2"

// admit tells whom a request acts for and lets it through, or says why not. A
// credential that was accepted before is asked first and costs its address
// nothing; see [RateLimits] for who else pays what.
func (s *Server) admit(fc *fiber.Ctx, rt *route, r *request) error {
	if rt.scope == public {
		if rt.unlimited {
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
	return s.auth.permit(&r.who, rt.scope)
}
