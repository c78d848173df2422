package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// A record is stored as the following document. The method row names the fields in this order.
// Empty fields are left out, except the first ten.
//
//	_id  text(org) ids          d   decision id          at  time of decision, in milliseconds
//	o    organization           k   decision             ns  its nanoseconds below that
//	a    agent id               p   policy id            t   action type
//	s    receipt: {h: digest, e: exp, s: sig, kid, and where they are not the record's k: decision, d: decision id}
//
//	pv   policy version         id  intent digest        r   resource
//	c    cost: {n, c}           mk  metadata keys        m   metadata: keys and values in turn
//	w    reasons                i   issued at            by  credential
//	ad   audit digest           wr  writer               pr, rr, ar  revisions of policy, rules, agent
//	se   session id             ap  approval id          dd  digest of details
//	y    findings               u   what the row lacks: as storage.Record packs them
//	st   settlement: {o: outcome, at, ns: recorded at, s: sig, kid, n: amount, c: currency, x: external ref,
//	     rl: 1 if it releases}
//
// The ids in _id are the 16 bytes of the intent's id and, if there is an approval, the 16 bytes of the approval's id.
//
// Digests and signatures are stored as binary data if their texts are canonical. Every genuine
// digest or signature is canonical.

// intentKey returns the _id of the record of an intent. approvalID may be empty. Other ids than UUIDs are refused.
func intentKey(org, intentID, approvalID string) ([]byte, error) {
	return appendIntentKey(nil, org, intentID, approvalID)
}

func appendIntentKey(dst []byte, org, intentID, approvalID string) ([]byte, error) {
	dst = storage.AppendText(slices.Grow(dst, len(org)+2+2*idLen), org)
	id, ok := storage.ParseID(intentID)
	dst = append(dst, id[:]...)
	if ok && approvalID != "" {
		id, ok = storage.ParseID(approvalID)
		dst = append(dst, id[:]...)
	}
	if !ok {
		return nil, refuse(fmt.Errorf("the intent %.64q or its approval %.64q has an id that is no UUID", intentID,
			approvalID))
	}
	return dst, nil
}

// parseIntent returns the ids in a key after its organization.
func parseIntent(key string) (intentID, approvalID string, ok bool) {
	switch len(key) {
	case 2 * idLen:
		approvalID = uuid.UUID([]byte(key[idLen:])).String()
		fallthrough
	case idLen:
		return uuid.UUID([]byte(key[:idLen])).String(), approvalID, true
	}
	return "", "", false
}

// tombstonesOf yields filters that together select org's tombstones. There is one filter for each
// length of an intent's key, because the server orders keys by length first.
func tombstonesOf(org string) iter.Seq[bson.D] {
	return func(yield func(bson.D) bool) {
		for keys := range intentKeys(org) {
			if !yield(append(keys, doc(recordRemoved, doc("$exists", true))...)) {
				return
			}
		}
	}
}

// intentKeys yields filters that together select the _id of org's records, one for each length.
func intentKeys(org string) iter.Seq[bson.D] {
	return func(yield func(bson.D) bool) {
		_ = yield(keysOf(org, 1)) && yield(keysOf(org, 2))
	}
}

// keysOf selects the _id of org's records with one id, or with two.
func keysOf(org string, ids int) bson.D {
	return doc("_id", doc("$gte", append(storage.Text(org), make([]byte, ids*idLen)...),
		"$lte", append(storage.Text(org), bytes.Repeat([]byte{0xff}, ids*idLen)...)))
}

// onShard adds the range of _id to a filter that selects records of org, if the server is a mongos. It then asks
// only the shards that have this range, because records are sharded by _id. Otherwise it would ask all shards.
func (s *database) onShard(org string, selected bson.D) bson.D {
	if !s.sharded {
		return selected
	}
	var ranges bson.A
	for keys := range intentKeys(org) {
		ranges = append(ranges, keys)
	}
	return doc("$and", bson.A{selected, doc("$or", ranges)})
}

// byTombstone is the index of tombstones.
var byTombstone = doc("_id", 1, recordRemoved, 1)

// tombstones reads the tombstones that a filter selects. The hint names the index of tombstones.
// Without the hint the server would use the index of all intents.
func (s *database) tombstones(ctx context.Context, selected bson.D) (*mongo.Cursor, error) {
	return s.records().Find(ctx, selected, options.Find().SetHint(byTombstone))
}

type parsedRow struct {
	intent []byte // key of the intent, which is the row's _id
	id     uuid.UUID
	record *storage.Record
}

// parseRow parses a row or a tombstone of org. The record of a tombstone is Removed.
func parseRow(org string, raw bson.Raw) (parsedRow, error) {
	r := new(storage.Record)
	c, w, removed := codec{reading: true}, parsedRow{record: r}, false
	c.read(raw, func() {
		c.row(&w)
		if removed = c.id(recordRemoved, &w.id); removed {
			c.in, r.OrganizationID = nil, org // for the fields see tombstone
		}
	})
	key, ok := strings.CutPrefix(string(w.intent), string(storage.Text(org)))
	if !ok || r.OrganizationID != org {
		c.fail(fmt.Sprintf("row of %q in the place of one of %q", r.OrganizationID, org))
	}
	r.DecisionID = w.id.String()
	approval := r.ApprovalID
	if r.IntentID, r.ApprovalID, ok = parseIntent(key); !ok {
		c.fail(fmt.Sprintf("row whose key has ids of %d bytes", len(key)))
	}
	if removed {
		return w, c.err
	}
	if r.ApprovalID != approval {
		c.fail(fmt.Sprintf("row of approval %q in the place of one of %q", approval, r.ApprovalID))
	}
	if r.Receipt.Decision == "" {
		r.Receipt.Decision = r.Decision.String()
	}
	if r.Receipt.DecisionID == "" {
		r.Receipt.DecisionID = r.DecisionID
	}
	return w, c.err
}

func (c *codec) row(w *parsedRow) {
	r := w.record
	c.binary("_id", &w.intent)
	c.text(recordOrg, &r.OrganizationID)
	c.id(recordID, &w.id)
	decision := int32(r.Decision)
	if c.int32(recordDecision, &decision); c.reading { // when writing, others may read r
		r.Decision = engine.Decision(decision) //nolint:gosec // the value was written by this code
	}
	c.text(recordAgent, &r.AgentID)
	c.text(recordPolicy, &r.PolicyID)
	c.text(recordType, &r.ActionType)
	c.time(&r.DecidedAt)
	c.document(recordReceipt, true, func() { c.receipt(r) })
	c.optionalInt("pv", &r.PolicyVersion)
	c.packed("id", &r.IntentDigest, &digest)
	c.optional("r", &r.Resource)
	c.document("c", r.Cost != nil, func() {
		if c.reading {
			r.Cost = new(engine.Cost)
		}
		c.int64("n", &r.Cost.AmountMinor)
		c.optional("c", &r.Cost.Currency)
	})
	c.texts("mk", &r.MetadataKeys)
	c.metadata(r)
	c.texts("w", &r.Reasons)
	c.optional("i", &r.IssuedAt)
	c.packed("ad", &r.AuditDigest, &digest)
	c.optionalInt("pr", &r.PolicyRevision)
	c.optionalInt("rr", &r.RulesRevision)
	c.optionalInt("ar", &r.AgentRevision)
	c.packed("dd", &r.DetailsDigest, &digest)
	c.findings(r)
	for i := range storage.RecordTexts {
		t := &storage.RecordTexts[i]
		c.optional(t.Short, t.Of(r))
	}
	c.document(recordSettlement, r.Settlement != nil, func() {
		if !c.reading { // an imported row has its receipt already
			c.settlement(r.Settlement)
			return
		}
		s := storage.Settlement{Receipt: new(receipt.Inclusion)}
		c.settlement(&s)
		r.Settle(s)
	})
}

// findings writes or reads the Findings and the LeftOut of a record.
func (c *codec) findings(r *storage.Record) {
	var findings, leftOut []byte
	if !c.reading {
		if findings = r.PackFindings(); len(findings) > 0 {
			c.binary("y", &findings)
		}
		if leftOut = r.PackLeftOut(); len(leftOut) > 0 {
			c.binary("u", &leftOut)
		}
		return
	}
	c.binary("y", &findings)
	c.binary("u", &leftOut)
	if err := cmp.Or(r.UnpackFindings(findings), r.UnpackLeftOut(leftOut)); err != nil {
		c.fail(err.Error())
	}
}

func (c *codec) metadata(r *storage.Record) {
	var pairs []string
	if r.Metadata != nil {
		pairs = make([]string, 0, 2*len(r.Metadata))
		for _, k := range slices.Sorted(maps.Keys(r.Metadata)) {
			pairs = append(pairs, k, r.Metadata[k])
		}
	}
	if c.texts("m", &pairs); c.reading && pairs != nil {
		r.Metadata = make(map[string]string, len(pairs)/2)
		for i := 1; i < len(pairs); i += 2 {
			r.Metadata[pairs[i-1]] = pairs[i]
		}
	}
}

func (c *codec) receipt(r *storage.Record) {
	c.packed("h", &r.Receipt.Digest, &digest)
	c.int64("e", &r.Receipt.Exp)
	c.packed("s", &r.Receipt.Sig, &sig)
	c.text("kid", &r.Receipt.KeyID)
	if c.reading || r.Receipt.Decision != r.Decision.String() {
		c.text("k", &r.Receipt.Decision)
	}
	if c.reading || r.Receipt.DecisionID != r.DecisionID {
		c.text("d", &r.Receipt.DecisionID)
	}
}

func (c *codec) settlement(s *storage.Settlement) {
	c.text("o", &s.Outcome)
	c.time(&s.RecordedAt)
	c.packed("s", &s.Receipt.Sig, &sig)
	c.text("kid", &s.Receipt.KeyID)
	if amount := int64(0); s.AmountMinor != nil {
		c.int64("n", s.AmountMinor)
	} else if c.reading && c.int64("n", &amount) {
		s.AmountMinor = &amount
	}
	c.optional("c", &s.Currency)
	c.optional("x", &s.ExternalRef)
	releases := int64(0)
	if s.Releases {
		releases = 1
	}
	c.optionalInt("rl", &releases)
	s.Releases = releases == 1
}

// settlementRow returns a settlement as a field of its decision's row.
func settlementRow(e *storage.Entry) bson.Raw {
	s := *e.Settlement
	s.Receipt = &e.Inclusion
	var c codec
	c.whole(func() { c.settlement(&s) })
	return c.out
}

// insertRows inserts the rows of records. It encodes the commands itself, because the driver would
// copy each row three times and decode its _id. Once a command has [storage.MaxBody] bytes, the
// next row starts a new command. The server accepts commands of up to 16 MiB.
func (s *Store) insertRows(ctx context.Context, records []*storage.Record, ids decisionIDs) error {
	c := codec{out: make([]byte, 0, 1024*(len(records)+1))}
	var w parsedRow
	var err error
	for len(records) > 0 {
		n, name := 0, recordsName
		c.out = c.out[:0]
		c.whole(func() {
			c.text("insert", &name)
			c.part("documents", bsoncore.TypeArray, true, func() {
				for ; n < len(records) && len(c.out) < storage.MaxBody; n++ {
					r := records[n]
					w.id, w.record = ids[r], r
					w.intent, err = appendIntentKey(w.intent[:0], r.OrganizationID, r.IntentID, r.ApprovalID)
					if err != nil {
						return
					}
					c.document(strconv.Itoa(n), true, func() { c.row(&w) })
				}
			})
		})
		if err != nil {
			return err
		}
		var reply struct {
			N int `bson:"n"`
		}
		if err := s.db.RunCommand(ctx, bson.Raw(c.out)).Decode(&reply); err != nil {
			return err
		}
		if reply.N != n {
			return fmt.Errorf("%d of %d rows were inserted", reply.N, n)
		}
		records = records[n:]
	}
	return nil
}
