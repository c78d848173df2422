package decision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/telemetry"
)

// verifier makes decisions of the built-in engine again with the Rego of their policies. It
// does so outside of the requests. It reports each decision that differs and changes no
// decision.
type verifier struct {
	sets    *Sets
	log     *slog.Logger
	every   uint64
	decided atomic.Uint64
	queue   chan *verification
	results verifications
}

// maxUnverified is how many decisions may wait to be verified. A policy that must be prepared
// first takes tens of milliseconds.
const maxUnverified = 256

// verification is a decision that is to be made again. Nothing in it is modified any more.
type verification struct {
	organization, decisionID string
	set                      engine.Set
	input                    engine.Input
	result                   engine.Result
}

// verified is the result of a verification.
type verified string

// The results. same means that the engine and the Rego agree, and different that they do not.
// error means that one of them failed, and dropped that the queue was full.
const (
	verifiedSame    verified = "same"
	verifiedDiffers verified = "different"
	verifiedError   verified = "error"
	verifiedDropped verified = "dropped"
)

// verifications counts verifications by their result.
type verifications map[verified]prometheus.Counter

// newVerifications registers the counters. It does so even if nothing is verified, because an
// alert names them.
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

// newVerifier returns a verifier of one in every decisions. every must be at least 1. The
// verifier does nothing until run is called.
func newVerifier(sets *Sets, every uint64, log *slog.Logger, results verifications) *verifier {
	queue := make(chan *verification, maxUnverified)
	return &verifier{sets: sets, log: log, every: every, queue: queue, results: results}
}

// run verifies decisions until ctx ends.
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

// sample returns the verification of a decision, or nil if the decision is not to be verified.
// The caller puts the verification into the queue once the decision stands.
func (v *verifier) sample(org string, set engine.Set, in *engine.Input, result engine.Result) *verification {
	if v.decided.Add(1)%v.every != 0 || !condition.AllKnown(in.Counts) {
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

// verify makes a decision again and compares the two decisions.
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
		return verifiedSame // both refuse, and neither has read the resource
	case err != nil:
		// One cause is that a rule's own Rego failed. The engine takes that for a match if the
		// match tightens. The other cause is that time ran out. The error can quote the intent.
		return verifiedError
	case decision == d.result.Decision && slices.Equal(codes, want):
		return verifiedSame
	case d.result.ConditionErrors[condition.CauseWork] > 0:
		return verifiedError // the engine stopped conditions that Rego did not stop
	}
	v.log.Error("the engine and the policy's Rego decide differently", "decision", d.decisionID, "organization",
		d.organization, policyOf(d.set),
		"engine", d.result.Decision, "engine_codes", want, "rego", decision, "rego_codes", codes)
	return verifiedDiffers
}

// policyOf returns the policy and the rules of a set for a log line.
func policyOf(set engine.Set) slog.Attr {
	doc := set.Policy.Document()
	return slog.Group("policy", "id", doc.PolicyID, "version", doc.Version, "rules_revision", set.Revisions.Rules)
}

// ask lets a query decide. A panic of the query becomes an error, because the service must
// survive it.
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
