package condition

import "testing"

// BenchmarkReadValue reads ordinary recipients.
func BenchmarkReadValue(b *testing.B) {
	for name, text := range map[string]string{
		"address": "ana@ours.example",
		"named":   "Ana Doe <ana@ours.example>",
		"quoted":  `"Doe, Ana" <ana@ours.example>`,
		"comment": "ana@ours.example (Ana Doe)",
		"list":    "ana@ours.example, Bob <bob@ours.example>, carol@ours.example",
		"lines":   "Ana <ana@ours.example>,\r\n Bob <bob@ours.example>",
		"array":   `["ana@ours.example","Bob <bob@ours.example>"]`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v := ReadValue(text); len(v.Elements) == 0 {
					b.Fatal("it has no elements")
				}
			}
		})
	}
}
