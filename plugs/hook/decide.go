package hook

import (
	"context"
	"errors"
	"net/http"

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
	if err := st.note(callName(call, h.key(call)), m); err != nil {
		return answer{}, err
	}
	return h.say(d), nil
}

// intent returns the intent of a call, without its time.
func (h *Hook) intent(call toolcall.Call) (writ.Intent, error) {
	resource, err := call.Resource()
	if err != nil {
		return writ.Intent{}, err
	}
	facts, err := call.Facts()
	if err != nil {
		return writ.Intent{}, err
	}
	in := writ.Intent{
		IntentID: call.IntentID(), ActionType: call.ActionType(), Resource: resource, Metadata: facts,
		PolicyID: h.PolicyID, AgentID: h.AgentID,
	}
	return in, h.mapping.apply(call, &in)
}

// decision returns the allow for a call. Otherwise it returns an error of Client.Require.
func (h *Hook) decision(ctx context.Context, st state, call toolcall.Call, in writ.Intent) (writ.Decision, error) {
	key := h.key(call)
	held, err := st.held(key)
	if err != nil {
		return writ.Decision{}, err
	}
	if held != nil {
		d, err := h.heldBefore(ctx, st, key, held, in.IntentID)
		if !errors.Is(err, errAskAfresh) {
			return d, err
		}
	}
	if in.IssuedAt, err = st.issuedAt(call, key, h.now()); err != nil {
		return writ.Decision{}, err
	}
	d, err := h.client.Require(ctx, in)
	if !errors.As(err, &held) {
		return d, err
	}
	if err := st.keep(key, held); err != nil {
		return writ.Decision{}, err
	}
	return h.await(ctx, st, key, held)
}

// errAskAfresh means that nothing can come of an approval.
var errAskAfresh = errors.New("the approval has ended")

// heldBefore decides a call that was held before.
func (h *Hook) heldBefore(
	ctx context.Context, st state, key string, held *writ.Held, intentID string,
) (writ.Decision, error) {
	a, err := h.client.Approval(ctx, held.Decision.ID, 0)
	var p *writ.Problem
	switch {
	case errors.As(err, &p) && p.Status == http.StatusNotFound:
		return writ.Decision{}, errors.Join(errAskAfresh, st.drop(key))
	case err != nil:
		return writ.Decision{}, err
	case a.Status == writ.Pending:
		return h.await(ctx, st, key, held)
	case a.Status == "approved" || a.Status == "rejected" || held.Decision.Intent.IntentID == intentID:
		return h.redeem(ctx, st, key)
	}
	if err := st.drop(key); err != nil {
		return writ.Decision{}, err
	}
	return writ.Decision{}, errAskAfresh
}

// await waits for the verdict about a held call, if the hook is to wait.
func (h *Hook) await(ctx context.Context, st state, key string, held *writ.Held) (writ.Decision, error) {
	if h.Held != HeldWait {
		return writ.Decision{}, held
	}
	a, err := h.client.Verdict(ctx, held.Decision.ID, h.Wait)
	switch {
	case err != nil:
		return writ.Decision{}, err
	case a.Status == writ.Pending:
		return writ.Decision{}, held
	}
	return h.redeem(ctx, st, key)
}

// redeem uses an approval. The file of the held call is taken first, so one process does.
func (h *Hook) redeem(ctx context.Context, st state, key string) (writ.Decision, error) {
	held, taken, err := st.take(key)
	if err != nil {
		return writ.Decision{}, err
	}
	d, err := h.client.Redeem(ctx, held)
	var refused *writ.Denied
	var again *writ.Held
	switch {
	case errors.As(err, &again):
		err = errors.Join(err, st.keep(key, again), taken.remove())
	case err == nil, errors.As(err, &refused), errors.Is(err, writ.ErrAlreadyRedeemed):
		if gone := taken.remove(); gone != nil {
			return writ.Decision{}, gone
		}
	default:
		// The approval may be unused. If it was used after all, its redemption comes back as replayed
		// and runs nothing.
		err = errors.Join(err, taken.putBack())
	}
	return d, err
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
	m, err := st.made(callName(call, h.key(call)))
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
	return answer{out: "{}\n"}, h.client.Record(ctx, r)
}
