package core

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

// serveFake returns a Core that sends its questions to f. Use it for tests with their own clock.
func serveFake(t *testing.T, f transport, mods ...func(*Config)) *Core {
	t.Helper()
	cfg := Config{URL: "http://opa.invalid/v1/data/writ/core/result", Transport: f, Metrics: prometheus.NewRegistry()}
	for _, mod := range mods {
		mod(&cfg)
	}
	c := must.Get(New(cfg))(t)
	return c
}

// switched is a core that a test switches on and off. It counts the questions.
type switched struct {
	down  atomic.Bool
	asked atomic.Int64
}

func (s *switched) answer(*http.Request) (*http.Response, error) {
	s.asked.Add(1)
	if s.down.Load() {
		return nil, errors.New("connection refused")
	}
	return response(http.StatusOK, allowed), nil
}

func TestDecision_ExternalEvaluationCore_BreakerOpensAndRecoversByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s switched
		var logged bytes.Buffer
		c := serveFake(t, s.answer, func(c *Config) {
			c.failures, c.openFor, c.Log = 3, 2*time.Second, slog.New(slog.NewTextHandler(&logged, nil))
		})
		if _, err := c.decide(t); err != nil {
			t.Fatalf("Evaluate = %v", err)
		}
		s.down.Store(true)
		for range 3 {
			got, err := c.decide(t)
			wantReason(t, got, err, Unreachable)
		}
		wantState(t, c, 2)
		for range 100 {
			got, err := c.decide(t)
			if failed := wantReason(t, got, err, Open); failed.RetryAfter() != 2*time.Second {
				t.Errorf("RetryAfter = %v, want 2s", failed.RetryAfter())
			}
		}
		if n := s.asked.Load(); n != 4 {
			t.Errorf("the core was asked %d times, want 4: the breaker is open", n)
		}
		time.Sleep(2*time.Second + 1)
		wantState(t, c, 1)
		got, err := c.decide(t) // the core is still down, so one failed try opens the breaker again
		wantReason(t, got, err, Unreachable)
		got, err = c.decide(t)
		wantReason(t, got, err, Open)
		s.down.Store(false)
		time.Sleep(2*time.Second + 1)
		if _, err := c.decide(t); err != nil {
			t.Errorf("Evaluate of a core that is back = %v", err)
		}
		wantState(t, c, 0)
		for line, want := range map[string]int{"nothing is decided until": 2, "decides again": 1, "made no decision": 1} {
			if n := strings.Count(logged.String(), line); n != want {
				t.Errorf("the log has %q %d times, want %d:\n%s", line, n, want, &logged)
			}
		}
	})
}

func wantState(t *testing.T, c *Core, want float64) {
	t.Helper()
	if got := c.breaker.state(); got != want {
		t.Errorf("breaker state = %v, want %v", got, want)
	}
}

func TestBreaker_OneQuestionTriesTheCoreOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		down := true
		c := serveFake(t, func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			if down {
				return nil, errors.New("connection refused")
			}
			time.Sleep(100 * time.Millisecond)
			return response(http.StatusOK, allowed), nil
		}, func(c *Config) { c.failures, c.openFor = 1, time.Second })
		got, err := c.decide(t)
		wantReason(t, got, err, Unreachable)
		down = false
		time.Sleep(time.Second + 1)
		asked.Store(0)
		var decided atomic.Int64
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if _, err := c.decide(t); err == nil {
					decided.Add(1)
				}
			})
		}
		all.Wait()
		if asked.Load() != 1 || decided.Load() != 1 {
			t.Errorf("a half-open breaker let %d questions through, %d decided, want 1 and 1", asked.Load(), decided.Load())
		}
		wantState(t, c, 0)
	})
}

// TestBreaker_CountsNeitherOtherOrganizationsNorCallers checks two kinds of failure that must not
// open the breaker: errors of one organization's policies, and callers that leave. Such failures
// must not stop decisions of other organizations.
func TestBreaker_CountsNeitherOtherOrganizationsNorCallers(t *testing.T) {
	for name, f := range map[string]transport{
		"undefined": func(*http.Request) (*http.Response, error) { return response(http.StatusOK, "{}"), nil },
		"a rule that fails": func(*http.Request) (*http.Response, error) {
			return response(http.StatusInternalServerError, `{"errors":[{"code":"eval_builtin_error"}]}`), nil
		},
		"callers that leave": hang,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := serveFake(t, f, func(c *Config) { c.failures = 2 })
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
					if got, err := c.Evaluate(ctx, testSet(t), testInput()); err == nil {
						t.Errorf("Evaluate = %v, want an error", got)
					}
					cancel()
				}
				wantState(t, c, 0)
			})
		})
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		var s switched
		c := serveFake(t, s.answer, func(c *Config) { c.Metrics, c.failures = registry, 2 })
		for i := range 5 {
			s.down.Store(i > 0)
			_, _ = c.decide(t) // another test checks the result
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP writ_core_breaker_state Breaker of the external evaluation core: 0 closed (asked), 1 half-open (tried out), 2 open (left alone).
# TYPE writ_core_breaker_state gauge
writ_core_breaker_state 2
# HELP writ_core_errors_total Evaluations that the external evaluation core did not decide and that were refused, by reason.
# TYPE writ_core_errors_total counter
writ_core_errors_total{reason="answer"} 0
writ_core_errors_total{reason="breaker_open"} 2
writ_core_errors_total{reason="evaluation"} 0
writ_core_errors_total{reason="status"} 0
writ_core_errors_total{reason="timeout"} 0
writ_core_errors_total{reason="undefined"} 0
writ_core_errors_total{reason="unreachable"} 2
`), "writ_core_breaker_state", "writ_core_errors_total"); err != nil {
			t.Error(err)
		}
		for outcome, want := range map[string]uint64{engine.Allow.String(): 1, engine.Deny.String(): 0, outcomeError: 2} {
			if got := questions(t, registry, outcome); got != want {
				t.Errorf("questions with outcome %s = %d, want %d", outcome, got, want)
			}
		}
	})
}

// questions returns the number of questions that the histogram has counted.
func questions(t *testing.T, registry *prometheus.Registry, outcome string) uint64 {
	t.Helper()
	families := must.Get(registry.Gather())(t)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "writ_core_request_duration_seconds" && m.GetLabel()[0].GetValue() == outcome {
				return m.GetHistogram().GetSampleCount()
			}
		}
	}
	t.Fatalf("there is no histogram of %s", outcome)
	return 0
}
