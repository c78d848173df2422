package reference

import "testing"

// TestElements checks the examples of "Lists and addresses in metadata" of decisions.md.
func TestElements(t *testing.T) {
	ours, rival := Cond{Op: "glob", Value: "*@ours.example"}, Cond{Op: "glob", Value: "*@rival.example"}
	for _, tt := range []struct {
		op       string
		one      Cond
		value    string
		stricter bool
		want     truth
	}{
		{"every", ours, "ana@ours.example", false, yes},
		{"every", ours, `"Doe, Ana" <ana@OURS.example.>; bob@ours.example (Bob)`, false, yes},
		{"every", ours, "evil@evil.example;a@ours.example", false, no},
		{"every", ours, "<evil@evil.example>@ours.example", false, no},
		{"every", ours, `"eve@evil.example x"@ours.example`, false, no},
		{"every", ours, `"eve"@ours.example`, false, no},
		{"every", ours, "ana@ours.example eve", false, no},
		{"every", ours, "@ours.example", false, no},
		{"every", ours, "", false, no},
		{"every", Cond{Op: "glob", Value: "*"}, "ana@ours.example", false, no},
		{"some", rival, "eve@rival.example;ana@ours.example", true, yes},
		{"some", rival, "Eve <eve@RIVAL.example.>", true, yes},
		{"some", rival, "ana@ours.example", true, no},
		{"some", Cond{Op: "ne", Value: "ana@ours.example"}, "Ana <ana@OURS.example>", true, no},
		{"every", Cond{Op: "ne", Value: "eve@evil.example"}, "Eve <eve@EVIL.example>", false, no},
	} {
		if got := compareElements(Cond{Op: tt.op, Value: tt.one}, tt.value, tt.stricter); got != tt.want {
			t.Errorf("%s %v of %q, stricter %v = %v, want %v", tt.op, tt.one.Value, tt.value, tt.stricter, got, tt.want)
		}
	}
}
