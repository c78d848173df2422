package mongodb

import (
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestRow_BytesOfFindings measures the stored bytes of findings and of left_out. An allow without a
// rule takes no byte more, a finding at most 40, and a row that lacks nothing at most 8.
func TestRow_BytesOfFindings(t *testing.T) {
	id := uuid.Must(uuid.NewV7())
	r := storagetest.NewWriter().Record("org", func(r *storage.Record) {
		r.Reasons = []string{"rule.deny: no"}
		r.MetadataKeys, r.Metadata, r.LeftOut = []string{"env"}, nil, []string{"metadata.env"}
	})
	before := len(storedRow(t, r, id))
	for name, tt := range map[string]struct {
		change storage.Finding
		most   int
	}{
		"a check": {storage.Finding{Code: "rule.deny", Outcome: engine.Deny, Decides: true, Field: "policy.status"}, 40},
		"a rule":  {storage.Finding{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id.String(), RuleRevision: 1 << 40}, 40},
		"a rule with a missing key": {storage.Finding{
			Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id.String(), RuleRevision: 1 << 20, Cause: "missing", Field: "metadata.team",
		}, 40},
	} {
		row := *r
		row.Findings = []storage.Finding{tt.change}
		if got := len(storedRow(t, &row, id)) - before; got > tt.most {
			t.Errorf("%s: %d bytes more, want at most %d", name, got, tt.most)
		}
	}
	whole := *r
	whole.MetadataKeys, whole.LeftOut = nil, nil
	before = len(storedRow(t, &whole, id))
	if whole.Metadata = map[string]string{}; len(storedRow(t, &whole, id))-before > 8 {
		t.Errorf("metadata without keys takes %d bytes, want at most 8", len(storedRow(t, &whole, id))-before)
	}
	bare := *r
	bare.LeftOut = nil
	if len(storedRow(t, &bare, id)) < len(storedRow(t, r, id)) {
		t.Errorf("left_out of a mode alone takes bytes")
	}
}
