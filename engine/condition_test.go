package engine

import (
	"errors"
	"strings"
	"testing"

	"writ/engine/resource"
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

// testFrame returns a frame over in as [Evaluate] makes it.
func testFrame(t testing.TB, in *Intent) *frame {
	t.Helper()
	var pool framePool
	f := pool.get(testPolicy(), &Input{Intent: in, Agent: AgentActive})
	readings, err := resource.Read(in.Resource)
	if err != nil {
		t.Fatalf("Read(%q): %v", in.Resource, err)
	}
	f.readings = readings
	return f
}

func mustCondition(t testing.TB, doc string) *condition {
	t.Helper()
	c, err := compileCondition(doc, Options{})
	if err != nil {
		t.Fatalf("compileCondition(%s): %v", doc, err)
	}
	return c
}

// checkCondition asks doc about in, through CEL and through the tree.
func checkCondition(t *testing.T, doc string, in *Intent, want bool) {
	t.Helper()
	c := mustCondition(t, doc)
	f := testFrame(t, in)
	if got, err := c.eval(f); err != nil || got != want {
		t.Errorf("%s (as %s) = %v, %v, want %v", doc, c.cel, got, err, want)
	}
	if got := askTree(t, c.holds, f); got != want {
		t.Errorf("tree of %s = %v, want %v", doc, got, want)
	}
	if got := askTree(t, c.fails, f); got == want {
		t.Errorf("negated tree of %s = %v, want %v", doc, got, !want)
	}
}

// wantInvalid checks that err is an *InvalidError about field that says all of texts.
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
