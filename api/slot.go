package api

import (
	"writ/admission"
	"writ/ledger"
)

// awaitSlot waits for a slot for a request whose credential was accepted. Requests
// without a credential need none: they are cheap and limited by address. Urgent ones,
// such as the kill switch, do not wait.
func (s *Server) awaitSlot(rt *route, r *request) error {
	if rt.scope == public || rt.scope == service || rt.is(urgent) {
		return nil
	}
	w := admission.Work{Org: r.who.org, Kind: admission.Managing}
	if rt.is(deciding) {
		w.Kind = admission.Deciding
		w.Costly = !s.cfg.Sets.Plain(r.who.org)
	}
	slot, verdict := s.gate.Enter(r.ctx, w)
	if verdict != admission.Admitted {
		return ledger.ErrOverloaded
	}
	r.slot = slot
	return nil
}
