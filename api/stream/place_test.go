package stream

import (
	"errors"
	"maps"
	"testing"
)

func FuzzParsePlace(f *testing.F) {
	p := Place{{1}: {5, 0}, {2}: {1 << 60, 300}}
	for _, id := range []string{"", "x", Place{}.ID("org"), p.ID("org"), p.ID("other")} {
		f.Add("org", id)
	}
	f.Fuzz(func(t *testing.T, org, id string) {
		p, err := ParsePlace(org, id)
		switch {
		case err != nil && !errors.Is(err, ErrBadPlace):
			t.Errorf("ParsePlace = %v, want %v", err, ErrBadPlace)
		case err == nil && p.ID(org) != id:
			t.Errorf("ParsePlace(%q).ID = %q", id, p.ID(org))
		}
	})
}

func TestPlace_HasOneIDForEachOrganization(t *testing.T) {
	p := Place{{1}: {5, 0}, {2}: {1 << 60, 300}}
	got, err := ParsePlace("org", p.ID("org"))
	if err != nil || !maps.Equal(got, p) {
		t.Errorf("ParsePlace(ID) = %v, %v, want %v", got, err, p)
	}
	if _, err := ParsePlace("other", p.ID("org")); !errors.Is(err, ErrBadPlace) {
		t.Errorf("ParsePlace of another organization = %v, want %v", err, ErrBadPlace)
	}
}
