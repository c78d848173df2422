package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ.example/writ/engine"
)

// lineWidth is the longest line of the demo. Terminals are often not wider.
const lineWidth = 100

// describe formats an intent for the rest of a line. It writes the action, the resource, the
// cost and the metadata.
func describe(in *engine.Intent, codes []engine.Code) string {
	var with []string
	if in.Cost != nil {
		with = append(with,
			fmt.Sprintf("%d.%02d %s", in.Cost.AmountMinor/100, in.Cost.AmountMinor%100, in.Cost.Currency))
	}
	for _, key := range slices.Sorted(maps.Keys(in.Metadata)) {
		with = append(with, key+"="+in.Metadata[key])
	}
	if slices.Contains(codes, engine.CodeAgentMismatch) {
		with = append(with, "by "+in.AgentID)
	}
	rest := strings.Join(with, " ")
	left := lineWidth - 37 - max(15, len(in.ActionType)) - 1 - len(rest) - 1
	return strings.TrimRight(fmt.Sprintf("%-15s %s %s", in.ActionType, shorten(in.Resource, left), rest), " ")
}

// because formats a decision and the finding that caused it. +1 says that there was one more
// finding.
func because(decision string, codes []engine.Code) string {
	i := slices.IndexFunc(codes, func(c engine.Code) bool {
		outcome, ok := c.Outcome()
		return ok && outcome.String() == decision
	})
	if decision == engine.Allow.String() && codes[0] == engine.CodePolicyAllowed || i < 0 {
		return decision
	}
	by := decision + ": " + strings.TrimSuffix(string(codes[i]), "."+decision)
	if len(codes) > 1 {
		by += fmt.Sprintf(" +%d", len(codes)-1)
	}
	return by
}

// codesOf returns the codes at the start of the reasons.
func codesOf(reasons []string) []engine.Code {
	codes := make([]engine.Code, len(reasons))
	for i, r := range reasons {
		code, _, _ := strings.Cut(r, ":")
		codes[i] = engine.Code(code)
	}
	return codes
}

// shorten cuts s to n characters and marks the cut. It cuts in the middle, because the
// beginning of a resource says where it is and the end says what it is.
func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	end := (n - 1) / 2
	return string(r[:n-1-end]) + "…" + string(r[len(r)-end:])
}
