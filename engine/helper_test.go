package engine

import (
	"errors"
	"strings"
	"testing"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// intentWith returns an intent that edit has changed.
func intentWith(edit func(*Intent)) *Intent {
	in := &Intent{
		IntentID:   "6f1c1f0e-33a5-4b1e-9c0a-0d7f0f6f3b11",
		PolicyID:   "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01",
		AgentID:    "team-a/deployer",
		ActionType: "deploy.web",
		Resource:   "prod/web/api",
		Cost:       &Cost{AmountMinor: 5000, Currency: "EUR"},
		Metadata:   map[string]string{"env": "prod", "a.b": "dotted", "empty": ""},
		IssuedAt:   "2026-01-31T12:00:00Z",
	}
	if edit != nil {
		edit(in)
	}
	return in
}

func testPolicy() *ActionPolicy {
	return &ActionPolicy{PolicyID: "0b9f7f2e-5a57-4a5e-8f27-6a3f3f0f9a01", Version: 3, OrganizationID: "org", AgentID: "team-a/deployer", Status: StatusActive}
}

// testEvaluation returns an evaluation of in, as [Evaluate] prepares it.
func testEvaluation(t testing.TB, in *Intent) *evaluation {
	t.Helper()
	e := newEvaluation(testPolicy(), &Input{Intent: in, Agent: AgentActive})
	readings, err := resource.Read(in.Resource)
	if err != nil {
		t.Fatalf("Read(%q): %v", in.Resource, err)
	}
	e.SetReadings(readings)
	return &e
}

func mustCondition(t testing.TB, doc string) *condition.Condition {
	t.Helper()
	c, err := condition.Compile(doc, condition.Options{Side: resource.ForBlock})
	if err != nil {
		t.Fatalf("Compile(%s): %v", doc, err)
	}
	return c
}

// wantInvalid checks that err is an *InvalidError about field that contains all of texts.
func wantInvalid(t *testing.T, err error, field string, texts ...string) {
	t.Helper()
	var inv *InvalidError
	if !errors.As(err, &inv) || len(inv.Fields) == 0 {
		t.Fatalf("error = %v, want an *InvalidError", err)
	}
	for _, f := range inv.Fields {
		if f.Field != field {
			t.Errorf("error is about %q, want %q", f.Field, field)
		}
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error = %q, want it to say %q", err, text)
		}
	}
}
