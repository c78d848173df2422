package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"writ/engine"
	"writ/rego"
)

// engines are a policy and rules, ready to be evaluated by one engine or both.
type engines struct {
	which  string // "cel", "rego" or "both"
	policy *engine.Policy
	rules  *engine.RuleSet
	query  *rego.Query // nil for "cel"
}

// evaluated is what was decided of an intent, by the Rego where that alone is asked.
type evaluated struct {
	Intent   string          `json:"intent"` // where it stands
	IntentID string          `json:"intent_id"`
	Decision engine.Decision `json:"decision"`
	// Codes are the codes of all findings, sorted, each once.
	Codes []engine.Code `json:"codes"`
	// Reasons are the findings of the engine of the service, in order.
	Reasons []string `json:"reasons,omitzero"`
	// Rego is what the Rego says where both are asked, and Differs whether that is
	// something else.
	Rego        *regoAnswer         `json:"rego,omitzero"`
	Differs     bool                `json:"differs,omitzero"`
	Error       string              `json:"error,omitzero"` // of the Rego
	Explanation *engine.Explanation `json:"explanation,omitzero"`

	undecided bool // the Rego, asked alone, has no decision
}

// regoAnswer is what the Rego says: Error is why it has no decision.
type regoAnswer struct {
	Decision engine.Decision `json:"decision"`
	Codes    []engine.Code   `json:"codes"`
	Error    string          `json:"error,omitzero"`
}

func (e *engines) evaluate(in namedInput, explain bool) *evaluated {
	got := &evaluated{Intent: in.name, IntentID: in.Intent.IntentID}
	in.Counts = engine.Alone(e.rules.Counters(), in.Intent)
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

// ask has the Rego decide. It denies where it has no decision.
func (e *engines) ask(in *engine.Input) *regoAnswer {
	decision, codes, err := e.query.Evaluate(in)
	if err != nil {
		return &regoAnswer{Decision: engine.Deny, Codes: []engine.Code{}, Error: err.Error()}
	}
	return &regoAnswer{Decision: decision, Codes: codes}
}

// write shows what was decided, for people.
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
