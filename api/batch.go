package api

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

const batchPath = "/v1/policy/evaluate/batch"

// batchBody is the body of a batch. Its intents are decoded one by one, so that each intent gets
// its own list of mistakes.
type batchBody struct {
	PolicyID  string           `json:"policy_id"`  // for intents that name no policy
	SessionID *string          `json:"session_id"` // for all intents
	Mode      string           `json:"mode"`
	Intents   []jsontext.Value `json:"intents"`
	// Approvals maps the id of an intent to the id of the decision that held it. Such an intent is decided under the
	// approval of that decision.
	Approvals map[string]string `json:"approvals,omitzero"`

	plain []*evaluateBody // plain has the intents if the fast path of decodeBatch read the body; Intents is then empty
}

func (in *batchBody) size() int { return max(len(in.Intents), len(in.plain)) }

// The modes of a batch.
const (
	modeEach = "each" // every intent is decided by itself
	modeAll  = "all"  // all intents are allowed, or none is
)

// checkBatch reports every mistake of a batch except those in its intents.
func checkBatch(_ *request, in *batchBody) error {
	var bad fieldErrors
	in.PolicyID = strings.ToLower(in.PolicyID)
	if in.PolicyID != "" {
		bad.uuid("policy_id", in.PolicyID)
	}
	bad.session(in.SessionID)
	if in.Mode != modeEach && in.Mode != modeAll {
		bad.add("mode", `is required: want "each", or "all" where the intents are allowed all or none`)
	}
	if n := in.size(); n < 1 || n > maxBatch {
		bad.add("intents", fmt.Sprintf("want 1 to %d intents, have %d", maxBatch, n))
	}
	approvals := make(map[string]string, len(in.Approvals))
	for _, intent := range slices.Sorted(maps.Keys(in.Approvals)) {
		id := strings.ToLower(in.Approvals[intent])
		bad.uuid(approvalField(intent), id)
		approvals[strings.ToLower(intent)] = id
	}
	in.Approvals = approvals
	return bad.err()
}

// evaluateBatch decides several intents in one commit.
func (s *Server) evaluateBatch(r *request, in *batchBody) error {
	if err := checkBatch(r, in); err != nil {
		return err
	}
	s.throttle.evaluate.Charge(credential{r.who.org, r.who.subject}, in.size()-1, r.now)
	intents, errs := make([]*engine.Intent, in.size()), make([]error, in.size())
	for i := range intents {
		intents[i], errs[i] = s.readIntent(r, in, i)
		r.slot.Yield()
	}
	if err := in.checkApprovals(intents); err != nil {
		return err
	}
	if in.Mode == modeAll {
		return s.evaluateAll(r, intents, errs, in.Approvals)
	}
	return s.evaluateEach(r, intents, errs, in.Approvals)
}

func approvalField(intentID string) string { return "approvals." + printable(intentID) }

// checkApprovals refuses an entry of Approvals whose intent is not in the batch.
func (in *batchBody) checkApprovals(intents []*engine.Intent) error {
	var bad fieldErrors
	for _, id := range slices.Sorted(maps.Keys(in.Approvals)) {
		if !slices.ContainsFunc(intents, func(in *engine.Intent) bool { return in == nil || in.IntentID == id }) {
			bad.add(approvalField(id), "is of no intent of the batch")
		}
	}
	return bad.err()
}

func intentField(i int) string { return fmt.Sprintf("intents[%d]", i) }

// readIntent reads and checks intent i of a batch. An intent without a policy gets the policy of
// the batch. If the batch has no policy, the intent gets the policy of the API key.
func (s *Server) readIntent(r *request, batch *batchBody, i int) (*engine.Intent, error) {
	var in *evaluateBody
	if batch.plain != nil {
		in = batch.plain[i]
	} else {
		in = new(evaluateBody)
	}
	in.PolicyID, in.SessionID = batch.PolicyID, batch.SessionID
	check := func() error {
		if in.Intent.PolicyID == "" {
			in.Intent.PolicyID = cmp.Or(batch.PolicyID, r.who.policy)
		}
		if batch.PolicyID == "" {
			in.PolicyID = in.Intent.PolicyID
		}
		if err := s.checkEvaluate(r, in); err != nil {
			return within(intentField(i), err)
		}
		return nil
	}
	if batch.plain == nil {
		if err := decodeIntent(batch.Intents[i], intentField(i), in, check); err != nil {
			return nil, err
		}
	}
	if err := check(); err != nil {
		return nil, err
	}
	return in.Intent, s.auth.actFor(&r.who, in.Intent.AgentID)
}

// within prefixes the field names in err with field. err is about one intent.
func within(field string, err error) error {
	var bad *engine.InvalidError
	if !errors.As(err, &bad) {
		return err
	}
	fields := make([]engine.FieldError, 0, len(bad.Fields))
	for _, f := range bad.Fields {
		if rest, ok := strings.CutPrefix(f.Field, "intent"); ok {
			fields = append(fields, engine.FieldError{Field: field + rest, Message: f.Message})
		}
	}
	return &engine.InvalidError{Fields: fields}
}

// evaluateAll allows all intents or none. A mistake in one intent therefore refuses the whole
// request.
func (s *Server) evaluateAll(
	r *request, intents []*engine.Intent, errs []error, approvals map[string]string,
) error {
	var bad fieldErrors
	seen := make(map[string]int, len(intents))
	requests := make([]decision.Request, len(intents))
	for i, in := range intents {
		var fields *engine.InvalidError
		switch {
		case errors.As(errs[i], &fields):
			bad.merge(fields)
			continue
		case errs[i] != nil:
			return errs[i]
		}
		if first, twice := seen[in.IntentID]; twice {
			bad.add(intentField(i)+".intent_id", "is that of "+intentField(first)+
				", too: in a batch of all each intent needs one of its own")
			continue
		}
		seen[in.IntentID] = i
		requests[i] = decision.Request{Intent: in, ApprovalID: approvals[in.IntentID]}
	}
	if err := bad.err(); err != nil {
		return err
	}
	outs, err := s.decisions.DecideAll(r.ctx, r.caller(), requests)
	if err != nil {
		return aboutItem(err)
	}
	return s.answers(r, outs)
}

// aboutItem turns the error of one intent into a problem of the whole request. The problem names
// the intent.
func aboutItem(err error) error {
	var item *decision.ItemError
	if !errors.As(err, &item) {
		return err
	}
	p := problemOf(aboutDecision(item.Err))
	if p.Status < http.StatusInternalServerError {
		p.Detail = intentField(item.Index) + ": " + p.Detail
		return refuseWith(*p)
	}
	return item.Err
}

// evaluateEach decides each intent by itself. If the service failed for all intents, for example
// because of an overload, that error is the answer to the whole request.
func (s *Server) evaluateEach(
	r *request, intents []*engine.Intent, errs []error, approvals map[string]string,
) error {
	requests := make([]decision.Request, len(intents))
	for i, in := range intents {
		if errs[i] == nil {
			requests[i] = decision.Request{Intent: in, ApprovalID: approvals[in.IntentID]}
		}
	}
	outs, err := s.decideEach(r, requests, errs)
	if err != nil {
		return err
	}
	return s.answers(r, outs)
}

// decideEach decides the requests that have no error. If the service failed for all of them, it returns that error.
func (s *Server) decideEach(r *request, all []decision.Request, errs []error) ([]ledger.Outcome, error) {
	outs := s.outcomes(r, all, errs)
	answered := func(out ledger.Outcome) bool {
		return out.Err == nil || problemOf(out.Err).Status < http.StatusInternalServerError
	}
	if !slices.ContainsFunc(outs, answered) {
		return nil, outs[0].Err
	}
	return outs, nil
}

// outcomes decides the requests that have no error. The errors of the others are their outcomes.
func (s *Server) outcomes(r *request, all []decision.Request, errs []error) []ledger.Outcome {
	outs := make([]ledger.Outcome, len(all))
	requests, at := make([]decision.Request, 0, len(all)), make([]int, 0, len(all))
	for i := range all {
		if outs[i].Err = errs[i]; errs[i] == nil {
			requests, at = append(requests, all[i]), append(at, i)
		}
	}
	decided := s.decisions.Decide(r.ctx, r.caller(), requests)
	for n, out := range decided {
		outs[at[n]] = out
		outs[at[n]].Err = aboutDecision(out.Err)
	}
	return outs
}

// batchAnswer is the body of a batch's answer. It has one item for each intent, in order: a result,
// or a problem if there is no decision.
type batchAnswer []batchItem

type batchItem struct {
	record  *storage.Record
	problem []byte
}

// answers sends the answer to a batch. It marks the answer as a replay if all results are replays.
func (s *Server) answers(r *request, outs []ledger.Outcome) error {
	body := make(batchAnswer, len(outs))
	r.res.replayed = true
	for i, out := range outs {
		if out.Err != nil {
			_, body[i].problem = s.itemProblem(r, http.MethodPost, batchPath, out.Err)
			r.res.replayed = false
			continue
		}
		body[i].record = out.Record
		r.res.replayed = r.res.replayed && out.Replayed
		r.res.expired = r.res.expired || expired(r, out)
	}
	return r.ok(body)
}

// itemProblem counts the problem of one intent, logs it if operators must know of it, and returns it with its JSON.
func (s *Server) itemProblem(r *request, method, path string, err error) (*problem, []byte) {
	p := problemOf(err)
	s.metrics.problems.WithLabelValues(p.Code).Inc()
	if p.logged {
		s.refused.add(refused{requestID: r.id, route: method + " " + path, problem: p, err: err})
	}
	return p, p.encode(path, string(r.id))
}

// appendJSON implements appender.
func (b batchAnswer) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"results":[`...)
	for i := range b {
		if i > 0 {
			dst = append(dst, ',')
		}
		if b[i].record != nil {
			dst = (*evaluation)(b[i].record).appendJSON(dst)
		} else {
			dst = append(dst, b[i].problem...)
		}
	}
	return append(dst, `]}`...)
}
