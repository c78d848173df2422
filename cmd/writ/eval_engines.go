package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// engines holds a policy and rules that one engine, or both, can evaluate.
type engines struct {
	which  string // "cel", "rego" or "both"
	policy *engine.Policy
	rules  *engine.RuleSet
	query  *rego.Query // nil for "cel"
}

// evaluated is the result for an intent. If only Rego evaluates, it is Rego's result.
type evaluated struct {
	Intent   string          `json:"intent"` // the place of the intent in the file
	IntentID string          `json:"intent_id"`
	Decision engine.Decision `json:"decision"`
	// Codes has the codes of all findings, sorted and without duplicates.
	Codes []engine.Code `json:"codes"`
	// Reasons has the findings of the built-in engine, in order.
	Reasons []string `json:"reasons,omitzero"`
	// Printed is what the conditions in Rego print.
	Printed []rego.Printed `json:"printed,omitzero"`
	// Rego is Rego's answer if both engines evaluate. Differs says whether it differs from the
	// engine's.
	Rego        *regoAnswer         `json:"rego,omitzero"`
	Differs     bool                `json:"differs,omitzero"`
	Error       string              `json:"error,omitzero"` // Rego's error
	Explanation *engine.Explanation `json:"explanation,omitzero"`

	undecided bool // only Rego was asked, and it has no decision
}

// regoAnswer is the answer of Rego. Error says why there is no decision.
type regoAnswer struct {
	Decision engine.Decision `json:"decision"`
	Codes    []engine.Code   `json:"codes"`
	Error    string          `json:"error,omitzero"`
}

func (e *engines) evaluate(in namedInput, explain bool) *evaluated {
	got := &evaluated{Intent: in.name, IntentID: in.Intent.IntentID}
	in.Counts = engine.Alone(e.rules.Counters(), in.Intent)
	var err error
	if got.Printed, err = rego.Prints(e.policy, e.rules, in.Input); err != nil {
		got.Printed = []rego.Printed{{Text: err.Error()}} // cannot happen: the rules have compiled
	}
	if e.which == "rego" {
		answer := e.ask(in.Input)
		got.Decision, got.Codes, got.Error, got.undecided = answer.Decision, answer.Codes, answer.Error,
			answer.Error != ""
		return got
	}
	if explain {
		in.Trace = &engine.Trace{}
	}
	result := engine.Evaluate(e.policy, e.rules, in.Input)
	got.Decision, got.Reasons = result.Decision, result.Reasons()
	for _, f := range result.Findings {
		got.Codes = append(got.Codes, f.Code)
	}
	slices.Sort(got.Codes)
	got.Codes = slices.Compact(got.Codes)
	if explain {
		got.Explanation = in.Trace.Explain()
	}
	if e.which == "both" {
		got.Rego = e.ask(in.Input)
		got.Differs = got.Rego.Error != "" || got.Rego.Decision != got.Decision ||
			!slices.Equal(got.Rego.Codes, got.Codes)
	}
	return got
}

// ask lets Rego decide. If Rego has no decision, ask denies.
func (e *engines) ask(in *engine.Input) *regoAnswer {
	decision, codes, err := e.query.Evaluate(in)
	if err != nil {
		return &regoAnswer{Decision: engine.Deny, Codes: []engine.Code{}, Error: err.Error()}
	}
	return &regoAnswer{Decision: decision, Codes: codes}
}

// write prints the result for people.
func (got *evaluated) write(w io.Writer) {
	fmt.Fprintln(w, got.Decision)
	for _, reason := range got.Reasons {
		fmt.Fprintf(w, "  %s\n", reason)
	}
	if got.Reasons == nil {
		for _, code := range got.Codes {
			fmt.Fprintf(w, "  %s\n", code)
		}
	}
	for _, p := range got.Printed {
		fmt.Fprintf(w, "  %s\n", p)
	}
	if got.Error != "" {
		fmt.Fprintf(w, "  the Rego has no decision: %s\n", got.Error)
	}
	switch {
	case !got.Differs:
	case got.Rego.Error != "":
		fmt.Fprintf(w, "  DIFFERS: the Rego has no decision: %s\n", got.Rego.Error)
	default:
		fmt.Fprintf(w, "  DIFFERS: the Rego decides %s, and finds %s\n", got.Rego.Decision, joinCodes(got.Rego.Codes))
	}
}

func joinCodes(codes []engine.Code) string {
	texts := make([]string, len(codes))
	for i, c := range codes {
		texts[i] = string(c)
	}
	return strings.Join(texts, ", ")
}
