// Package forged changes histories as an attacker with access to a store could. It checks that
// [ledger.Prove] finds each change. Every backend can run these tests.
package forged

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// Backend is a kind of store.
type Backend struct {
	// Load puts an unchanged history into an empty store and opens the store for reading.
	Load func(t *testing.T, h *History) ledger.History
	// OneChain says that the store has only one chain. Unique says that the store cannot have two
	// rows of one intent.
	OneChain, Unique bool
}

// forger changes a copy of a history.
type forger struct {
	*testing.T
	*History
	chains map[string][16]byte // chain ids by writer, if the history has several chains
	own    [16]byte            // the store's own chain, if the history has an import
	more   *storage.Record     // a row of the source that is not in the export
}

// forgery is a change of a history. do makes the change and returns a part of the error that Prove
// must return. It returns an empty text if Prove must not fail.
type forgery struct {
	name string
	do   func(f *forger) (want string)
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	t.Run("one chain", func(t *testing.T) {
		whole := OneChain(t)
		b.run(t, slices.Concat(rowForgeries, headForgeries, meterForgeries, entryForgeries, verdictForgeries, documentForgeries), func(t *testing.T) *forger {
			return &forger{T: t, History: whole.clone()}
		})
	})
	t.Run("an import", func(t *testing.T) {
		whole, own, more := Moved(t)
		b.run(t, importForgeries, func(t *testing.T) *forger {
			return &forger{T: t, History: whole.clone(), own: own, more: more}
		})
	})
	if b.OneChain {
		return
	}
	t.Run("several chains", func(t *testing.T) {
		whole, chains := SeveralChains(t)
		b.run(t, chainForgeries, func(t *testing.T) *forger { return &forger{T: t, History: whole.clone(), chains: chains} })
	})
}

func (b Backend) run(t *testing.T, forgeries []forgery, begin func(*testing.T) *forger) {
	for _, test := range append([]forgery{{"nothing", func(*forger) string { return "" }}}, forgeries...) {
		t.Run(test.name, func(t *testing.T) {
			f := begin(t)
			want := test.do(f)
			for name, id := range f.chains {
				want = strings.ReplaceAll(want, strings.ToUpper(name), hex.EncodeToString(id[:]))
			}
			if b.Unique && f.twice() {
				t.Skip("the store has no two rows of an intent")
			}
			f.count()
			h := b.Load(t, f.History)
			for _, resume := range []bool{false, true} { // without anchors it proves the same, but for meters and indexes
				if resume && (strings.Contains(want, "its meter of ") || strings.Contains(want, "is decided by ")) {
					want = ""
				}
				_, err := ledger.Prove(t.Context(), h, ledger.ProveConfig{Keys: Keys(t), Resume: resume})
				if broken := (*storage.BreakError)(nil); want == "" && err != nil || want != "" && (!errors.As(err, &broken) || !strings.Contains(err.Error(), want)) {
					t.Errorf("Prove, resumed: %t, = %v, want a break that says %q", resume, err, want)
				}
			}
		})
	}
}

// twice reports whether an intent has two rows.
func (f *forger) twice() bool {
	intents := make(map[string]bool)
	for _, r := range f.Records {
		name := r.OrganizationID + "\x00" + r.IntentKey()
		if intents[name] {
			return true
		}
		intents[name] = true
	}
	return false
}

// rows returns the rows of an organization, oldest first.
func (f *forger) rows(org string) (rows []*storage.Record) {
	for _, r := range f.Records {
		if r.OrganizationID == org {
			rows = append(rows, r)
		}
	}
	return rows
}

func (f *forger) drop(gone ...*storage.Record) {
	f.Records = slices.DeleteFunc(f.Records, func(r *storage.Record) bool { return slices.Contains(gone, r) })
}

// heads returns the heads of the only chain. After *heads was changed, call set to store it.
func (f *forger) heads() (heads *[]receipt.SignedHead, set func()) {
	for id, all := range f.ByChain {
		return &all, func() { f.ByChain[id] = all }
	}
	return nil, nil
}

func (f *forger) headOf(r *storage.Record) receipt.SignedHead {
	h, err := r.Receipt.SignedHead()
	must(f, err)
	return h
}

// entry returns acme's first entry of a kind.
func (f *forger) entry(kind storage.EntryKind) *storage.Entry {
	i := slices.IndexFunc(f.Others, func(e *storage.Entry) bool { return e.OrganizationID == "acme" && e.Kind == kind })
	if i < 0 {
		f.Fatalf("acme has no %s", kind)
	}
	return f.Others[i]
}

// seal signs entries with a new head at the end of the only chain.
func (f *forger) seal(entries ...*storage.Entry) {
	heads, set := f.heads()
	last, leaves := (*heads)[len(*heads)-1], [][32]byte{}
	for _, e := range entries {
		leaves = append(leaves, receipt.EntryLeaf(e.Body))
	}
	head, sigs, _ := signerOf(2).Seal(receipt.Chain{ID: last.Chain}.Next(last.Head), time.UnixMilli(last.UnixMilli), leaves)
	for i, e := range entries {
		e.Inclusion = receipt.Inclusion{Sig: sigs[i], KeyID: head.KeyID}
	}
	f.Others = append(f.Others, entries...)
	*heads = append(*heads, head)
	set()
}

func at(r *storage.Record) string {
	return fmt.Sprintf("organization %q, decision %s: ", r.OrganizationID, r.DecisionID)
}

// rowForgery returns a forgery that changes a row of acme.
func rowForgery(name string, do func(f *forger, r *storage.Record) (want string)) forgery {
	return forgery{name, func(f *forger) string {
		r := f.rows("acme")[5]
		return at(r) + do(f, r)
	}}
}

const notDigested = "its row is not the one of its audit digest"

var rowForgeries = []forgery{
	rowForgery("a reason changed", func(_ *forger, r *storage.Record) string {
		r.Reasons = []string{"policy.test: another"}
		return notDigested
	}),
	rowForgery("a decision changed", func(_ *forger, r *storage.Record) string {
		r.Decision = engine.Allow + r.Decision%3
		r.Receipt.Decision = r.Decision.String()
		return notDigested
	}),
	rowForgery("a decision changed beside its receipt", func(_ *forger, r *storage.Record) string {
		r.Decision = engine.Allow + r.Decision%3
		return "its row says "
	}),
	rowForgery("a resource changed", func(_ *forger, r *storage.Record) string {
		r.Resource = "prod/db"
		return notDigested
	}),
	rowForgery("a resource changed with its audit digest", func(_ *forger, r *storage.Record) string {
		r.Resource = "prod/db"
		r.AuditDigest = ledger.AuditDigest(r)
		return "receipt: payload does not match: digest"
	}),
	rowForgery("an audit digest taken away", func(_ *forger, r *storage.Record) string {
		r.Resource, r.AuditDigest = "prod/db", ""
		return "receipt: payload does not match: digest"
	}),
	rowForgery("a decision changed with its digests", func(f *forger, r *storage.Record) string {
		seq := f.headOf(r).Seq
		r.PolicyVersion++
		r.AuditDigest = ledger.AuditDigest(r)
		r.Receipt.Digest = ledger.Payload(r).Digest()
		return fmt.Sprintf("it is not what head %d signs", seq)
	}),
	rowForgery("a receipt of another row", func(f *forger, r *storage.Record) string {
		r.Receipt = f.rows("acme")[6].Receipt
		r.Receipt.Decision = r.Decision.String()
		return "receipt: payload does not match: decision_id"
	}),
	rowForgery("a time changed", func(_ *forger, r *storage.Record) string {
		r.DecidedAt = r.DecidedAt.Add(time.Hour)
		return "its id is not of the time at which it was decided"
	}),
	rowForgery("no decision", func(_ *forger, r *storage.Record) string {
		r.Decision = 9
		return "its row has no decision"
	}),
	{"a row copied to another intent", func(f *forger) string {
		r := *f.rows("acme")[5]
		id := uuid.MustParse(r.DecisionID)
		id[15] ^= 1
		r.IntentID, r.DecisionID = intentID(999), id.String()
		f.Records = append(f.Records, &r)
		return notDigested
	}},
	{"a row of another organization", func(f *forger) string {
		r := *f.rows("acme")[5]
		r.OrganizationID = "zz"
		f.Records = append(f.Records, &r)
		return at(&r) + notDigested
	}},
	{"a row deleted with all that leads to it", func(f *forger) string {
		r := f.rows("acme")[5]
		f.drop(r)
		h := f.headOf(r)
		return fmt.Sprintf("head %d: it signs %d leaves, and %d are there; 1 leaves are missing", h.Seq, h.Size, h.Size-1)
	}},
	{"an organization deleted", func(f *forger) string { f.drop(f.rows("rival")...); return "16 leaves are missing" }},
	{"a row given twice", func(f *forger) string {
		r := f.rows("acme")[5]
		f.Records = append(f.Records, r)
		return "leaves, and this is one more"
	}},
	rowForgery("a settlement that is none", func(f *forger, r *storage.Record) string {
		in := r.Receipt.Inclusion()
		r.Settlement = &storage.Settlement{Outcome: "undone", RecordedAt: r.DecidedAt, Receipt: &in}
		return `its settlement has the outcome "undone"`
	}),
	rowForgery("a settlement before its decision", func(f *forger, r *storage.Record) string {
		in := r.Receipt.Inclusion()
		r.Settlement = &storage.Settlement{Outcome: "failed", RecordedAt: r.DecidedAt.Add(-time.Hour), Receipt: &in}
		return "it was settled at "
	}),
	{"a settlement changed", func(f *forger) string {
		r := f.rows("acme")[7]
		r.Settlement.ExternalRef = "x"
		return at(r) + "its settlement: it is not what head "
	}},
	{"a settlement that lowers a count after the fact", func(f *forger) string {
		r := f.rows("acme")[7]
		r.Settlement.Releases = !r.Settlement.Releases
		return at(r) + "its settlement: it is not what head "
	}},
	{"a settlement in the place of another", func(f *forger) string {
		r, other := f.rows("acme")[7], f.rows("acme")[8]
		settled := *r.Settlement
		other.Settle(settled)
		return at(other) + "its settlement: it is not what head "
	}},
	{"a settlement deleted", func(f *forger) string {
		f.rows("acme")[7].Settlement = nil
		return ": it signs 1 leaves, and 0 are there"
	}},
}

// headForgery returns a forgery that changes the heads of the only chain.
func headForgery(name string, do func(heads []receipt.SignedHead) (forged []receipt.SignedHead, want string)) forgery {
	return forgery{name, func(f *forger) (want string) {
		heads, set := f.heads()
		*heads, want = do(*heads)
		set()
		return want
	}}
}

var headForgeries = []forgery{
	headForgery("a head deleted", func(h []receipt.SignedHead) ([]receipt.SignedHead, string) {
		return slices.Delete(h, 1, 2), "head 2: receipt: broken chain: head 3 follows head 1"
	}),
	headForgery("the first head deleted", func(h []receipt.SignedHead) ([]receipt.SignedHead, string) {
		return h[1:], "head 1: receipt: broken chain: head 2 follows head 0"
	}),
	headForgery("the last head deleted", func(h []receipt.SignedHead) ([]receipt.SignedHead, string) {
		return h[:len(h)-1], fmt.Sprintf("and the history ends at head %d", len(h)-1)
	}),
	headForgery("a head of another key", func(h []receipt.SignedHead) ([]receipt.SignedHead, string) {
		h[1], _, _ = signerOf(9).Seal(receipt.Chain{ID: h[0].Chain}.Next(h[0].Head), time.UnixMilli(1), make([][32]byte, 3))
		return h, "head 2: receipt: unknown key"
	}),
	headForgery("a head of another key under a trusted name", func(h []receipt.SignedHead) ([]receipt.SignedHead, string) {
		h[1], _, _ = signerOf(9).Seal(receipt.Chain{ID: h[0].Chain}.Next(h[0].Head), time.UnixMilli(1), make([][32]byte, 3))
		h[1].KeyID = h[0].KeyID
		return h, "head 2: receipt: signature does not verify"
	}),
}

func meterForgery(name, org string, month storage.Month, n int64, want string) forgery {
	return forgery{name, func(f *forger) string {
		f.Meters[Meter{org, month}] = n
		return fmt.Sprintf("organization %q: its meter of %d says %d, and %s", org, month, n, want)
	}}
}

var meterForgeries = []forgery{
	meterForgery("a meter set back", "acme", 202611, 3, "5 decisions are of that month"),
	meterForgery("a meter set to nothing", "acme", 202611, 0, "5 decisions are of that month"),
	meterForgery("a meter of what is removed set back", "acme", 202610, 3, "6 decisions are of that month"),
	meterForgery("a meter that counts more", "rival", 202610, 7, "6 decisions are of that month"),
	meterForgery("a meter of nothing", "zz", 202611, 1, "0 decisions are of that month"),
}

// changed returns a forgery that changes the body of acme's first entry of a kind.
func changed(name string, kind storage.EntryKind, old, new string) forgery {
	return forgery{name, func(f *forger) string {
		e := f.entry(kind)
		if !bytes.Contains(e.Body, []byte(old)) {
			f.Fatalf("%s has no %s", e.Body, old)
		}
		e.Body = bytes.Replace(e.Body, []byte(old), []byte(new), 1)
		return fmt.Sprintf("organization \"acme\": %s %q: it is not what head ", kind, e.Key)
	}}
}

func (f *forger) deleteEntry(e *storage.Entry) {
	f.Others = slices.DeleteFunc(f.Others, func(other *storage.Entry) bool { return other == e })
}

// dug returns a forgery that changes the tombstone of a settled row.
func dug(name, want string, do func(f *forger, t *storage.Tombstone)) forgery {
	return forgery{name, func(f *forger) string {
		for _, t := range f.Graves {
			if len(t.Leaves) == 2 {
				do(f, t)
			}
		}
		return want
	}}
}

// bury removes the n oldest rows of an organization, as retention does.
func (f *forger) bury(org string, n int) {
	for range n {
		must(f, f.Bury(org))
	}
}

// hide deletes the row r and adds its leaf to another row's tombstone.
func (f *forger) hide(r *storage.Record, in *storage.Tombstone) {
	leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
	must(f, err)
	f.drop(r)
	in.Leaves = append(in.Leaves, leaf)
}

const notCovered = "it was removed, and no retention entry covers it"

var entryForgeries = []forgery{
	changed("a removal's time moved", storage.RetentionEntry, `"before":"2026-`, `"before":"2027-`),
	changed("a removal's count lowered", storage.RetentionEntry, `"count":4`, `"count":3`),
	{"a removal not announced", func(f *forger) string { f.deleteEntry(f.entry(storage.RetentionEntry)); return notCovered }},
	{"rows removed that were not announced", func(f *forger) string { f.bury("rival", 2); return notCovered }},
	{"newer rows removed than were announced", func(f *forger) string { f.bury("acme", 12); return notCovered }},
	{"more rows removed than were announced", func(f *forger) string {
		f.bury("acme", 1)
		return `organization "acme": 5 rows were removed that only retention entries for 4 cover`
	}},
	dug("a tombstone changed", " does not sign all of its leaves", func(_ *forger, t *storage.Tombstone) { t.Leaves[0].Hash[0] ^= 1 }),
	dug("a tombstone moved", " has no room for it at leaf ", func(_ *forger, t *storage.Tombstone) { t.Leaves[0].Index ^= 1 }),
	dug("a tombstone under another head", "its tombstone is under head 99", func(_ *forger, t *storage.Tombstone) { t.Leaves[0].Seq = 99 }),
	dug("a tombstone without the settlement's", "1 leaves are missing", func(_ *forger, t *storage.Tombstone) { t.Leaves = t.Leaves[:1] }),
	dug("a row deleted and hidden in the tombstone of a settled one", "3 leaves are left of it, and a decision has one and its settlement another",
		func(f *forger, t *storage.Tombstone) { f.hide(f.rows("acme")[5], t) }),
	{"a row deleted and hidden in a tombstone as its settlement", func(f *forger) string {
		i := slices.IndexFunc(f.Graves, func(t *storage.Tombstone) bool { return len(t.Leaves) == 1 })
		f.hide(f.rows("acme")[5], f.Graves[i])
		return `organization "acme": 2 settlements were removed that only retention entries for 1 cover`
	}},
	{"a tombstone deleted", func(f *forger) string { f.Graves = f.Graves[1:]; return "leaves are missing" }},
	changed("a change's actor changed", storage.ChangeEntry, "alice", "bob"),
	changed("a change's digest changed", storage.ChangeEntry, `"digest":"sha256:`, `"digest":"sha256:0`),
	{"a change deleted", func(f *forger) string {
		f.deleteEntry(f.entry(storage.ChangeEntry))
		return "1 leaves are missing"
	}},
	{"a change of another organization", func(f *forger) string {
		f.entry(storage.ChangeEntry).OrganizationID = "ac"
		return `organization "ac": change "`
	}},
}

// verdictForgery returns a forgery that adds a verdict. on returns two decision ids: one for the
// verdict's key and one for its body.
func verdictForgery(name, body string, on func(f *forger) (key, approval string), want string) forgery {
	return forgery{name, func(f *forger) string {
		key, approval := on(f)
		if body == "" {
			body = `{"approval_id":"%s","decided_by":"operator:bob","entry":"verdict","organization_id":"acme","verdict":"approved"}`
		}
		f.seal(&storage.Entry{Kind: storage.VerdictEntry, OrganizationID: "acme", Key: key, Body: []byte(strings.ReplaceAll(body, "%s", approval))})
		return strings.ReplaceAll(want, "%s", approval)
	}}
}

// decided returns the id of acme's first decision that is d.
func (f *forger) decided(d engine.Decision) string {
	all := f.rows("acme")
	return all[slices.IndexFunc(all, func(r *storage.Record) bool { return r.Decision == d })].DecisionID
}

func onDecision(d engine.Decision) func(f *forger) (string, string) {
	return func(f *forger) (string, string) { return f.decided(d), f.decided(d) }
}

const (
	stranger   = "01a1fe16-6700-7f79-840b-000000000000"
	notOfItKey = `": the body of a verdict does not match its key`
)

var held = onDecision(engine.ApprovalRequired)

var verdictForgeries = []forgery{
	heldVerdict,
	verdictForgery("a verdict on a row that was removed", "", func(f *forger) (string, string) { return f.Graves[0].DecisionID, f.Graves[0].DecisionID }, ""),
	verdictForgery("a verdict on no decision", "", func(*forger) (string, string) { return stranger, stranger },
		`organization "acme", decision %s: a verdict is on it, and it is not there`),
	verdictForgery("a verdict on a decision that was not held", "", onDecision(engine.Allow), `organization "acme", decision %s: a verdict is on it, and it is allow`),
	verdictForgery("a verdict of another decision", "", func(f *forger) (string, string) { return f.decided(engine.ApprovalRequired), stranger }, notOfItKey),
	verdictForgery("a verdict of another organization", `{"approval_id":"%s","decided_by":"operator:bob","entry":"verdict","organization_id":"rival","verdict":"approved"}`, held, notOfItKey),
	verdictForgery("a verdict in other JSON", ` {"approval_id":"%s","entry":"verdict","organization_id":"acme","verdict":"approved"}`, held, notOfItKey),
	verdictForgery("a verdict of no JSON", "x", held, `": the body of a verdict: `),
	{"a verdict changed", func(f *forger) string {
		f.verdict()
		e := f.entry(storage.VerdictEntry)
		e.Body = bytes.Replace(e.Body, []byte("bob"), []byte("eve"), 1)
		return `": it is not what head `
	}},
	{"a verdict deleted", func(f *forger) string {
		f.verdict()
		f.deleteEntry(f.entry(storage.VerdictEntry))
		return ": it signs 1 leaves, and 0 are there"
	}},
}

var heldVerdict = verdictForgery("a verdict on a decision that is held", "", held, "")

func (f *forger) verdict() { heldVerdict.do(f) }

// document returns a forgery that changes a document of acme.
func document(name string, kind storage.Kind, id string, want string, do func(f *forger, d *storage.Document)) forgery {
	return forgery{name, func(f *forger) string {
		i := slices.IndexFunc(f.Documents, func(d storage.Document) bool { return d.Kind == kind && d.Org == "acme" && d.ID == id })
		do(f, &f.Documents[i])
		f.Documents = slices.DeleteFunc(f.Documents, func(d storage.Document) bool { return d.Value == nil })
		return want
	}}
}

// newDocument returns a forgery that adds a document at revision 1, without an entry for the
// change.
func newDocument[T any](name string, c storage.Of[T], id string, doc *T, want string) forgery {
	return forgery{name, func(f *forger) string {
		value, err := c.Encode(doc)
		must(f, err)
		f.Documents = append(f.Documents, storage.Document{Kind: c.Kind, Org: "acme", ID: id, Value: value, Revision: 1})
		return want + ": no change has left it as it is, at revision 1"
	}}
}

const notAsLeft = `organization "acme": rule "q": it is not as the change of revision `

func swapped(_ *forger, d *storage.Document) {
	d.Value = bytes.Replace(d.Value, []byte("holds"), []byte("lifts"), 1)
}

var documentForgeries = []forgery{
	document("a rule swapped", storage.RuleKind, "q", notAsLeft, swapped),
	document("a rule swapped under an earlier revision", storage.RuleKind, "q", notAsLeft, func(f *forger, d *storage.Document) { swapped(f, d); d.Revision = 1 }),
	document("a rule swapped under a later revision", storage.RuleKind, "q", notAsLeft, func(f *forger, d *storage.Document) { swapped(f, d); d.Revision++ }),
	document("a rule whose change waits swapped", storage.RuleKind, "b", `organization "acme": rule "b": it is not as the change of revision `, swapped),
	document("a rule deleted", storage.RuleKind, "q", `organization "acme": rule "q": the change of revision `, func(_ *forger, d *storage.Document) { d.Value = nil }),
	{"a deleted rule put back", func(f *forger) string {
		f.Documents = append(f.Documents, storage.Document{Kind: storage.RuleKind, Org: "acme", ID: "r", Value: []byte(`{"id":"r"}`), Revision: 4})
		return `organization "acme": rule "r": it is not as the change of revision `
	}},
	document("an older version of a policy deleted", storage.PolicyKind, storage.VersionID("p", 1), `organization "acme": policy "p": the change of revision `,
		func(_ *forger, d *storage.Document) { d.Value = nil }),
	document("the newest version of a policy deleted", storage.PolicyKind, storage.VersionID("p", 2), `organization "acme": policy "p": the change of revision `,
		func(_ *forger, d *storage.Document) { d.Value = nil }),
	document("an older version of a policy changed", storage.PolicyKind, storage.VersionID("p", 1), `organization "acme": policy "p": it is not as the change of revision `,
		func(_ *forger, d *storage.Document) { d.Value = append(slices.Clone(d.Value), ' ') }),
	newDocument("a rule that nobody made", storage.Rules, "z", &engine.Rule{ID: "z"}, `organization "acme": rule "z"`),
	newDocument("a key that nobody made", storage.Tokens, "z", &storage.Token{ID: "z", OrganizationID: "acme", CreatedAt: noon}, `organization "acme": key "z"`),
	newDocument("a plan that nobody bought", storage.Subscriptions, "", &storage.Subscription{OrganizationID: "acme", Plan: "business"}, `organization "acme": plan ""`),
	document("a version of a policy in the revision of another", storage.PolicyKind, storage.VersionID("p", 2), `organization "acme": policy "p": it is not as the change of revision `,
		func(f *forger, d *storage.Document) {
			value, err := storage.Policies.Encode(&engine.ActionPolicy{OrganizationID: "acme", PolicyID: "p", Version: 99})
			must(f, err)
			f.Documents = append(f.Documents, storage.Document{Kind: d.Kind, Org: d.Org, ID: storage.VersionID("p", 99), Value: value, Revision: d.Revision})
		}),
	{"a version of a policy that nobody registered", func(f *forger) string {
		newDocument("", storage.Policies, storage.VersionID("p", 99), &engine.ActionPolicy{OrganizationID: "acme", PolicyID: "p", Version: 99}, "").do(f)
		f.Documents[len(f.Documents)-1].Revision = 6
		return `organization "acme": policy "p": no change has left it as it is, at revision 6`
	}},
	{"a change that waits deleted", func(f *forger) string {
		f.Waiting = nil
		return `organization "acme": rule "b": no change has left it as it is`
	}},
}
