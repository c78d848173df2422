package api

import (
	"fmt"

	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
)

// changeItem is one line of the administrative audit log.
type changeItem struct {
	ledger.Change
	Receipt receipt.Inclusion `json:"receipt"`
}

// listChanges returns the changes of the organization's documents that are in the
// chain, newest first.
func (s *Server) listChanges(r *request) (response, error) {
	page, err := r.onlyPage()
	if err != nil {
		return response{}, err
	}
	entries, next, err := s.cfg.Store.Entries(r.ctx, r.who.org, storage.ChangeEntry, page)
	if err != nil {
		return response{}, fmt.Errorf("listing changes: %w", err)
	}
	items := make([]changeItem, len(entries))
	for i, e := range entries {
		items[i].Receipt = e.Inclusion
		if items[i].Change, err = ledger.ParseChange(e); err != nil {
			return response{}, err
		}
	}
	return list(items, next), nil
}
