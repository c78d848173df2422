package mongotest

import "testing"

// TestBinary_CanBeHad says, where it is skipped, why nothing is tested on a real
// server: make test prints that.
func TestBinary_CanBeHad(t *testing.T) {
	if _, err := Binary(t.Context()); err != nil {
		t.Skipf("SKIPPED the tests on a real mongod: %.300q", err)
	}
}

func TestSet_SurvivesItsPrimary(t *testing.T) {
	s := For(t, 3)
	first, err := s.Primary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(first); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForPrimary(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second, err := s.Primary(t.Context()); err != nil || second == first {
		t.Errorf("Primary = %d, %v; want another than %d", second, err, first)
	}
	if err := s.Restart(first); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitForPrimary(t.Context()); err != nil {
		t.Fatal(err)
	}
}
