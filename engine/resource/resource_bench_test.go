package resource

import "testing"

func BenchmarkRead(b *testing.B) {
	for _, bm := range []struct{ name, raw string }{
		{"plain", "https://api.example.com/v1/charges/ch_42"},
		{"path", "prod/eu-west-1/databases/users"},
		{"upper", "https://API.example.com/v1/charges/ch_42"},
		{"encoded", "https://api.example.com/v1/a%2Fb%20c#d"},
		{"idna", "https://bücher.example/v1/charges"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(bm.raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
