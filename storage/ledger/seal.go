package ledger

import (
	"errors"
	"slices"

	"writ/storage"
	"writ/storage/receipt"
)

// separable returns how many waiters of batch can be committed together. What a tentative
// waiter commits may end up not stored, so no other waiter of the batch may be answered
// with it: a second waiter with the same intent or entry begins the next batch.
func separable(batch []*waiter) int {
	if !slices.ContainsFunc(batch, (*waiter).tentative) {
		return len(batch)
	}
	decided := make(map[element]bool, 2*len(batch)) // and whether by one that is tentative
	for n, w := range batch {
		names := w.elements()
		for _, name := range names {
			if tentative, twice := decided[name]; twice && (tentative || w.tentative()) {
				return max(n, 1) // a tentative one has nothing twice
			}
		}
		for _, name := range names {
			decided[name] = w.tentative()
		}
	}
	return len(batch)
}

// element names what is unique in a batch: an intent, whose kind is empty, or an entry.
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

// sealer returns the seal of batch, which may be asked for again with less.
func (c *committer) sealer(batch []*waiter) storage.Seal {
	return func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		signer := c.cfg.signer.Load()
		sealed, leaves, err := first(batch, fresh, signer.KeyID(), c.leaves[:0])
		if err != nil || len(leaves) == 0 {
			return storage.Batch{}, receipt.SignedHead{}, err
		}
		c.leaves = leaves
		head, sigs := signer.Seal(tip, c.cfg.Now(), leaves)
		for i, r := range sealed.Records {
			r.Receipt.Sig = sigs[i]
		}
		for i, e := range sealed.Entries {
			e.Inclusion = receipt.Inclusion{Sig: sigs[len(sealed.Records)+i], KeyID: signer.KeyID()}
		}
		return sealed, head, nil
	}
}

// first returns what of fresh is to be stored and appends its leaves under a key. It
// leaves out waiters that are whole and of which not everything is fresh, and a record
// and its verdict unless both are.
func first(batch []*waiter, fresh storage.Batch, keyID string, leaves [][32]byte) (storage.Batch, [][32]byte, error) {
	sealed, records := storage.Batch{Records: make([]*storage.Record, 0, len(fresh.Records))}, fresh.Records
	entries := make(map[*storage.Entry]bool, len(fresh.Entries)) // and whether they are stored
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
