package main

import (
	"errors"
	"strconv"
	"strings"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// oneIn is n in a share 1/n, such as 100 in 1/100. 0 means none.
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

// prepareQuery prepares the queries that verify decisions. If it is nil, the product's own
// function prepares them. Tests run the command with a wrong one.
type prepareQuery func(
	p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries []engine.Library,
) (decision.Query, error)
