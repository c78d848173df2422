package plug

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	writ "writ.example/writ/sdk/go"
)

// Decide returns the decisions about a call if it may run. Otherwise it returns a [writ.Denied], a
// [writ.Held] or the reason why there is no decision. A call of several intents is allowed as a whole or
// not at all. key is the call's: a call that is held is kept under it, and an approval of it is redeemed
// when the same call comes again. With wait, a held call waits for its verdict.
func (p *Plug) Decide(ctx context.Context, key string, wait bool, intents ...writ.Intent) ([]writ.Decision, error) {
	st, err := OpenState(p.settings.State, time.Now())
	if err != nil {
		return nil, err
	}
	k, err := st.held(key)
	if err != nil {
		return nil, err
	}
	if k != nil {
		ds, err := p.again(ctx, st, key, wait, k, intents)
		if !errors.Is(err, errAskAfresh) {
			return ds, err
		}
	}
	k, ds, err := p.ask(ctx, intents)
	if k == nil {
		return ds, err
	}
	if err := st.keep(key, k); err != nil {
		return nil, err
	}
	if !wait {
		return nil, k.Held[0]
	}
	return p.await(ctx, st, key, k)
}

// refused begins the reason of an intent that would be allowed without the others of its batch.
const refused = "batch.refused:"

// ask asks about the intents of a call. If it is held, ask returns what there is to keep of it.
func (p *Plug) ask(ctx context.Context, intents []writ.Intent) (*kept, []writ.Decision, error) {
	if len(intents) == 1 {
		d, err := p.Client.Require(ctx, intents[0])
		var held *writ.Held
		if errors.As(err, &held) {
			return &kept{Held: []*writ.Held{held}}, nil, err
		}
		return nil, []writ.Decision{d}, err
	}
	results, err := p.Client.EvaluateAll(ctx, true, intents...)
	if err != nil {
		return nil, nil, err
	}
	var k kept
	var ds []writ.Decision
	for _, r := range results {
		var held *writ.Held
		err := r.Err
		if err == nil {
			err = r.Decision.Err()
		}
		alone := func(reason string) bool { return !strings.HasPrefix(reason, refused) }
		switch {
		case err == nil:
			ds = append(ds, r.Decision)
		case errors.As(err, &held):
			k.Held = append(k.Held, held)
		case r.Err != nil || slices.ContainsFunc(r.Decision.Reasons, alone) || len(r.Decision.Reasons) == 0:
			return nil, nil, err
		default:
			k.Others = append(k.Others, r.Decision.Intent)
		}
	}
	switch {
	case len(ds) == len(intents):
		return nil, ds, nil
	case len(k.Held) == 0 || len(ds) > 0:
		return nil, nil, writ.ErrAnswer
	}
	return &k, nil, k.Held[0]
}

// errAskAfresh means that nothing can come of an approval.
var errAskAfresh = errors.New("the approval has ended")

// notOurs are the statuses of an approval that is gone, or for which another key asked.
var notOurs = []int{http.StatusNotFound, http.StatusForbidden}

// again decides a call that was held before.
func (p *Plug) again(
	ctx context.Context, st State, key string, wait bool, k *kept, intents []writ.Intent,
) ([]writ.Decision, error) {
	for _, held := range k.Held {
		a, err := p.Client.Approval(ctx, held.Decision.ID, 0)
		var problem *writ.Problem
		switch {
		case errors.As(err, &problem) && slices.Contains(notOurs, problem.Status):
			return nil, errors.Join(errAskAfresh, st.drop(key))
		case err != nil:
			return nil, err
		case a.Status == writ.Pending && wait:
			return p.await(ctx, st, key, k)
		case a.Status == writ.Pending:
			return nil, held
		case a.Status == "approved":
		case a.Status == "rejected" || slices.ContainsFunc(intents, func(in writ.Intent) bool {
			return in.IntentID != "" && in.IntentID == held.Decision.Intent.IntentID
		}):
			// The redemption says why it is denied.
		default:
			return nil, errors.Join(errAskAfresh, st.drop(key))
		}
	}
	return p.redeem(ctx, st, key)
}

// await waits for the verdicts about a held call.
func (p *Plug) await(ctx context.Context, st State, key string, k *kept) ([]writ.Decision, error) {
	end := time.Now().Add(p.settings.Wait)
	for _, held := range k.Held {
		a, err := p.Client.Verdict(ctx, held.Decision.ID, time.Until(end))
		switch {
		case err != nil:
			return nil, err
		case a.Status == writ.Pending:
			return nil, held
		}
	}
	return p.redeem(ctx, st, key)
}

// redeem uses the approvals of a held call. Its file is taken first, so one process does.
func (p *Plug) redeem(ctx context.Context, st State, key string) ([]writ.Decision, error) {
	k, taken, err := st.take(key)
	if err != nil {
		return nil, err
	}
	// The intents that were not held are decided anew: as denied with the batch, they stay so.
	for i := range k.Others {
		k.Others[i].IntentID, k.Others[i].IssuedAt = uuid.NewString(), ""
	}
	var ds []writ.Decision
	if len(k.Others) > 0 {
		var more *kept
		switch more, ds, err = p.ask(ctx, k.Others); {
		case more != nil: // something new wants an approval
			return nil, errors.Join(errAskAfresh, taken.remove())
		case err != nil:
			return nil, errors.Join(err, taken.putBack())
		}
	}
	for i, held := range k.Held {
		d, err := p.Client.Redeem(ctx, held)
		if err == nil {
			ds = append(ds, d)
			continue
		}
		var denied *writ.Denied
		var again *writ.Held
		switch {
		case errors.As(err, &again) && len(k.Held)+len(k.Others) == 1:
			return nil, errors.Join(err, st.keep(key, &kept{Held: []*writ.Held{again}}), taken.remove())
		case errors.As(err, &again), errors.As(err, &denied), errors.Is(err, writ.ErrAlreadyRedeemed), i > 0:
			return nil, errors.Join(err, taken.remove())
		default:
			// The approval may be unused. If it was used after all, its redemption comes back as replayed
			// and runs nothing.
			return nil, errors.Join(err, taken.putBack())
		}
	}
	return ds, taken.remove()
}
