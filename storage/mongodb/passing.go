package mongodb

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Followed implements storage.Log.
func (s *Store) Followed(ctx context.Context) ([]receipt.Chain, error) {
	own, err := s.Tip(ctx)
	all := []receipt.Chain{own}
	if err != nil || !s.Leads() {
		return all, err
	}
	err = s.do(ctx, "", "reading the chains", func(ctx context.Context) error {
		chains, err := s.chains(ctx)
		if err != nil {
			return err
		}
		// The slots are read after the chains: a chain that a handle has taken since is left out.
		held, err := find[slotRow](ctx, s.slots(), doc(slotHolder, doc("$ne", "")))
		if err != nil {
			return err
		}
		for _, chain := range chains {
			isHeld := func(row slotRow) bool { return bytes.Equal(row.Chain, chain[:]) }
			if chain == own.ID || slices.ContainsFunc(held, isHeld) {
				continue
			}
			tip, err := s.tipOf(ctx, chain)
			if err != nil {
				return err
			}
			all = append(all, tip)
		}
		return nil
	})
	return all, err
}

// Rows implements storage.Log. A head names the decisions of its batch, and their rows are looked up.
func (s *database) Rows(ctx context.Context, q storage.RowQuery, f func(storage.HeadRows) error) error {
	return s.scan(ctx, "", "reading the rows of heads", func(ctx context.Context) error {
		if err := s.indexed(recordsName); err != nil {
			return err
		}
		find := options.Find().SetSort(doc("_id", 1)).SetProjection(doc(headMeters, 0, headSigned, 0))
		cursor, err := s.heads().Find(ctx, headsFrom(q.Chain, number(q.From)), find)
		var part []headRow
		var unread error // the error of a query for rows
		decisions := 0
		flush := func() (more bool, err error) {
			var all []storage.HeadRows
			if all, unread = s.headRows(ctx, part, &q); unread != nil {
				return false, nil //nolint:nilerr // it is returned below, because each would wrap it
			}
			part, decisions = part[:0], 0
			for i := range all {
				if err := f(all[i]); err != nil {
					return false, err
				}
			}
			return true, nil
		}
		err = each(ctx, cursor, err, func(row *headRow) (bool, error) {
			if q.Org != "" {
				row.Decisions = slices.DeleteFunc(row.Decisions, func(d headDecisions) bool { return d.Org != q.Org })
			}
			part = append(part, *row)
			if decisions += row.count(); decisions < storage.MaxPage && len(part) < storage.MaxPage {
				return true, nil
			}
			return flush()
		})
		if err == nil && unread == nil && len(part) > 0 {
			_, err = flush()
			err = refuse(err)
		}
		return cmp.Or(err, unread)
	})
}

// count returns the number of decisions of a head.
func (r *headRow) count() (n int) {
	for _, d := range r.Decisions {
		n += len(d.IDs) / idLen
	}
	return n
}

// headRows returns the rows of heads, which it looks up with one query for each organization.
func (s *database) headRows(ctx context.Context, heads []headRow, q *storage.RowQuery) ([]storage.HeadRows, error) {
	byOrg := make(map[string]bson.A)
	for i := range heads {
		for _, d := range heads[i].Decisions {
			for id := d.IDs; len(id) >= idLen && !q.Bare; id = id[idLen:] {
				byOrg[d.Org] = append(byOrg[d.Org], id[:idLen])
			}
		}
	}
	type decision struct {
		org string
		id  uuid.UUID
	}
	found := make(map[decision]*storage.Record)
	for org, ids := range byOrg {
		cursor, err := s.records().Find(ctx, s.onShard(org, append(doc(recordOrg, org), anyOf(recordID, ids)...)))
		err = eachRaw(ctx, cursor, err, func(raw bson.Raw) (bool, error) {
			w, err := parseRow(org, raw)
			if err == nil {
				found[decision{org, w.id}] = w.record
			}
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	all := make([]storage.HeadRows, len(heads))
	for i := range heads {
		all[i] = storage.HeadRows{Seq: uint64(heads[i].ID.Seq), Count: heads[i].count()} //nolint:gosec // it counts
		for _, d := range heads[i].Decisions {
			for id := d.IDs; len(id) >= idLen; id = id[idLen:] {
				if r := found[decision{d.Org, uuid.UUID(id[:idLen])}]; r != nil {
					all[i].Records = append(all[i].Records, r)
				}
			}
		}
	}
	return all, nil
}

// decisionsOf returns the decisions of a batch as its head names them, in the order of the records.
func decisionsOf(records []*storage.Record, ids decisionIDs) (all []headDecisions) {
	for _, r := range records {
		if n := len(all); n == 0 || all[n-1].Org != r.OrganizationID {
			all = append(all, headDecisions{Org: r.OrganizationID})
		}
		last, id := &all[len(all)-1], ids[r]
		last.IDs = append(last.IDs, id[:]...)
	}
	return all
}
