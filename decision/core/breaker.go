package core

import (
	"errors"
	"log/slog"
	"time"

	"github.com/sony/gobreaker/v2"

	"writ.example/writ/engine"
)

// breaker stops questions to a core that fails.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[engine.Result]
	openFor time.Duration
}

func newBreaker(failures int, openFor time.Duration, log *slog.Logger) *breaker {
	return &breaker{openFor: openFor, circuit: gobreaker.NewCircuitBreaker[engine.Result](gobreaker.Settings{
		Name:        "evaluation core",
		Timeout:     openFor,
		MaxRequests: 1,
		ReadyToTrip: func(c gobreaker.Counts) bool { return uint64(c.ConsecutiveFailures) >= uint64(failures) },
		IsSuccessful: func(err error) bool {
			failed, ok := errors.AsType[*Error](err)
			return !ok || !failed.Reason.counts()
		},
		// If the caller left before the answer, the error says nothing about the core.
		IsExcluded: func(err error) bool {
			_, ok := errors.AsType[*Error](err)
			return err != nil && !ok
		},
		OnStateChange: func(_ string, _, to gobreaker.State) {
			switch to {
			case gobreaker.StateOpen:
				log.Error("the evaluation core fails: nothing is decided until it answers again", "next_try", openFor)
			case gobreaker.StateClosed:
				log.Info("the evaluation core decides again")
			case gobreaker.StateHalfOpen:
			}
		},
	})}
}

// do calls f, unless the breaker is open.
func (b *breaker) do(f func() (engine.Result, error)) (engine.Result, error) {
	result, err := b.circuit.Execute(f)
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return engine.Result{}, &Error{Reason: Open, after: b.openFor, err: err}
	}
	return result, err
}

// state returns the value of the breaker's gauge.
func (b *breaker) state() float64 {
	switch b.circuit.State() {
	case gobreaker.StateClosed:
		return 0
	case gobreaker.StateHalfOpen:
		return 1
	default:
		return 2
	}
}
