package hook

import (
	"context"
	"errors"
	"fmt"

	"writ/internal/toolcall"
	writ "writ/sdk/go"
)

// decide answers about a call that is about to be made.
func (h *Hook) decide(ctx context.Context, data []byte) (answer, error) {
	call, err := toolcall.Parse(h.Harness, data)
	if err != nil {
		return answer{}, err
	}
	if name := h.protected(call); name != "" {
		return denied("the call is about " + name + ", on which this hook rests"), nil
	}
	in, err := h.intent(call)
	if err != nil {
		return answer{}, err
	}
	st, err := openState(h.State, h.now())
	if err != nil {
		return answer{}, err
	}
	d, err := h.decision(ctx, st, call, in)
	var refused *writ.Denied
	var held *writ.Held
	switch {
	case errors.As(err, &refused):
		d = refused.Decision
	case errors.As(err, &held):
		d = held.Decision
	case err != nil:
		return answer{}, err
	}
	m := made{IssuedAt: d.Intent.IssuedAt, DecisionID: d.ID, Outcome: d.Outcome}
	if err := st.note(callName(call, h.plug.Key(call, "")), m); err != nil {
		return answer{}, err
	}
	return h.say(d), nil
}

// intent returns the intent of a call, without its time.
func (h *Hook) intent(call toolcall.Call) (writ.Intent, error) {
	in := writ.Intent{IntentID: call.IntentID(), PolicyID: h.PolicyID, AgentID: h.AgentID}
	intents, err := h.plug.Mapping.Intents(call, in)
	switch {
	case err != nil:
		return in, err
	case len(intents) > 1:
		return in, fmt.Errorf("--mapping: tools.%s.resources: a hook decides about one resource", call.Tool)
	}
	return intents[0], nil
}

// decision returns the allow for a call. Otherwise it returns an error of Plug.Decide.
func (h *Hook) decision(ctx context.Context, st state, call toolcall.Call, in writ.Intent) (writ.Decision, error) {
	key := h.plug.Key(call, "")
	var err error
	if in.IssuedAt, err = st.issuedAt(call, key, h.now()); err != nil {
		return writ.Decision{}, err
	}
	ds, err := h.plug.Decide(ctx, key, h.Held == HeldWait, in)
	if err != nil {
		return writ.Decision{}, err
	}
	return ds[0], nil
}

// record records a call that was made.
func (h *Hook) record(ctx context.Context, data []byte) (answer, error) {
	call, err := toolcall.ParseMade(h.Harness, data)
	if err != nil {
		return answer{}, err
	}
	st, err := openState(h.State, h.now())
	if err != nil {
		return answer{}, err
	}
	m, err := st.made(callName(call, h.plug.Key(call, "")))
	if err != nil {
		return answer{}, err
	}
	r := writ.Record{DecisionID: m.DecisionID, Outcome: writ.Executed}
	if call.Failed() {
		r.Outcome = writ.Failed
	}
	if m.Outcome != writ.Allow {
		r.ExternalRef = "allowed by the local user of " + string(h.Harness)
	}
	return answer{out: "{}\n"}, h.plug.Client.Record(ctx, r)
}
