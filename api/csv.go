package api

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// The export of the history is CSV as RFC 4180 defines it, in UTF-8 without a byte order mark. Lines end in CR LF. The
// first line names the columns:
//
//	decision_id, decided_at, decision, reasons, intent_id, intent_digest,
//	policy_id, policy_version, agent_id, action_type, resource,
//	cost_amount_minor, cost_currency, metadata_keys, metadata, issued_at,
//	receipt_digest, receipt_exp, receipt_kid,
//	outcome, outcome_amount_minor, outcome_currency, external_ref, recorded_at,
//	credential, writer, session_id, approval_id,
//	sent_agent_id, sent_issued_at, sent_resource,
//	findings, left_out
//
// A member that a row lacks has an empty cell. Lists are joined by "; ". The metadata is a JSON
// object, and the findings are a JSON array. Only the audit mode full fills metadata and the columns
// whose names begin with sent_. Times are RFC 3339 in UTC, with two exceptions: issued_at has the form
// that the intent had, and receipt_exp is Unix seconds. The columns from outcome to recorded_at
// describe the settlement of the action.
//
// A text that a spreadsheet would run as a formula gets a leading apostrophe. Such a text begins
// with = + - @ (or their full-width forms), a tab or a line break, possibly after white space and
// quotes. To restore a cell, remove one leading apostrophe if a formula in this sense follows it.
var csvHeader = csvColumns + recordTexts() + ",findings,left_out\r\n"

const csvColumns = "decision_id,decided_at,decision,reasons,intent_id,intent_digest," +
	"policy_id,policy_version,agent_id,action_type,resource," +
	"cost_amount_minor,cost_currency,metadata_keys,metadata,issued_at," +
	"receipt_digest,receipt_exp,receipt_kid," +
	"outcome,outcome_amount_minor,outcome_currency,external_ref,recorded_at"

func recordTexts() (columns string) {
	for _, t := range storage.RecordTexts {
		columns += "," + t.Name
	}
	return columns
}

type csvRows struct {
	buf  []byte
	cell []byte // a buffer for joining lists
}

func (c *csvRows) record(r *storage.Record) {
	c.own(r.DecisionID)
	c.time(r.DecidedAt)
	c.own(r.Decision.String())
	c.list(r.Reasons)
	c.text(r.IntentID)
	c.own(r.IntentDigest)
	c.text(r.PolicyID)
	c.number(r.PolicyVersion)
	c.text(r.AgentID)
	c.text(r.ActionType)
	c.text(r.Resource)
	if r.Cost != nil {
		c.number(r.Cost.AmountMinor)
		c.text(r.Cost.Currency)
	} else {
		c.empty(2)
	}
	c.list(r.MetadataKeys)
	c.metadata(r.Metadata)
	c.text(r.IssuedAt)
	c.own(r.Receipt.Digest)
	c.number(r.Receipt.Exp)
	c.text(r.Receipt.KeyID)
	c.settlement(r.Settlement)
	for i := range storage.RecordTexts {
		c.text(*storage.RecordTexts[i].Of(r))
	}
	c.findings(r.Findings)
	c.list(r.LeftOut)
	c.buf = append(c.buf[:len(c.buf)-1], '\r', '\n')
}

func (c *csvRows) settlement(s *storage.Settlement) {
	if s == nil {
		c.empty(5)
		return
	}
	c.text(s.Outcome)
	if s.AmountMinor != nil {
		c.number(*s.AmountMinor)
	} else {
		c.empty(1)
	}
	c.text(s.Currency)
	c.text(s.ExternalRef)
	c.time(s.RecordedAt)
}

func (c *csvRows) empty(cells int) {
	for range cells {
		c.buf = append(c.buf, ',')
	}
}

func (c *csvRows) number(n int64) {
	c.buf = append(strconv.AppendInt(c.buf, n, 10), ',')
}

func (c *csvRows) time(t time.Time) {
	c.buf = append(t.UTC().AppendFormat(c.buf, time.RFC3339Nano), ',')
}

func (c *csvRows) list(items []string) {
	if len(items) == 1 {
		c.text(items[0])
		return
	}
	c.cell = c.cell[:0]
	for i, item := range items {
		if i > 0 {
			c.cell = append(c.cell, "; "...)
		}
		c.cell = append(c.cell, item...)
	}
	c.text(string(c.cell))
}

func (c *csvRows) findings(all []storage.Finding) {
	if len(all) == 0 {
		c.empty(1)
		return
	}
	c.cell = ledger.AppendFindings(c.cell[:0], all)
	c.text(string(c.cell))
}

func (c *csvRows) metadata(m map[string]string) {
	if m == nil {
		c.empty(1)
		return
	}
	c.cell = receipt.AppendMap(c.cell[:0], m)
	c.text(string(c.cell))
}

// own appends a text that writ itself generated. Such a text needs no quotes.
func (c *csvRows) own(s string) {
	c.buf = append(append(c.buf, s...), ',')
}

func (c *csvRows) text(s string) {
	c.buf = append(appendCell(c.buf, s), ',')
}

// appendCell appends a text as one cell. It quotes every text that is not plain, because some programs split lines at
// semicolons or tabs.
func appendCell(dst []byte, s string) []byte {
	if isPlain(s) {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	if isFormula(s) {
		dst = append(dst, '\'')
	}
	for {
		i := 0
		for i < len(s) && s[i] != '"' {
			i++
		}
		dst = append(dst, s[:i]...)
		if i == len(s) {
			return append(dst, '"')
		}
		dst = append(dst, '"', '"')
		s = s[i+1:]
	}
}

// isPlain reports whether s needs no quotes. A plain text is empty, or begins with a letter, a
// digit or a slash. It has only letters, digits and the other characters of identifiers and URLs.
func isPlain(s string) bool {
	for i := range len(s) {
		switch b := s[i]; {
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b >= 'A' && b <= 'Z', b == '/':
		case i > 0 &&
			(b == '-' || b == ':' || b == '.' || b == '_' || b == '%' || b == '*' || b == ' ' && i < len(s)-1):
		default:
			return false
		}
	}
	return true
}

// isFormula reports whether a spreadsheet may run s as a formula. OWASP describes this in "CSV Injection".
func isFormula(s string) bool {
	for _, r := range s {
		switch r {
		case '=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r', '\n':
			return true
		case '"', '\'', '`', '“', '”', '‘', '’', utf8.RuneError:
			continue
		}
		if !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) {
			return false
		}
	}
	return false
}
