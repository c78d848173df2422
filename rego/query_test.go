package rego

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
)

func evaluationInput() *engine.Input {
	return &engine.Input{Intent: sampleInput().Intent, Agent: engine.AgentActive}
}

func codesOf(r engine.Result) []engine.Code {
	codes := make([]engine.Code, 0, len(r.Findings))
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func TestQuery_Evaluate(t *testing.T) {
	q := must.Get(Prepare(samplePolicy(), sampleRules(), nil))(t)
	q.timeout = time.Minute // the machine may be busy with other tests
	tests := []struct {
		name   string
		change func(in *engine.Input)
		want   engine.Decision
		codes  []engine.Code
	}{
		{"a rule asks for approval", func(*engine.Input) {}, engine.ApprovalRequired, []engine.Code{"rule.approval_required"}},
		{"nothing objects", func(in *engine.Input) { in.Intent.Cost.AmountMinor = 10 }, engine.Allow, []engine.Code{"policy.allowed"}},
		{"a rule's own Rego denies", func(in *engine.Input) { in.Intent.IssuedAt = "2026-02-01T12:00:00Z" }, engine.Deny, []engine.Code{"rule.deny"}},
		{"the kill switch", func(in *engine.Input) { in.Agent = engine.AgentDisabled; in.Intent.Cost = nil }, engine.Deny, []engine.Code{"agent.disabled"}},
		{"a spelling of what is blocked", func(in *engine.Input) { in.Intent.Resource = "prod/x/..%2fsecrets/key"; in.Intent.Cost = nil }, engine.Deny,
			[]engine.Code{"resource.blocked"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := evaluationInput()
			tt.change(in)
			got, codes, err := q.Evaluate(in)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want || !cmp.Equal(codes, tt.codes) {
				t.Errorf("Evaluate = %v, %v, want %v, %v", got, codes, tt.want, tt.codes)
			}
		})
	}
}

func TestQuery_ErrorsDecideNothing(t *testing.T) {
	failing := sampleRule("r", "r", `{"rego":"to_number(input.intent.metadata.env) > 5"}`, `{"decision":"allow"}`)
	never := sampleRule("r", "r", `{"rego":"`+strings.ReplaceAll(slow, `"`, `\"`)+`"}`, `{"decision":"allow"}`)
	tests := []struct {
		name string
		rule engine.Rule
		in   func(in *engine.Input)
	}{
		{"a rule's own Rego fails", failing, func(*engine.Input) {}},
		{"it takes too long", never, func(*engine.Input) {}},
		{"the resource cannot be read", sampleRules()[0], func(in *engine.Input) { in.Intent.Resource = "https://h/%ff" }},
		{"there is no intent", sampleRules()[0], func(in *engine.Input) { in.Intent = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := must.Get(Prepare(samplePolicy(), []engine.Rule{tt.rule}, nil))(t)
			q.timeout = QueryTimeout / 8
			in := evaluationInput()
			tt.in(in)
			got, codes, err := q.Evaluate(in)
			if err == nil || got != engine.Deny || codes != nil {
				t.Errorf("Evaluate = %v, %v, %v, want deny, none, an error", got, codes, err)
			}
		})
	}
}

func TestPrepare_NamesTheRuleThatCannotBeLowered(t *testing.T) {
	for name, condition := range map[string]string{
		"opaque": `{"cel":"size(intent.resource) > 5"}`,
		"broken": `{"cel":"intent.nothing"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(samplePolicy(), []engine.Rule{sampleRule("rule-17", "r", condition, `{"decision":"deny"}`)}, nil)
			if err == nil || !strings.Contains(err.Error(), "rule rule-17") {
				t.Errorf("Prepare = %v, want an error that names rule-17", err)
			}
		})
	}
}

func TestQuery_ConcurrentUse(t *testing.T) {
	q := must.Get(Prepare(samplePolicy(), sampleRules(), nil))(t)
	q.timeout = time.Minute
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got, _, err := q.Evaluate(evaluationInput()); err != nil || got != engine.ApprovalRequired {
					t.Errorf("Evaluate = %v, %v, want approval_required", got, err)
				}
			}
		})
	}
	wg.Wait()
}
