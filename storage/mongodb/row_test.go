package mongodb

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

func TestRow_KeepsEveryText(t *testing.T) {
	id := uuid.Must(uuid.NewV7())
	for _, s := range []string{
		"", "a", "sha256:", "sha256:" + strings.Repeat("0a", 32), "sha256:" + strings.Repeat("0A", 32), "sha256:" + strings.Repeat("0a", 31),
		"sha256:" + strings.Repeat("0g", 32), "SHA256:" + strings.Repeat("0a", 32), strings.Repeat("0a", 32),
		"AA", "AB", "AA==", "AA\n", "A", "-_-_", "+/+/", "\x00", strings.Repeat("A", 1500), "ä\U0010ffff",
	} {
		amount := int64(-1)
		want := &storage.Record{
			OrganizationID: s, IntentID: uuid.NewString(), IntentDigest: s, DecisionID: id.String(), PolicyID: s, PolicyVersion: -1, AgentID: s, ActionType: s,
			Resource: s, Cost: &engine.Cost{AmountMinor: -1, Currency: s}, MetadataKeys: []string{s, s}, Metadata: map[string]string{s: s, "k": s},
			Decision: engine.Deny, Reasons: []string{s}, IssuedAt: s, DecidedAt: time.Unix(-1, 999_999_999).UTC(), Credential: s, AuditDigest: s,
			Writer: s, PolicyRevision: 1, RulesRevision: 2, AgentRevision: 3, SessionID: s, ApprovalID: uuid.NewString(), DetailsDigest: s,
			Sent:     storage.Sent{AgentID: s, IssuedAt: s, Resource: s},
			Findings: []storage.Finding{{Code: s, Outcome: engine.Deny, Decides: true, RuleID: s, RuleRevision: 1, Cause: s, Field: s}}, LeftOut: []string{s, "resource"},
			Receipt: receipt.Receipt{Decision: "x" + s, DecisionID: "x" + s, Digest: s, Exp: -1, Sig: s, KeyID: s},
		}
		want.Settle(storage.Settlement{
			Outcome: s, AmountMinor: &amount, Currency: s, ExternalRef: s, RecordedAt: time.Unix(1, 1).UTC(), Releases: s != "", Receipt: &receipt.Inclusion{Sig: s, KeyID: s},
		})
		for i := range reflect.TypeOf(*want).NumField() {
			if s != "" && reflect.ValueOf(*want).Field(i).IsZero() {
				t.Errorf("the field %s is not tested", reflect.TypeOf(*want).Field(i).Name)
			}
		}
		if s == "" {
			want.ApprovalID = ""
		}
		imported := storedRow(t, want, id)
		unsettled := *want
		unsettled.Settlement = nil
		raw, err := bson.Marshal(append(fieldsOf(t, storedRow(t, &unsettled, id)), doc("st", settlementRow(want.SettlementEntry()))...))
		must(t, err)
		if !bytes.Equal(raw, imported) {
			t.Errorf("the row that is settled later differs from the imported one\n%s\n%s", bson.Raw(raw), imported)
		}
		got, err := parseRow(s, raw)
		if err != nil {
			t.Fatalf("parseRow of %.20q = %v", s, err)
		}
		if diff := cmp.Diff(want, got.record); diff != "" {
			t.Errorf("row of %.20q: -want +got\n%s", s, diff)
		}
		if _, err := parseRow(s+"x", raw); err == nil {
			t.Errorf("parseRow of another organization's row = nil")
		}
		for n := 0; n < len(raw); n += 7 {
			if _, err := parseRow(s, raw[:n]); err == nil {
				t.Fatalf("parseRow of the first %d of %d bytes = nil", n, len(raw))
			}
		}
	}
}

func keyOf(t *testing.T, org, intentID, approvalID string) []byte {
	t.Helper()
	key, err := intentKey(org, intentID, approvalID)
	must(t, err)
	return key
}

func storedRow(t *testing.T, r *storage.Record, id uuid.UUID) bson.Raw {
	t.Helper()
	var c codec
	w := parsedRow{keyOf(t, r.OrganizationID, r.IntentID, r.ApprovalID), id, r}
	c.whole(func() { c.row(&w) })
	return c.out
}

func fieldsOf(t *testing.T, raw bson.Raw) (d bson.D) {
	t.Helper()
	must(t, bson.Unmarshal(raw, &d))
	return d
}

func TestAppend_OfMoreThanACommandTakes(t *testing.T) {
	s, w := openTest(t, newDatabase(t, sharedSet(t))), storagetest.NewWriter()
	batch := make([]*storage.Record, 7)
	for i := range batch {
		batch[i] = w.Record("org", func(r *storage.Record) { r.Resource = strings.Repeat("x", 1<<20) })
	}
	mustCommit(t, w, s, batch...)
	storagetest.Check(t, s, w.Keys(t), "org")
}
