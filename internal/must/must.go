// Package must lets a test fail if a step fails that the test is not about.
package must

import "testing"

// Get returns the value of a call. If the call failed, the test ends:
//
//	policy := must.Get(engine.CompilePolicy(doc))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
