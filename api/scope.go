package api

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// scopeSet is the set of scopes a credential holds, one bit a scope.
type scopeSet uint32

// The scopes a route can demand. Their names are in scopeNames, in this order.
const (
	scopeEvaluate scopeSet = 1 << iota
	scopePolicyRead
	scopePolicyWrite
	scopeRulesRead
	scopeRulesWrite
	scopeAgentsRead
	scopeAgentsWrite
	scopeTokensRead
	scopeTokensWrite
	scopeHistoryRead
	scopeUsageRead
	scopeBillingRead
	scopeBillingWrite
	scopeActionsRecord
	scopeFactsAssert
	scopeApprovalsRead
	scopeApprovalsDecide

	scopeAll = 1<<iota - 1

	// public is what a route demands that needs no credential.
	public scopeSet = 0
	// service is what a route demands that takes the service bearer alone: no
	// API key and no operator token holds it.
	service scopeSet = 1 << 31
	// operatorOnly is what a route demands that no API key may call: operators hold it
	// beside all scopes.
	operatorOnly scopeSet = 1 << 30
)

const scopeList = "policy:evaluate policy:read policy:write rules:read rules:write agents:read agents:write " +
	"tokens:read tokens:write history:read usage:read billing:read billing:write actions:record facts:assert " +
	"approvals:read approvals:decide"

// Scopes returns the names of all scopes an API key can hold.
func Scopes() []string { return strings.Fields(scopeList) }

// parseScopes returns the set of names. It refuses an unknown name with its
// index, so that a misspelt scope is found when the key is made.
func parseScopes(names []string) (scopeSet, int, error) {
	known := Scopes()
	var set scopeSet
	for i, name := range names {
		n := slices.Index(known, name)
		if n < 0 {
			return 0, i, fmt.Errorf("is not a scope: want one of %s", strings.Join(known, ", "))
		}
		set |= 1 << n
	}
	return set, 0, nil
}

func (s scopeSet) has(want scopeSet) bool { return s&want == want }

// names returns the names of s in the order of scopeList.
func (s scopeSet) names() []string {
	known := Scopes()
	names := make([]string, 0, bits.OnesCount32(uint32(s)))
	for i, name := range known {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// String returns the names of s, separated by spaces. operatorOnly is "operator".
func (s scopeSet) String() string {
	names := s.names()
	if s&operatorOnly != 0 {
		names = append(names, "operator")
	}
	return strings.Join(names, " ")
}
