package main

import (
	"errors"
	"log/slog"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"writ/decision"
	"writ/engine"
	"writ/engine/condition"
	"writ/rego"
)

// oneIn is a share such as 1/100; 0 is none.
type oneIn uint64

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *oneIn) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*n = 0
		return nil
	}
	of, ok := strings.CutPrefix(string(text), "1/")
	value, err := strconv.ParseUint(of, 10, 64)
	if !ok || err != nil || value < 1 || value > engine.MaxSetting {
		return errors.New("want 1/N, such as 1/100, or nothing")
	}
	*n = oneIn(value)
	return nil
}

// verifier returns what verifies that share of decisions, nil if it is none. Its
// counters are shown in either case, as those of every alert are.
func (n oneIn) verifier(sets *engine.Sets, log *slog.Logger, metrics prometheus.Registerer) *decision.Verifier {
	v := decision.NewVerifier(sets, uint64(n), log, metrics)
	if n == 0 {
		return nil
	}
	return v
}

// prepareQuery prepares the queries that decisions are verified by. Tests run the
// command with one that is wrong.
type prepareQuery func(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) (engine.Query, error)

func prepareRego(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) (engine.Query, error) {
	return rego.Prepare(p, rules, lists)
}
