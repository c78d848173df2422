package decisionlog

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// opaEvent is an event of OPA's decision log, as far as a row fills it. OPA's type is EventV1 of its
// package plugins/logs.
type opaEvent struct {
	Labels      map[string]string `json:"labels"`
	DecisionID  string            `json:"decision_id"`
	Path        string            `json:"path"`
	Input       opaInput          `json:"input"`
	Result      opaResult         `json:"result"`
	Erased      []string          `json:"erased,omitempty"`
	RequestedBy string            `json:"requested_by,omitempty"`
	Timestamp   time.Time         `json:"timestamp"`
	Custom      opaCustom         `json:"custom"`
}

type opaInput struct {
	Intent *engine.Intent `json:"intent"`
}

type opaResult struct {
	Decision      engine.Decision   `json:"decision"`
	Reasons       []string          `json:"reasons"`
	Findings      []storage.Finding `json:"findings,omitempty"`
	PolicyVersion int64             `json:"policy_version"`
	RulesRevision int64             `json:"rules_revision,omitzero"`
}

// opaCustom has the members of a row for which OPA's event has no member of its own.
type opaCustom struct {
	IntentDigest string              `json:"intent_digest"`
	AuditDigest  string              `json:"audit_digest,omitzero"`
	MetadataKeys []string            `json:"metadata_keys,omitempty"`
	Receipt      receipt.Receipt     `json:"receipt"`
	Settlement   *storage.Settlement `json:"settlement,omitzero"`
	ApprovalID   string              `json:"approval_id,omitzero"`
	Writer       string              `json:"writer,omitzero"`
}

// opaPath is the document of `writ rego --core`.
const opaPath = "writ/core/result"

// OPA returns the JSON of a row as an event of OPA's decision log. The input is the intent as the row has
// it. erased has the JSON pointers of the members that the row lacks. requested_by has the credential.
func OPA(r *storage.Record) ([]byte, error) {
	e := opaEvent{
		Labels:     map[string]string{"app": "writ", "organization_id": r.OrganizationID},
		DecisionID: r.DecisionID, Path: opaPath, Input: opaInput{r.Intent()},
		Result:      opaResult{r.Decision, r.Reasons, r.Findings, r.PolicyVersion, r.RulesRevision},
		RequestedBy: r.Credential, Timestamp: r.DecidedAt.UTC(),
		Custom: opaCustom{
			r.IntentDigest, r.AuditDigest, r.MetadataKeys, r.Receipt, r.Settlement, r.ApprovalID, r.Writer,
		},
	}
	for _, member := range r.LeftOut {
		e.Erased = append(e.Erased, erased(member))
	}
	return json.Marshal(&e, json.FormatNilSliceAsNull(false), json.Deterministic(true))
}

// erased returns the JSON pointer of a member that a row lacks.
func erased(member string) string {
	at := "/input/intent/"
	if key, ok := strings.CutPrefix(member, storage.MetadataField); ok {
		at, member = at+"metadata/", key
	}
	return at + strings.NewReplacer("~", "~0", "/", "~1").Replace(member)
}
