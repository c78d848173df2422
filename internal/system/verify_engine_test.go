package system

import "testing"

// TestServe_VerifyEngine checks that a server's decisions about the examples agree with the Rego of
// the policies.
func TestServe_VerifyEngine(t *testing.T) {
	data, _ := newData(t)
	p := start(t, data, "--demo", "--verify-engine", "1/1")
	result := func(name string) float64 {
		for _, m := range families(t, p)["writ_engine_verifications_total"].GetMetric() {
			if m.GetLabel()[0].GetValue() == name {
				return m.GetCounter().GetValue()
			}
		}
		t.Fatalf("there is no result %s", name)
		return 0
	}
	waitFor(t, "the examples to be verified", func() bool {
		return result("same")+result("different")+result("error")+result("dropped") >= 20
	})
	if differ, errs := result("different"), result("error"); differ > 0 || errs > 0 {
		t.Errorf("of the examples %v are decided differently by Rego and %v not at all, want none\n%s", differ, errs, p.stderr)
	}
	p.stop(t)
}
