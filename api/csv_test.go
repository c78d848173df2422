package api

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// cells returns the cells that any CSV reader would read from data.
func cells(t testing.TB, data string) [][]string {
	t.Helper()
	r := csv.NewReader(strings.NewReader(data))
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatalf("reading the CSV: %v\n%.500s", err, data)
	}
	return rows
}

func TestDecision_Resources_CSVNeutralisesSpreadsheetFormulas(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"deploy":                         "deploy",
		"https://example.com/a?b=c":      "https://example.com/a?b=c",
		`say "hi", twice`:                `say "hi", twice`,
		"a=b":                            "a=b",
		"a\r\nb":                         "a\nb", // the value that encoding/csv reads
		"=1+1":                           "'=1+1",
		"+1":                             "'+1",
		"-1":                             "'-1",
		"@SUM(A1)":                       "'@SUM(A1)",
		"\tx":                            "'\tx",
		"\nx":                            "'\nx",
		"  =1":                           "'  =1",
		"\u00a0=1":                       "'\u00a0=1",
		"\ufeff=1":                       "'\ufeff=1",
		"\u200b@x":                       "'\u200b@x",
		`"=1"`:                           `'"=1"`,
		`'=1`:                            `''=1`,
		` "' +x`:                         `' "' +x`,
		"＝1":                             "'＝1",
		"\x00=1":                         "'\x00=1",
		"\xff=1":                         "'\xff=1",
		`=HYPERLINK("http://x","click")`: `'=HYPERLINK("http://x","click")`,
		"a;=1":                           "a;=1",
		"*":                              "*",
		" ":                              " ",
		"a ":                             "a ",
	} {
		raw := string(appendCell(nil, in))
		if got := cells(t, raw+",x\r\n")[0][0]; got != want {
			t.Errorf("appendCell(%q) = %s, read as %q, want %q", in, raw, got, want)
		}
		if strings.ContainsAny(in, ";\t\r\n=+@\" ") && in != "" && raw[0] != '"' && in != "a=b" {
			t.Errorf("appendCell(%q) = %s, want it quoted", in, raw)
		}
	}
}

func FuzzCSVCell(f *testing.F) {
	for _, s := range []string{"", "a", "=1", " \t=", `"`, `'"-`, "a\r", "\r\n", "ü＝", "\xc3("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := string(appendCell(nil, s))
		rows := cells(t, "x,"+raw+",y\r\n")
		if len(rows) != 1 || len(rows[0]) != 3 {
			t.Fatalf("appendCell(%q) = %s, read as %q, want one cell", s, raw, rows)
		}
		got := rows[0][1]
		if want := strings.ReplaceAll(s, "\r\n", "\n"); got != want && got != "'"+want {
			t.Fatalf("appendCell(%q) = %s, read as %q", s, raw, got)
		}
		bare := strings.TrimLeftFunc(got, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r) || r == '"' || r == utf8.RuneError
		})
		if bare != "" && strings.ContainsAny(bare[:1], "=+-@") {
			t.Fatalf("appendCell(%q) = %s, which begins a formula", s, raw)
		}
	})
}

func TestCSV_EveryColumn(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 5000, time.UTC)
	amount := int64(0)
	full := &storage.Record{
		DecisionID: "d", DecidedAt: at.In(time.FixedZone("", 3600)), Decision: engine.Deny, Reasons: []string{"a: b", "=c"},
		IntentID: "i", IntentDigest: "sha256:0a", PolicyID: "p", PolicyVersion: 3, AgentID: "=agent", ActionType: "deploy",
		Resource: "-x", Cost: &engine.Cost{AmountMinor: 12, Currency: "EUR"}, MetadataKeys: []string{"@env", "t"},
		Metadata: map[string]string{"t": "1", "@env": "a;\"b\""}, IssuedAt: "2026-11-21T10:00:00Z",
		Settlement: &storage.Settlement{Outcome: "executed", AmountMinor: &amount, Currency: "USD", ExternalRef: "+ref", RecordedAt: at},
	}
	full.Credential, full.Writer, full.SessionID, full.ApprovalID = "key_1", "eu-1", "=s", "a"
	full.Sent = storage.Sent{AgentID: "=Agent", IssuedAt: "2026-11-21T10:00:00.0000000001Z", Resource: "-X"}
	full.Findings = []storage.Finding{{Code: "a", Outcome: engine.Deny, Decides: true, RuleID: "r", RuleRevision: 4, Cause: "missing", Field: "metadata.x"}, {Code: "=c", Outcome: engine.Allow}}
	full.LeftOut = []string{"issued_at", "metadata.t"}
	full.Receipt.Digest, full.Receipt.Exp, full.Receipt.KeyID, full.Receipt.Sig = "sha256:1f", 300, "-kid", "unseen"
	var rows csvRows
	rows.record(full)
	rows.record(&storage.Record{Decision: engine.Allow, DecidedAt: at, Settlement: &storage.Settlement{Outcome: "failed", RecordedAt: at}})
	rows.record(&storage.Record{Decision: engine.Allow, DecidedAt: at})
	got := cells(t, csvHeader+string(rows.buf))
	want := [][]string{
		strings.Split(strings.TrimSpace(csvHeader), ","),
		{
			"d", "2026-11-21T10:00:00.000005Z", "deny", "a: b; =c", "i", "sha256:0a", "p", "3", "'=agent", "deploy", "'-x",
			"12", "EUR", "'@env; t", `{"@env":"a;\"b\"","t":"1"}`, "2026-11-21T10:00:00Z", "sha256:1f", "300", "'-kid",
			"executed", "0", "USD", "'+ref", "2026-11-21T10:00:00.000005Z", "key_1", "eu-1", "'=s", "a",
			"'=Agent", "2026-11-21T10:00:00.0000000001Z", "'-X",
			`[{"cause":"missing","code":"a","decides":true,"field":"metadata.x","outcome":"deny","rule_id":"r","rule_revision":4},{"code":"=c","outcome":"allow"}]`,
			"issued_at; metadata.t",
		},
		{
			"", "2026-11-21T10:00:00.000005Z", "allow", "", "", "", "", "0", "", "", "", "", "", "", "", "", "", "0", "",
			"failed", "", "", "", "2026-11-21T10:00:00.000005Z", "", "", "", "", "", "", "", "", "",
		},
		{"", "2026-11-21T10:00:00.000005Z", "allow", "", "", "", "", "0", "", "", "", "", "", "", "", "", "", "0", "", "", "", "", "", "", "", "", "", "", "", "", "", "", ""},
	}
	same(t, "rows", want, got)
}
