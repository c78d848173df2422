package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// unsignedChanges are changes of documents with invented actors.
type unsignedChanges []storage.Change

func (c *unsignedChanges) Changes(_ context.Context, _ storage.Change, max int) ([]storage.Change, error) {
	return (*c)[:min(max, len(*c))], nil
}

func (c *unsignedChanges) Trim(_ context.Context, changes []storage.Change) error {
	*c = (*c)[len(changes):]
	return nil
}

// TestDecision_Receipts_Changes checks "GET /v1/changes". An organization sees only changes of its
// own documents, newest first. Each change has a receipt that verifies.
func TestDecision_Receipts_Changes(t *testing.T) {
	h := start(t)
	var changes unsignedChanges
	for i := range 300 {
		changes = append(changes,
			storage.Change{Org: acme, Kind: storage.RuleKind, ID: "r", Revision: uint64(2*i + 1), Digest: [32]byte{byte(i)}, Actor: "operator:alice"},
			storage.Change{Org: rival, Kind: storage.AgentKind, ID: "a", Revision: uint64(2*i + 2)})
	}
	must(t, h.ledger.SignChanges(t.Context(), &changes))
	if len(changes) > 0 {
		t.Errorf("%d changes are not signed", len(changes))
	}
	keys, err := receipt.ParseKeys(h.do("GET", "/.well-known/jwks.json", "", nil).body)
	must(t, err)
	want := 599
	for path := "/v1/changes?limit=70"; path != ""; {
		r := h.do("GET", path, h.operator(acme), nil).wantStatus(http.StatusOK)
		var items page[changeItem]
		r.into(&items)
		for _, item := range items.Data {
			if item.Revision != int64(want) || item.OrganizationID != acme || item.Actor != "operator:alice" {
				t.Errorf("change %+v, want acme's of revision %d", item.Change, want)
			}
			want -= 2
			body := fmt.Sprintf(`{"actor":%q,"digest":%q,"entry":"change","id":%q,"kind":%q,"organization_id":%q,"revision":%d}`,
				item.Actor, item.Digest, item.ID, item.Kind, item.OrganizationID, item.Revision)
			if err := item.Receipt.Verify(receipt.EntryLeaf([]byte(body)), keys); err != nil {
				t.Errorf("Verify(%s) = %v", body, err)
			}
			head, err := item.Receipt.SignedHead(receipt.EntryLeaf([]byte(body)))
			if must(t, err); item.SignedAt.UnixMilli() != head.UnixMilli {
				t.Errorf("signed_at = %v, want the time of its head, %v", item.SignedAt, time.UnixMilli(head.UnixMilli).UTC())
			}
		}
		path = nextPath(t, r)
	}
	if want != -1 {
		t.Errorf("the list ended before revision %d", want)
	}
	changes = unsignedChanges{{Org: acme, Kind: storage.PolicyKind, ID: "p/1", Revision: 9001}, {Org: acme, Kind: storage.PolicyKind, ID: "p2/1", Revision: 9002}}
	must(t, h.ledger.SignChanges(t.Context(), &changes))
	for query, want := range map[string]string{
		"kind=policy": "p2/1 p/1 ", "id=p": "p/1 ", "kind=policy&id=p/1": "p/1 ", "kind=rule&id=p": "", "kind=library": "", "kind=policy&id=a": "",
	} {
		got := ""
		for path := "/v1/changes?limit=70&" + query; path != ""; {
			r := h.do("GET", path, h.operator(acme), nil).wantStatus(http.StatusOK)
			var items page[changeItem]
			for r.into(&items); len(items.Data) > 0; items.Data = items.Data[1:] {
				got += items.Data[0].ID + " "
			}
			path = nextPath(t, r)
		}
		if got != want {
			t.Errorf("%s selects %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"cursor=abc", "limit=0", "kind=rules", "id=", "id=a%0Ab", "document=r"} {
		h.do("GET", "/v1/changes?"+query, h.operator(acme), nil).wantField(strings.Split(query, "=")[0])
	}
}

// TestDecision_Secrets_WhoChangedSomethingIsTagged checks "Scrubbing never merges identities". In
// the list of changes a tag replaces an operator's e-mail address. Two operators never share a tag.
func TestDecision_Secrets_WhoChangedSomethingIsTagged(t *testing.T) {
	h := start(t)
	seen := make(map[string]bool)
	for _, subject := range []string{"ann@example.com", "bob@example.com", "ops"} {
		token, err := operator.Sign([]byte(testSecret), acme, subject, h.clock.Now(), time.Hour)
		must(t, err)
		h.do("POST", "/v1/rules", token, obj{"name": subject[:3], "condition": `{"action_type":"a"}`, "action": `{"decision":"deny"}`}).wantStatus(http.StatusCreated)
	}
	changes, err := h.store.Changes(t.Context(), storage.Change{}, 100)
	must(t, err)
	for _, c := range changes {
		if c.Kind == storage.RuleKind {
			seen[c.Actor] = true
		}
		if strings.Contains(c.Actor, "@") {
			t.Errorf("the actor of a change is kept as %q", c.Actor)
		}
	}
	if len(seen) != 3 || !seen["operator:ops"] {
		t.Errorf("actors %v, want three, one of them operator:ops", seen)
	}
}
