package main

import (
	"errors"
	"strconv"
	"strings"

	"writ/decision"
	"writ/engine"
	"writ/engine/condition"
)

// oneIn is a share such as 1/100. 0 is no share.
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

// prepareQuery prepares the queries that decisions are verified by; nil is what the product
// prepares. Tests run the command with one that is wrong.
type prepareQuery func(p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists) (decision.Query, error)
