package ledger

import (
	"errors"
	"slices"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// separable returns how many waiters, from the first on, can be committed together. The
// records of a tentative waiter may turn out not to be stored, so no other waiter of its
// batch may be answered with such a record. Therefore a second waiter with the same
// intent or entry begins the next batch.
func separable(batch []*waiter) int {
	if !slices.ContainsFunc(batch, (*waiter).tentative) {
		return len(batch)
	}
	decided := make(map[element]bool, 2*len(batch)) // whether by a tentative waiter
	for n, w := range batch {
		names := w.elements()
		for _, name := range names {
			if tentative, twice := decided[name]; twice && (tentative || w.tentative()) {
				return max(n, 1) // a tentative waiter has no element twice
			}
		}
		for _, name := range names {
			decided[name] = w.tentative()
		}
	}
	return len(batch)
}

// element names an entry or an intent. The element of an intent has no kind. Each element
// is unique in the store.
type element struct {
	org  string
	kind storage.EntryKind
	key  string
}

func (w *waiter) elements() []element {
	names := make([]element, 0, len(w.places)+len(w.entries))
	for i := range w.places {
		names = append(names, element{org: w.org(), key: w.places[i].record.IntentKey()})
	}
	for _, e := range w.entries {
		names = append(names, element{e.OrganizationID, e.Kind, e.Key})
	}
	return names
}

// sealer returns the seal of batch. The store may call it again with fewer records.
func (c *committer) sealer(batch []*waiter) storage.Seal {
	return func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		for _, w := range batch { // of an earlier call: the store has since found some records
			for i := range w.places {
				w.places[i].record.Receipt.Sig = ""
			}
		}
		signer := c.cfg.signer.Load()
		sealed, leaves, err := storable(batch, fresh, signer.KeyID(), c.leaves[:0])
		if err != nil || len(leaves) == 0 {
			return storage.Batch{}, receipt.SignedHead{}, err
		}
		c.leaves = leaves
		head, sigs, err := signer.Seal(tip, c.cfg.Now(), leaves)
		if c.unsigned = err != nil; c.unsigned {
			return storage.Batch{}, receipt.SignedHead{}, err
		}
		for i, r := range sealed.Records {
			r.Receipt.Sig = sigs[i]
		}
		for i, e := range sealed.Entries {
			e.Inclusion = receipt.Inclusion{Sig: sigs[len(sealed.Records)+i], KeyID: signer.KeyID()}
		}
		return sealed, head, nil
	}
}

// storable returns the part of fresh that is to be stored, and appends the leaves of this
// part to leaves. It leaves out a whole waiter if any of the waiter's records or entries
// is not fresh. It leaves out a record and its verdict if one of the two is not fresh.
func storable(
	batch []*waiter, fresh storage.Batch, keyID string, leaves [][32]byte,
) (storage.Batch, [][32]byte, error) {
	sealed, records := storage.Batch{Records: make([]*storage.Record, 0, len(fresh.Records))}, fresh.Records
	entries := make(map[*storage.Entry]bool, len(fresh.Entries)) // to be stored
	for _, e := range fresh.Entries {
		entries[e] = true
	}
	for _, w := range batch {
		leaf, record, all := len(leaves), len(sealed.Records), true
		for i := range w.places {
			p := &w.places[i]
			isFirst := len(records) > 0 && records[0] == p.record
			if isFirst {
				records = records[1:]
			}
			if isFirst && (p.verdict == nil || entries[p.verdict]) {
				sealed.Records, leaves = append(sealed.Records, p.record), append(leaves, p.under(keyID))
				continue
			}
			if all = false; p.verdict != nil {
				delete(entries, p.verdict)
			}
		}
		if w.whole && !all {
			sealed.Records, leaves = sealed.Records[:record], leaves[:leaf]
			for _, e := range w.entries {
				delete(entries, e)
			}
		}
	}
	unsealed := fresh.Entries
	for _, w := range batch {
		for _, e := range w.entries {
			if len(unsealed) == 0 || unsealed[0] != e {
				continue
			}
			if unsealed = unsealed[1:]; entries[e] {
				sealed.Entries, leaves = append(sealed.Entries, e), append(leaves, receipt.EntryLeaf(e.Body))
			}
		}
	}
	if len(records) > 0 || len(unsealed) > 0 {
		return storage.Batch{}, nil, errors.New("sealing what is not of the batch or not in its order")
	}
	return sealed, leaves, nil
}
