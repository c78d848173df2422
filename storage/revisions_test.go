package storage

import (
	"math"
	"testing"
)

func FuzzParseRevisionID(f *testing.F) {
	for _, id := range hostile {
		f.Add([]byte(RevisionID(RuleKind, id, 7)))
	}
	f.Add([]byte{})
	f.Add([]byte{byte(ListKind), 0, 0xff, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, position []byte) {
		kind, id, since, err := ParseRevisionID(position)
		if err == nil && RevisionID(kind, id, since) != string(position) {
			t.Errorf("ParseRevisionID(%x) = %q, %q, %d, whose id is %x", position, kind, id, since, RevisionID(kind, id, since))
		}
	})
}

func TestParseRevisionID(t *testing.T) {
	for _, id := range hostile {
		for _, since := range []int64{0, 1, 255, 256, math.MaxInt64} {
			kind, got, at, err := ParseRevisionID([]byte(RevisionID(ListKind, id, since)))
			if kind != ListKind || got != id || at != since || err != nil {
				t.Errorf("ParseRevisionID of %q, %d = %q, %q, %d, %v", id, since, kind, got, at, err)
			}
		}
	}
}
