package decision

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage/ledger"
)

// metrics are the metrics of a Service. No label names an organization or an agent.
type metrics struct {
	evaluation  prometheus.Histogram
	evaluations atomic.Uint64 // the number of evaluations; it selects those that are timed
	condErrors  [condition.Causes]prometheus.Counter
	byCode      map[engine.Code]prometheus.Counter // has an entry for each of engine.Codes
	ticks       *prometheus.CounterVec
	byPlan      atomic.Pointer[map[string]planTicks]
	compile     *prometheus.HistogramVec
}

// planTicks count the decisions that the meters of one plan's organizations counted.
type planTicks struct{ within, beyond prometheus.Counter }

// sampleEvery says that one of so many evaluations is timed. Two readings of the clock and an
// observation cost a third of the evaluation itself.
const sampleEvery = 16

func newMetrics(reg prometheus.Registerer, plans []string) *metrics {
	findings := telemetry.CounterVec("writ_findings_total", "Findings of decisions, by stable code.", "code")
	ticks := telemetry.CounterVec("writ_meter_ticks_total",
		"Decisions that the organizations' meters counted, by plan and by whether the plan's limit still had room.",
		"plan", "limit")
	condErrors := telemetry.CounterVec("writ_rule_condition_errors_total",
		"Rule conditions that could not be evaluated, by cause.", "cause")
	m := &metrics{
		evaluation: telemetry.Histogram("writ_evaluation_duration_seconds",
			"Time to evaluate an intent, without loading, compiling or committing; one evaluation in 16 is timed.",
			1e-6, 2.5e-6, 5e-6, 1e-5, 2.5e-5, 1e-4, 1e-3, 1e-2, .1),
		compile: telemetry.HistogramVec("writ_compile_duration_seconds",
			"Time to compile a policy version or an organization's rules for evaluation.", []string{"kind"},
			1e-4, 2.5e-4, 1e-3, 2.5e-3, 1e-2, 2.5e-2, .1, .5, 2.5),
		byCode: make(map[engine.Code]prometheus.Counter),
		ticks:  ticks,
	}
	reg.MustRegister(m.evaluation, m.compile, condErrors, findings, ticks)
	for cause := range m.condErrors {
		m.condErrors[cause] = condErrors.WithLabelValues(condition.Cause(cause).String())
	}
	for _, code := range engine.Codes() {
		m.byCode[code] = findings.WithLabelValues(string(code))
	}
	m.countPlans(plans)
	return m
}

// countPlans counts the decisions of these plans from now on.
func (m *metrics) countPlans(plans []string) {
	byPlan := make(map[string]planTicks, len(plans))
	for _, plan := range plans {
		byPlan[plan] = planTicks{m.ticks.WithLabelValues(plan, "within"), m.ticks.WithLabelValues(plan, "beyond")}
	}
	m.byPlan.Store(&byPlan)
}

// compiled records how long a compilation took.
func (m *metrics) compiled(kind compiledKind, took time.Duration) {
	m.compile.WithLabelValues(string(kind)).Observe(took.Seconds())
}

// evaluate calls engine.Evaluate and times one of sampleEvery calls.
func (m *metrics) evaluate(set engine.Set, in *engine.Input, now func() time.Time) engine.Result {
	if m.evaluations.Add(1)%sampleEvery != 1 {
		return engine.Evaluate(set.Policy, set.Rules, in)
	}
	start := now()
	res := engine.Evaluate(set.Policy, set.Rules, in)
	m.evaluation.Observe(now().Sub(start).Seconds())
	return res
}

// maxExemplar bounds a rule's id in an exemplar. Prometheus panics if its name and value have more than
// 128 characters, and ids that the service makes have 36.
const maxExemplar = 64

// failed counts the condition errors of an evaluation. The exemplar of a request that ended names the
// rule that was running. A label would need a series for each rule.
func (m *metrics) failed(r *engine.Result) {
	for cause, n := range r.ConditionErrors {
		if n == 0 {
			continue
		}
		ended, ok := errors.AsType[*engine.EndedError](r.Err)
		if c, takes := m.condErrors[cause].(prometheus.ExemplarAdder); ok && takes && len(ended.RuleID) <= maxExemplar {
			c.AddWithExemplar(float64(n), prometheus.Labels{"rule_id": ended.RuleID})
			continue
		}
		m.condErrors[cause].Add(float64(n))
	}
}

// decided counts the condition errors of an evaluation. If the intent was not decided before,
// decided also counts its findings and the tick of its meter. The ledger counts decisions.
func (m *metrics) decided(plan string, it *item, out ledger.Outcome) {
	if out.Err != nil {
		return
	}
	m.failed(&it.entry.Result)
	if out.Replayed {
		return
	}
	for i, f := range it.entry.Result.Findings {
		if i > 0 && f.RuleID != "" && f.RuleID == it.entry.Result.Findings[i-1].RuleID {
			continue // a message of the same rule
		}
		if c, ok := m.byCode[f.Code]; ok {
			c.Inc()
		}
	}
	if ticks, ok := (*m.byPlan.Load())[plan]; ok && out.Record.Metered() {
		if it.exceeded {
			ticks.beyond.Inc()
		} else {
			ticks.within.Inc()
		}
	}
}
