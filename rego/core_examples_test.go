package rego_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/internal/must"
	"writ.example/writ/rego"
)

func TestLowerCore_DecidesTheExamplesAsTheEngineDoes(t *testing.T) {
	set := must.Get(examples.Load())(t)
	files, err := rego.LowerCore(slices.Collect(maps.Values(set.Policies)), set.Rules, nil)
	if err != nil {
		t.Fatalf("LowerCore = %v", err)
	}
	for i, want := range set.Cases {
		in := &engine.Input{Intent: set.Intents[i]}
		got, _ := rego.AskCore(t, files, rego.CoreQuestion(t, set.Policies[want.Policy], set.Rules, nil, in)).(map[string]any)
		version, _ := got["policy_version"].(json.Number)
		if got == nil || got["decision"] != want.Want.String() || len(got) != 4 ||
			version.String() != strconv.FormatInt(set.Policies[want.Policy].Version, 10) || got["rules_revision"] != json.Number("57") {
			t.Errorf("%s/%s: the core decides %v, want %v of these versions", want.Policy, want.Name, got, want.Want)
		}
	}
}
