// Package must ends a test by an error that is not what the test is about.
package must

import "testing"

// Get returns what a call returns, and ends the test where that is an error:
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
