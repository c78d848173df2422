package scrub

import (
	"testing"
)

// ordinary has the texts of an ordinary intent that the history keeps.
var ordinary = []string{"https://api.payments.example/v1/refunds", "billing-agent", "payment.refund", "env", "ticket"}

// blob holds a run of digits that is long enough to be an encoded secret.
const blob = "registry/blobs/sha256/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func BenchmarkText(b *testing.B) {
	s := newTagger(b)
	b.Run("ordinary", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, text := range ordinary {
				s.Text(text)
			}
		}
	})
	b.Run("resource", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Resource(ordinary[0], ordinary[0])
		}
	})
	b.Run("values", func(b *testing.B) {
		metadata := map[string]string{"env": "prod", "ticket": "OPS-4711", "deployment_environment": "eu-west-1"}
		b.ReportAllocs()
		for b.Loop() {
			s.Values(metadata)
		}
	})
	b.Run("digest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Resource(blob, blob)
		}
	})
	b.Run("secret", func(b *testing.B) {
		text := "https://h/sk_live" + "_4eC39HqLyjWDarjtT1zdp7dc/x"
		b.ReportAllocs()
		for b.Loop() {
			s.Text(text)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newScrubber(b)
	}
}

func TestText_AllocatesNothingForOrdinaryText(t *testing.T) {
	s := newTagger(t)
	if got := testing.AllocsPerRun(100, func() {
		for _, text := range ordinary {
			s.Text(text)
		}
		s.Resource(ordinary[0], ordinary[0])
		s.Text(blob)
	}); got != 0 {
		t.Errorf("scrubbing ordinary text allocates %v times, want never", got)
	}
}
