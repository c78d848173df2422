package engine

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// JSON returns the rules as a JSON array of [Rule] in deciding order, from a cache if
// [Options.KeepJSON] was set. It must not be modified. A nil set has no rules.
func (rs *RuleSet) JSON() ([]byte, error) {
	if rs != nil && rs.json != nil {
		return rs.json, nil
	}
	return rs.encode()
}

func (rs *RuleSet) encode() ([]byte, error) {
	var rules []Rule
	if rs != nil {
		rules = make([]Rule, len(rs.rules))
		for i, r := range rs.rules {
			rules[i] = r.rule
		}
	}
	text, err := json.Marshal(rules)
	if err != nil {
		return nil, fmt.Errorf("encoding the rules: %w", err)
	}
	return text, nil
}
