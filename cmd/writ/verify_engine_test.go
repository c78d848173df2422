package main

import "testing"

func TestOneIn(t *testing.T) {
	for text, want := range map[string]oneIn{"": 0, "1/1": 1, "1/100": 100, "1/1000000": 1_000_000} {
		var n oneIn
		if err := n.UnmarshalText([]byte(text)); err != nil || n != want {
			t.Errorf("%q = %d, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"1", "0", "1/0", "2/3", "1/-1", "1/1000001", "1/ 10", "0.1", "1/10x"} {
		var n oneIn
		if err := n.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q = %d, want an error", text, n)
		}
	}
}
