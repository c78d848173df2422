package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// A history row has the fields of a record that are not in its key. JSON would be twice as large
// and would take fifteen times as long to write: see BenchmarkRecord.
//
//	row        = version(1) filtered rest
//	version    = 09
//	filtered   = decision(1) time text(policy-id) text(agent-id) text(action-type)
//	rest       = text(intent-id) digest(intent-digest) zigzag(policy-version)
//	             text(resource) [cost] texts(metadata-keys) [metadata]
//	             texts(reasons) receipt text(issued-at) digest(audit-digest)
//	             [revisions] digest(details-digest) optional
//	revisions  = zigzag(policy-revision) zigzag(rules-revision) zigzag(agent-revision)
//	optional   = uvarint(n) n * (short(2) text), of storage.RecordTexts, and of
//	             "fi" storage.Record.PackFindings, "lo" storage.Record.PackLeftOut
//	cost       = zigzag(amount-minor) text(currency)
//	metadata   = uvarint(n) n * (text(key) text(value)), by key
//	receipt    = text(decision) text(decision-id) digest(digest) zigzag(exp)
//	             text(sig) text(kid)
//	settlement = text(outcome) [zigzag(amount-minor)] text(currency)
//	             text(external-ref) time releases(1)
//	time       = zigzag(Unix seconds) uvarint(nanoseconds), in UTC
//	digest     = 00 for the empty text | 01 and the 32 bytes of a SHA-256 | 02 text
//	text       = uvarint(length) bytes
//	texts      = 00 for none | uvarint(n+1) n * text
//	[x]        = 00 | 01 x
//
// The receipt's decision and decision-id should equal the record's. Then they are written as empty
// texts. Whether a settlement is unapproved follows from the decision and is not written. The
// settlement has a row of its own: see entries.go.
const recordVersion = 9

var errCorrupt = fmt.Errorf("a stored history row is %w", storage.ErrCorrupt)

// filtered codes a row's version and the fields that a filter uses.
func (c *codec) filtered(r *storage.Record) {
	c.version(recordVersion)
	decision := byte(r.Decision)
	if c.byte(&decision); c.reads {
		r.Decision = engine.Decision(decision)
	}
	c.time(&r.DecidedAt)
	c.text(&r.PolicyID)
	c.text(&r.AgentID)
	c.text(&r.ActionType)
}

// row codes r's row. A bare row is written without the signature of its receipt.
func (c *codec) row(r *storage.Record, bare bool) {
	c.receipt(r, bare)
	c.text(&r.IssuedAt)
	c.digest(&r.AuditDigest)
	if c.present(r.PolicyRevision != 0 || r.RulesRevision != 0 || r.AgentRevision != 0) {
		c.int(&r.PolicyRevision)
		c.int(&r.RulesRevision)
		c.int(&r.AgentRevision)
	}
	c.digest(&r.DetailsDigest)
	c.optional(r)
}

// receipt codes a row up to its receipt.
func (c *codec) receipt(r *storage.Record, bare bool) {
	c.filtered(r)
	c.text(&r.IntentID)
	c.digest(&r.IntentDigest)
	c.int(&r.PolicyVersion)
	c.text(&r.Resource)
	if c.present(r.Cost != nil) {
		if c.reads {
			r.Cost = new(engine.Cost)
		}
		c.int(&r.Cost.AmountMinor)
		c.text(&r.Cost.Currency)
	}
	c.texts(&r.MetadataKeys)
	if c.present(r.Metadata != nil) {
		c.metadata(&r.Metadata)
	}
	c.texts(&r.Reasons)
	c.usual(&r.Receipt.Decision, r.Decision.String())
	c.usual(&r.Receipt.DecisionID, r.DecisionID)
	c.digest(&r.Receipt.Digest)
	c.int(&r.Receipt.Exp)
	c.signed(&r.Receipt.Sig, &r.Receipt.KeyID, bare)
}

// usual codes a text. If the text is usual, it is written as the empty text.
func (c *codec) usual(s *string, usual string) {
	var other string
	if *s != usual {
		other = *s
	}
	if c.text(&other); !c.reads {
		return
	}
	if *s = other; other == "" {
		*s = usual
	}
}

// signed codes a signature and the id of its key. If bare is set, both are written as empty texts.
func (c *codec) signed(sig, keyID *string, bare bool) {
	if bare {
		sig, keyID = new(string), new(string)
	}
	c.text(sig)
	c.text(keyID)
}

func (c *codec) metadata(m *map[string]string) {
	n := c.count(len(*m))
	if !c.reads {
		for _, k := range slices.Sorted(maps.Keys(*m)) {
			v := (*m)[k]
			c.text(&k)
			c.text(&v)
		}
		return
	}
	*m = make(map[string]string, n)
	for range n {
		var k, v string
		c.text(&k)
		c.text(&v)
		(*m)[k] = v
	}
}

// The names of the packed Findings and LeftOut of a record, among the optional texts.
const (
	findingsShort = "fi"
	leftOutShort  = "lo"
)

// optional codes the texts of storage.RecordTexts, the Findings and the LeftOut that are not empty. Each
// may occur only once.
func (c *codec) optional(r *storage.Record) {
	if c.reads {
		c.readOptional(r)
		return
	}
	n, findings, leftOut := 0, string(r.PackFindings()), string(r.PackLeftOut())
	for i := range storage.RecordTexts {
		if *storage.RecordTexts[i].Of(r) != "" {
			n++
		}
	}
	for _, packed := range [...]string{findings, leftOut} {
		if packed != "" {
			n++
		}
	}
	c.count(n)
	for i := range storage.RecordTexts {
		t := &storage.RecordTexts[i]
		c.named(t.Short, *t.Of(r))
	}
	c.named(findingsShort, findings)
	c.named(leftOutShort, leftOut)
}

// named writes an optional text, unless it is empty.
func (c *codec) named(short, text string) {
	if text != "" {
		c.b = append(c.b, short...)
		c.text(&text)
	}
}

func (c *codec) readOptional(r *storage.Record) {
	var findings, leftOut string
	for range c.count(0) {
		var short [2]byte
		c.bytes(short[:])
		to := r.TextCalled(string(short[:]))
		switch string(short[:]) {
		case findingsShort:
			to = &findings
		case leftOutShort:
			to = &leftOut
		}
		switch {
		case to == nil:
			c.fail("text that this version of writ does not know")
			return
		case *to != "":
			c.fail("text that is there twice")
			return
		}
		c.text(to)
	}
	if err := cmp.Or(r.UnpackFindings([]byte(findings)), r.UnpackLeftOut([]byte(leftOut))); err != nil {
		c.fail(err.Error())
	}
}

// settled codes a settlement with its proof.
func (c *codec) settled(s *storage.Settlement, proof *receipt.Inclusion, bare bool) {
	c.version(settledVersion)
	c.text(&s.Outcome)
	if c.present(s.AmountMinor != nil) {
		if c.reads {
			s.AmountMinor = new(int64)
		}
		c.int(s.AmountMinor)
	}
	c.text(&s.Currency)
	c.text(&s.ExternalRef)
	c.time(&s.RecordedAt)
	s.Releases = c.present(s.Releases)
	c.signed(&proof.Sig, &proof.KeyID, bare)
}

// entry codes an entry that is not a settlement.
func (c *codec) entry(e *storage.Entry, bare bool) {
	c.version(entryVersion)
	c.text(&e.Key)
	c.signed(&e.Sig, &e.KeyID, bare)
	body := string(e.Body)
	if c.text(&body); c.reads {
		e.Body = []byte(body)
	}
}

// skips reports whether f does not select the row v. It allocates nothing, because most rows end
// here.
func skips(v string, f *storage.Filter) (bool, error) {
	if f == nil {
		return false, nil
	}
	var r storage.Record // its texts share v's memory and are not kept
	c := codec{reads: true, rest: v}
	c.filtered(&r)
	return c.err != nil || !f.MaySelect(&r), c.err
}

// parseRecord reads the row v of decision id. If f does not select the row, parseRecord returns nil
// and does not read all of v. The record's texts share the memory of v.
func parseRecord(org string, id uuid.UUID, v string, f *storage.Filter) (*storage.Record, error) {
	if skip, err := skips(v, f); skip {
		return nil, err
	}
	c, r := codec{reads: true, rest: v}, &storage.Record{OrganizationID: org, DecisionID: id.String()}
	c.row(r, false)
	if err := c.end(); err != nil {
		return nil, err
	}
	if f != nil && !f.Selects(r) {
		return nil, nil //nolint:nilnil // the filter does not select the row
	}
	return r, nil
}

// parseEntry reads an entry that is no settlement.
func parseEntry(org string, kind storage.EntryKind, v string) (*storage.Entry, error) {
	c, e := codec{reads: true, rest: v}, &storage.Entry{Kind: kind, OrganizationID: org}
	c.entry(e, false)
	if err := c.end(); err != nil {
		return nil, errors.Join(errCorruptEntry, err)
	}
	return e, nil
}

// parseSettlement sets r's settlement from v.
func parseSettlement(r *storage.Record, v string) error {
	c, settled := codec{reads: true, rest: v}, storage.Settlement{Receipt: new(receipt.Inclusion)}
	c.settled(&settled, settled.Receipt, false)
	r.Settle(settled)
	return c.end()
}
