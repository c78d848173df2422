package system

import (
	"net/http"
	"slices"
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
)

// TestChanges_AreSigned checks that an operator's change is soon listed with its author. A stop of
// the server must sign a change that was made just before.
func TestChanges_AreSigned(t *testing.T) {
	p, data, token := deployed(t)
	api := newClient(t, p.url, token)
	waitFor(t, "the change to be listed", func() bool {
		var page struct {
			Data []ledger.Change `json:"data"`
		}
		api.do(t, http.MethodGet, "/v1/changes", nil, http.StatusOK, &page)
		return slices.ContainsFunc(page.Data, func(c ledger.Change) bool {
			return c.Kind == "policy" && c.ID == testPolicy && c.Actor != "" && c.Digest != ""
		})
	})
	api.do(t, http.MethodPost, "/v1/agents", object{"name": "late"}, http.StatusCreated, nil)
	p.stop(t)
	s, err := embedded.Open(data.Store(), embedded.Options{})
	must(t, err)
	left, err := s.Changes(t.Context(), storage.Change{}, 9)
	if err != nil || len(left) > 0 {
		t.Errorf("after a stop %d changes are not signed, %v, want none", len(left), err)
	}
	must(t, s.Close())
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
}
