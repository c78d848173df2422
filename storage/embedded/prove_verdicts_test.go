package embedded

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// sealAll is a storage.Seal of all that is fresh, of entries alone.
func sealAll(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
	signer, leaves := signerOf(2), make([][32]byte, len(fresh.Entries))
	for i, e := range fresh.Entries {
		leaves[i] = receipt.EntryLeaf(e.Body)
	}
	head, sigs := signer.Seal(tip, time.UnixMilli(1_800_000_000_000), leaves)
	for i, e := range fresh.Entries {
		e.Inclusion = receipt.Inclusion{Sig: sigs[i], KeyID: signer.KeyID()}
	}
	return fresh, head, nil
}

// TestProve_Verdicts proves verdicts as other entries, and that each is on a decision
// that waited for one.
func TestProve_Verdicts(t *testing.T) {
	w := writeHistory(t)
	of := func(d engine.Decision) string {
		for _, r := range w.acme {
			if r.Decision == d {
				return r.DecisionID
			}
		}
		t.Fatalf("no decision is %s", d)
		return ""
	}
	held, allowed, stranger := of(engine.ApprovalRequired), of(engine.Allow), uuid.Must(uuid.NewV7()).String()
	removed := ""
	w.change(t, func(s *Store) {
		v, _ := s.get(w.grave)
		id, _, _, err := parseIntent(v, [16]byte{})
		must(t, err)
		removed = id.String()
	})
	body := func(org, id string) string {
		return fmt.Sprintf(`{"approval_id":"%s","decided_by":"operator:bob","entry":"verdict","organization_id":"%s","verdict":"approved"}`, id, org)
	}
	for _, test := range []struct {
		name, key, body, want string // no want: it is whole
		then                  func(t *testing.T, s *Store)
	}{
		{name: "on a decision that is held", key: held, body: body("acme", held)},
		{name: "on a row that was removed", key: removed, body: body("acme", removed)},
		{name: "on no decision", key: stranger, body: body("acme", stranger),
			want: fmt.Sprintf(`organization "acme", decision %s: a verdict is on it, and it is not there`, stranger)},
		{name: "on a decision that was not held", key: allowed, body: body("acme", allowed),
			want: fmt.Sprintf(`organization "acme", decision %s: a verdict is on it, and it is allow`, allowed)},
		{name: "of another decision", key: held, body: body("acme", stranger), want: `": the body of a verdict is not that of its key`},
		{name: "of another organization", key: held, body: body("rival", held), want: `": the body of a verdict is not that of its key`},
		{name: "in other JSON", key: held, body: " " + body("acme", held), want: `": the body of a verdict is not that of its key`},
		{name: "of no JSON", key: held, body: "x", want: `": the body of a verdict: `},
		{name: "changed", key: held, body: body("acme", held), want: `": it is not what head `, then: func(t *testing.T, s *Store) {
			k, e := firstEntry(t, s, "acme", storage.VerdictEntry)
			putEntry(t, s, k, e, []byte(body("acme", held)[1:]))
		}},
		{name: "deleted", key: held, body: body("acme", held), want: ": it signs 1 leaves, and 0 are there", then: func(t *testing.T, s *Store) {
			k, e := firstEntry(t, s, "acme", storage.VerdictEntry)
			del(t, s, k)
			del(t, s, entryKey(e))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			forged := written{disk: w.disk.CrashClone(vfs.CrashCloneCfg{}), keys: w.keys}
			forged.change(t, func(s *Store) {
				e := &storage.Entry{Kind: storage.VerdictEntry, OrganizationID: "acme", Key: test.key, Body: []byte(test.body)}
				if _, err := s.Append(t.Context(), storage.Batch{Entries: []*storage.Entry{e}}, sealAll); err != nil {
					t.Fatal(err)
				}
				if test.then != nil {
					test.then(t, s)
				}
			})
			got, err := forged.prove(t, forged.disk, nil)
			if test.want != "" {
				wantBreak(t, err, test.want)
			} else if err != nil || got.Verdicts != 1 {
				t.Errorf("Prove = %+v, %v, want one verdict", got, err)
			}
		})
	}
}
