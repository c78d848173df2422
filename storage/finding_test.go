package storage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"writ.example/writ/engine"
)

// TestPacked_RoundTrip packs findings and left_out with ordinary and with unusual values, and reads
// them back.
func TestPacked_RoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	for range 2_000 {
		r, id := &Record{}, uuid.Must(uuid.NewV7()).String()
		for range rng.IntN(4) {
			f := Finding{
				Code: pick("rule.deny", "", "x", "cost.exceeded"), Outcome: engine.Decision(rng.IntN(4)), Decides: rng.IntN(2) == 0,
				RuleID: pick("", id, id, "A", "\xff"), RuleRevision: []int64{0, 1, -1 << 63, 1 << 62}[rng.IntN(4)],
				Cause: pick("", "missing", "broken", "other", "\x00"), Field: pick("", "metadata.", "metadata.env", "cost", "policy.status", "session.expires_at", "elsewhere"),
			}
			r.Findings = append(r.Findings, f)
			r.Reasons = append(r.Reasons, pick(f.Code+": no", "rule.deny: no", "", "no code"))
		}
		if rng.IntN(5) == 0 {
			r.Reasons = r.Reasons[:len(r.Reasons)/2]
		}
		if rng.IntN(3) == 0 {
			r.Metadata = map[string]string{}
		}
		for range rng.IntN(4) {
			key := pick("a", "b", "c", "")
			r.MetadataKeys = append(r.MetadataKeys, key)
			if rng.IntN(4) > 0 {
				r.LeftOut = append(r.LeftOut, MetadataField+key)
			}
		}
		for range rng.IntN(3) {
			r.LeftOut = append(r.LeftOut, pick(append(leavable, "", "unknown", "metadata.z")...))
		}
		if rng.IntN(2) == 0 {
			slices.Sort(r.LeftOut)
		}
		findings, left := r.PackFindings(), r.PackLeftOut()
		got := &Record{Reasons: r.Reasons, Metadata: r.Metadata, MetadataKeys: r.MetadataKeys}
		if err := got.UnpackFindings(findings); err != nil {
			t.Fatalf("UnpackFindings(%x) = %v, of %+v", findings, err, r.Findings)
		}
		if err := got.UnpackLeftOut(left); err != nil {
			t.Fatalf("UnpackLeftOut(%x) = %v, of %q", left, err, r.LeftOut)
		}
		if diff := cmp.Diff(r, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("packed as %x and %x, -want +got:\n%s", findings, left, diff)
		}
		for n := range findings { // every cut is an error, or ends between two findings
			cut := &Record{Reasons: r.Reasons}
			if err := cut.UnpackFindings(findings[:n]); err == nil && !slices.Equal(cut.Findings, r.Findings[:len(cut.Findings)]) {
				t.Fatalf("the first %d bytes of %x are read as %+v", n, findings, cut.Findings)
			}
		}
	}
}

// TestPacked_Sizes holds the bytes of packed findings. Nothing is stored of a row that lacks what its
// mode leaves out.
func TestPacked_Sizes(t *testing.T) {
	id := uuid.Must(uuid.NewV7()).String()
	for _, tt := range []struct {
		reason string
		f      Finding
		most   int
	}{
		{"cost.exceeded: no", Finding{Code: "cost.exceeded", Outcome: engine.Deny, Decides: true, Field: "policy.max_cost_minor"}, 2},
		{"agent.disabled: no", Finding{Code: "agent.disabled", Outcome: engine.Deny, Decides: true}, 1},
		{"rule.deny: no", Finding{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id, RuleRevision: 1_000_000}, 21},
		{"rule.deny: no", Finding{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id, RuleRevision: 1_000_000, Cause: "missing", Field: "metadata.environment"}, 33},
	} {
		r := &Record{Reasons: []string{tt.reason}, Findings: []Finding{tt.f}}
		if n := len(r.PackFindings()); n > tt.most {
			t.Errorf("%+v takes %d bytes, want at most %d", tt.f, n, tt.most)
		}
	}
	for _, tt := range []struct {
		r    Record
		want int
	}{
		{Record{}, 0},
		{Record{MetadataKeys: []string{"a", "b"}, LeftOut: []string{"metadata.a", "metadata.b"}}, 0},
		{Record{MetadataKeys: []string{"a"}, LeftOut: []string{"metadata.a", "resource"}}, 1},
		{Record{LeftOut: []string{"action_type", "agent_id", "issued_at", "resource"}}, 1},
	} {
		if got := len(tt.r.PackLeftOut()); got != tt.want {
			t.Errorf("left_out %q takes %d bytes, want %d", tt.r.LeftOut, got, tt.want)
		}
	}
}

// TestPacked_HasRoom checks that the places of all causes and fields fit into the byte that has them.
func TestPacked_HasRoom(t *testing.T) {
	if n := firstField + len(fields); n > 1<<5 {
		t.Errorf("there are %d fields, and why has room for %d", n, 1<<5)
	}
	if len(causes) > textCause {
		t.Errorf("there are %d causes, and why has room for %d", len(causes), textCause)
	}
}
