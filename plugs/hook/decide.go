package hook

import (
	"context"
	"errors"

	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
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
	st, err := openState(h.State, h.now())
	if err != nil {
		return answer{}, err
	}
	if h.Sources {
		if err := h.stateSources(st, &call); err != nil {
			return answer{}, err
		}
	}
	in := writ.Intent{IntentID: call.IntentID(), PolicyID: h.PolicyID, AgentID: h.AgentID}
	intents, err := h.plug.Mapping.Intents(call, in)
	if err != nil {
		return answer{}, err
	}
	ds, err := h.decisions(ctx, st, call, intents)
	var refused *writ.Denied
	var held *writ.Held
	switch {
	case errors.As(err, &refused):
		ds = []writ.Decision{refused.Decision}
	case errors.As(err, &held):
		ds = []writ.Decision{held.Decision}
	case err != nil:
		return answer{}, err
	}
	m := made{IssuedAt: ds[len(ds)-1].Intent.IssuedAt, Outcome: ds[0].Outcome} // what was held comes last
	for _, d := range ds {
		m.DecisionIDs = append(m.DecisionIDs, d.ID)
	}
	if err := st.note(callName(call, h.plug.Key(call, "")), m); err != nil {
		return answer{}, err
	}
	return h.say(ds[0]), nil
}

// decisions returns the allows for a call. Otherwise it returns an error of Plug.Decide.
func (h *Hook) decisions(
	ctx context.Context, st state, call toolcall.Call, intents []writ.Intent,
) ([]writ.Decision, error) {
	at, err := st.issuedAt(call, h.plug.Key(call, ""), h.now())
	if err != nil {
		return nil, err
	}
	session, err := h.session(ctx, st, call)
	if err != nil {
		return nil, err
	}
	for i := range intents {
		intents[i].IssuedAt, intents[i].SessionID = at, session
	}
	return h.plug.Decide(ctx, h.plug.Key(call, session), h.Held == HeldWait, intents...)
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
	r := writ.Record{Outcome: writ.Executed}
	if call.Failed() {
		r.Outcome = writ.Failed
	}
	if m.Outcome != writ.Allow {
		r.ExternalRef = "allowed by the local user of " + string(h.Harness)
	}
	for _, r.DecisionID = range m.DecisionIDs {
		if err := h.plug.Client.Record(ctx, r); err != nil {
			return answer{}, err
		}
	}
	return answer{out: "{}\n"}, nil
}
