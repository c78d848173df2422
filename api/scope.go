package api

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// scopeSet is the set of scopes that a credential holds. Each scope is one bit.
type scopeSet uint32

// These are the scopes that a route can demand. scopeList has their names in the same order.
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
	scopeBudgetsRelease
	scopeSessionsWrite

	scopeAll = 1<<iota - 1

	// public is the demand of a route that needs no credential.
	public scopeSet = 0
	// service is the demand of a route that accepts only the service bearer. No API key and no operator token holds it.
	service scopeSet = 1 << 31
	// anyCredential is the demand of a route that every API key and every operator may call.
	anyCredential scopeSet = 1 << 29
	// operatorOnly is the demand of a route that no API key may call. Operators hold it in addition to all scopes.
	operatorOnly scopeSet = 1 << 30
)

const scopeList = "policy:evaluate policy:read policy:write rules:read rules:write agents:read agents:write " +
	"tokens:read tokens:write history:read usage:read billing:read billing:write actions:record facts:assert " +
	"approvals:read approvals:decide budgets:release sessions:write"

// Scopes returns the names of all scopes that an API key can hold.
func Scopes() []string { return strings.Fields(scopeList) }

// parseScopes returns the set of the scopes with these names. For an unknown name it returns an error and the index of
// the name. So a misspelt scope is found when the key is made.
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
