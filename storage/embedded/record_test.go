package embedded

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// records returns rows with every field, with no field, and with unusual values.
func records() map[string]*storage.Record {
	w := storagetest.NewWriter()
	id := uuid.Must(uuid.Parse("01890a5d-ac96-774b-bcce-b302099a8057")).String()
	return map[string]*storage.Record{
		"full":  w.Record("org"),
		"empty": {OrganizationID: "org", DecisionID: id, Decision: engine.Deny, Receipt: receipt.Receipt{Decision: "deny", DecisionID: id}},
		"receipt of another": w.Record("org", func(r *storage.Record) {
			r.Receipt.Decision, r.Receipt.DecisionID = "allow", "other"
		}),
		"empty but not nil": w.Record("org", func(r *storage.Record) {
			r.MetadataKeys, r.Reasons, r.Metadata = []string{}, []string{}, map[string]string{}
		}),
		"extremes": w.Record("org", func(r *storage.Record) {
			r.PolicyVersion, r.Cost = -1<<63, &engine.Cost{AmountMinor: 1<<63 - 1}
			r.DecidedAt = time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
			r.Resource = "\xff\x00"
			r.Writer, r.PolicyRevision, r.RulesRevision, r.AgentRevision = "eu-1", 1, -1<<63, 1<<63-1
			r.SessionID, r.ApprovalID, r.DetailsDigest = "\xff", "a", "sha256:"+strings.Repeat("1c", 32)
			r.Sent = storage.Sent{AgentID: "A", IssuedAt: "t", Resource: "\xff"}
			r.Findings = []storage.Finding{{Code: "\xff", RuleID: "r", RuleRevision: -1, Cause: "c", Field: "metadata.\xff"}}
			r.LeftOut = []string{"resource", "metadata.\xff"}
		}),
	}
}

// appendRecord appends r's row to dst.
func appendRecord(dst []byte, r *storage.Record) []byte {
	c := codec{b: dst}
	c.row(r, false)
	return c.b
}

func TestRecord_RoundTrip(t *testing.T) {
	for name, r := range records() {
		t.Run(name, func(t *testing.T) {
			row := appendRecord(nil, r)
			got, err := parseRecord(r.OrganizationID, uuid.MustParse(r.DecisionID), string(row), nil)
			if diff := cmp.Diff(r, got); diff != "" || err != nil {
				t.Errorf("parseRecord(appendRecord(r)) = %v, -want +got\n%s", err, diff)
			}
			if again := appendRecord(nil, got); !bytes.Equal(again, row) {
				t.Errorf("appendRecord of what was parsed = %x, want %x", again, row)
			}
		})
	}
}

// TestRecord_Damaged checks that a row that is too short or too long is an error.
func TestRecord_Damaged(t *testing.T) {
	r := records()["full"]
	id, row := uuid.MustParse(r.DecisionID), appendRecord(nil, r)
	for n := range row {
		if got, err := parseRecord("org", id, string(row[:n]), nil); !errors.Is(err, errCorrupt) {
			t.Fatalf("parseRecord of the first %d bytes = %+v, %v; want errCorrupt", n, got, err)
		}
	}
	for name, bad := range map[string][]byte{
		"longer":        append(bytes.Clone(row), 0),
		"newer version": append([]byte{recordVersion + 1}, row[1:]...),
		"older version": append([]byte{recordVersion - 1}, row[1:]...),
	} {
		if got, err := parseRecord("org", id, string(bad), nil); !errors.Is(err, errCorrupt) {
			t.Errorf("parseRecord of a %s row = %+v, %v; want errCorrupt", name, got, err)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, r := range records() {
		f.Add(appendRecord(nil, r))
	}
	id := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
	f.Fuzz(func(t *testing.T, row []byte) {
		r, err := parseRecord("org", id, string(row), nil)
		if err != nil {
			return
		}
		again, err := parseRecord("org", id, string(appendRecord(nil, r)), nil)
		if diff := cmp.Diff(r, again); diff != "" || err != nil {
			t.Errorf("parseRecord(appendRecord(r)) = %v, -want +got\n%s", err, diff)
		}
	})
}

// BenchmarkRecord compares the encoding of a row with JSON. B/row is the size.
func BenchmarkRecord(b *testing.B) {
	r := benchRecord(1)
	row := appendRecord(nil, r)
	text, err := json.Marshal(r)
	must(b, err)
	id := uuid.MustParse(r.DecisionID)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			row = appendRecord(row[:0], r)
		}
		b.ReportMetric(float64(len(row)), "B/row")
	})
	b.Run("encode=json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(r); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(text)), "B/row")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parseRecord("org", id, string(row), nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode=json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, json.Unmarshal(text, new(storage.Record)))
		}
	})
	b.Run("filter", func(b *testing.B) {
		b.ReportAllocs()
		f := &storage.Filter{AgentIDs: []string{"another"}}
		for b.Loop() {
			if _, err := parseRecord("org", id, string(row), f); err != nil {
				b.Fatal(err)
			}
		}
	})
}
