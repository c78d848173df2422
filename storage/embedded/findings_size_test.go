package embedded

import (
	"testing"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestRecord_BytesOfFindings measures the stored bytes of findings and of left_out. An allow without a
// rule takes no byte more, a finding at most 40, and a row that lacks nothing at most 8.
func TestRecord_BytesOfFindings(t *testing.T) {
	id := uuid.Must(uuid.NewV7()).String()
	w := storagetest.NewWriter()
	plain := func(change func(r *storage.Record)) int {
		r := w.Record("org", func(r *storage.Record) {
			r.Reasons = []string{"rule.deny: no", "cost.exceeded: no", "session.not_allowed: no"}
			r.MetadataKeys, r.Metadata = []string{"env", "team"}, nil
			r.LeftOut = []string{"metadata.env", "metadata.team"}
		})
		before := len(appendRecord(nil, r))
		change(r)
		return len(appendRecord(nil, r)) - before
	}
	for name, tt := range map[string]struct {
		change func(r *storage.Record)
		most   int
	}{
		"nothing":              {func(*storage.Record) {}, 0},
		"the resource is lost": {func(r *storage.Record) { r.LeftOut = append(r.LeftOut, "resource") }, 4},
		"a rule": {func(r *storage.Record) {
			r.Findings = []storage.Finding{{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id, RuleRevision: 1 << 40}}
		}, 40},
		"a rule with a missing key": {func(r *storage.Record) {
			r.Findings = []storage.Finding{{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id, RuleRevision: 1 << 20, Cause: "missing", Field: "metadata.environment"}}
		}, 40},
		"a rule and two checks": {func(r *storage.Record) {
			r.Findings = []storage.Finding{
				{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: id, RuleRevision: 1 << 20},
				{Code: "cost.exceeded", Outcome: engine.Deny, Decides: true, Field: "policy.max_cost_minor"},
				{Code: "session.not_allowed", Outcome: engine.Deny, Decides: true, Field: "session.allowed_resource_patterns"},
			}
		}, 40},
		"metadata without keys": {func(r *storage.Record) {
			r.Metadata, r.MetadataKeys, r.LeftOut = map[string]string{}, nil, nil
		}, 8},
	} {
		if got := plain(tt.change); got > tt.most {
			t.Errorf("%s: %d bytes more, want at most %d", name, got, tt.most)
		}
	}
	whole := w.Record("org", func(r *storage.Record) { r.MetadataKeys, r.Metadata, r.LeftOut = nil, nil, nil })
	before := len(appendRecord(nil, whole))
	if whole.Metadata = map[string]string{}; len(appendRecord(nil, whole))-before > 8 {
		t.Errorf("metadata without keys takes %d bytes, want at most 8", len(appendRecord(nil, whole))-before)
	}
}
