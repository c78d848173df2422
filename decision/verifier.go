package decision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"writ/engine"
	"writ/engine/condition"
	"writ/internal/telemetry"
)

// verifier has decisions of the built-in engine made again by their policy's Rego, off
// the path of requests, and reports where the two differ. It changes no decision.
type verifier struct {
	sets    *Sets
	log     *slog.Logger
	every   uint64
	decided atomic.Uint64
	queue   chan *verification
	results verifications
}

// maxUnverified is how many decisions wait to be verified: a policy that has to be
// prepared first takes tens of milliseconds.
const maxUnverified = 256

// verification is a decision to make again. Nothing in it is modified any more.
type verification struct {
	organization, decisionID string
	set                      engine.Set
	input                    engine.Input
	result                   engine.Result
}

// verified is the result of a verification.
type verified string

// The results: the two renderings agree, they differ, one of them failed, or the queue was
// full.
const (
	verifiedSame    verified = "same"
	verifiedDiffers verified = "different"
	verifiedError   verified = "error"
	verifiedDropped verified = "dropped"
)

// verifications count verifications by their result.
type verifications map[verified]prometheus.Counter

// newVerifications registers the counters. They exist even if nothing is verified,
// because an alert names them.
func newVerifications(metrics prometheus.Registerer) verifications {
	counts := telemetry.CounterVec("writ_engine_verifications_total",
		"Decisions that were also to be made by the policy's Rego, by what came of it.", "result")
	metrics.MustRegister(counts)
	results := make(verifications)
	for _, r := range []verified{verifiedSame, verifiedDiffers, verifiedError, verifiedDropped} {
		results[r] = counts.WithLabelValues(string(r))
	}
	return results
}

// newVerifier returns a verifier of one decision in every, which is at least 1. It works
// once run is called.
func newVerifier(sets *Sets, every uint64, log *slog.Logger, results verifications) *verifier {
	queue := make(chan *verification, maxUnverified)
	return &verifier{sets: sets, log: log, every: every, queue: queue, results: results}
}

// run verifies until ctx ends.
func (v *verifier) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case d := <-v.queue:
			v.results[v.verify(ctx, d)].Inc()
		}
	}
}

// sample returns the verification of a decision, or nil if it is not its turn. It is put
// into the queue once the decision stands.
func (v *verifier) sample(org string, set engine.Set, in *engine.Input, result engine.Result) *verification {
	if v.decided.Add(1)%v.every != 0 {
		return nil
	}
	d := &verification{organization: org, set: set, input: *in, result: result}
	d.input.Turn, d.input.Trace = nil, nil // the request's
	return d
}

// put queues a verification, or drops it if the queue is full.
func (v *verifier) put(d *verification) {
	select {
	case v.queue <- d:
	default:
		v.results[verifiedDropped].Inc()
	}
}

// verify makes a decision again and compares the two.
func (v *verifier) verify(ctx context.Context, d *verification) verified {
	query, err := v.sets.query(ctx, d.organization, d.set)
	switch {
	case errors.Is(err, errUnprepared):
		return verifiedError
	case err != nil:
		v.log.Warn("a decision could not be verified", "decision", d.decisionID, "problem", err)
		return verifiedError
	}
	decision, codes, err := ask(query, &d.input)
	want := codesOf(d.result.Findings)
	switch {
	case err != nil && slices.Contains(want, engine.CodeResourceUnreadable):
		return verifiedSame // neither reads the resource, and both refuse
	case err != nil:
		// A rule's own Rego failed, which the engine takes for a match where that
		// tightens, or time ran out. The error can quote the intent.
		return verifiedError
	case decision == d.result.Decision && slices.Equal(codes, want):
		return verifiedSame
	case d.result.ConditionErrors[condition.CauseWork] > 0:
		return verifiedError // the engine ended conditions that Rego did not
	}
	v.log.Error("the engine and the policy's Rego decide differently", "decision", d.decisionID, "organization",
		d.organization, policyOf(d.set),
		"engine", d.result.Decision, "engine_codes", want, "rego", decision, "rego_codes", codes)
	return verifiedDiffers
}

// policyOf names the policy and rules of a set in a log line.
func policyOf(set engine.Set) slog.Attr {
	doc := set.Policy.Document()
	return slog.Group("policy", "id", doc.PolicyID, "version", doc.Version, "rules_revision", set.Revisions.Rules)
}

// ask has a query decide. A panic of the query is an error: the service decides without it.
func ask(q Query, in *engine.Input) (_ engine.Decision, _ []engine.Code, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the query panicked: %v", r)
		}
	}()
	return q.Evaluate(in)
}

// codesOf returns the codes of findings, sorted, each once.
func codesOf(findings []engine.Finding) []engine.Code {
	codes := make([]engine.Code, 0, len(findings))
	for i := range findings {
		codes = append(codes, findings[i].Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
