package storagetest

import (
	"cmp"
	"context"
	"slices"

	"writ.example/writ/storage"
)

// Import implements storage.Importer.
func (h *LogHandle) Import(ctx context.Context, org string, rows []*storage.Record, removed []*storage.Tombstone) error {
	if err := cmp.Or(ctx.Err(), storage.CheckImport(org, rows, removed)); err != nil {
		return err
	}
	m := h.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var fresh []*storage.Record
	for _, r := range rows {
		earlier := m.intent(org, r.IntentKey())
		if earlier == nil && m.record(org, r.DecisionID) == nil {
			fresh = append(fresh, r)
		} else if earlier == nil {
			return storage.ErrConflict
		} else if err := storage.SameRow(earlier, r); err != nil {
			return err
		}
	}
	var left []*storage.Tombstone
	for _, t := range removed {
		earlier := m.intent(org, t.IntentKey())
		switch {
		case earlier == nil && m.record(org, t.DecisionID) == nil:
			imported := *t
			imported.Imported = true
			left = append(left, &imported)
		case earlier == nil || !earlier.Removed() || earlier.DecisionID != t.DecisionID:
			return storage.ErrConflict
		}
	}
	m.Records, m.Graves = append(m.Records, fresh...), append(m.Graves, left...)
	return nil
}

// CountImported implements storage.Importer.
func (h *LogHandle) CountImported(_ context.Context, org string) (n storage.Imported, err error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	return n, h.m.eachImported(org, &n, func(*storage.Record, *storage.Tombstone) bool { return true })
}

// RemoveImported implements storage.Importer.
func (h *LogHandle) RemoveImported(_ context.Context, org string, most int) (int, error) {
	m := h.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var n storage.Imported
	rows, left := make(map[*storage.Record]bool), make(map[*storage.Tombstone]bool)
	err := m.eachImported(org, &n, func(r *storage.Record, t *storage.Tombstone) bool {
		rows[r], left[t] = true, true
		return n.All() < most
	})
	if err := cmp.Or(err, n.Removable()); err != nil {
		return 0, err
	}
	m.Records = slices.DeleteFunc(m.Records, func(r *storage.Record) bool { return rows[r] })
	m.Graves = slices.DeleteFunc(m.Graves, func(t *storage.Tombstone) bool { return left[t] })
	return n.All(), nil
}

// eachImported calls f for each imported row and tombstone of org, until f returns false. A row is
// imported if its chain is not in m.
func (m *MemoryLog) eachImported(org string, n *storage.Imported, f func(*storage.Record, *storage.Tombstone) bool) error {
	own := func(chain [16]byte) bool { return len(m.ByChain[chain]) > 0 }
	for _, r := range m.Records {
		if r.OrganizationID != org {
			continue
		}
		if imported, err := n.AddRow(r, own); err != nil || imported && !f(r, nil) {
			return err
		}
	}
	for _, t := range m.Graves {
		if t.OrganizationID == org && n.AddRemoved(t, own) && !f(nil, t) {
			break
		}
	}
	return nil
}
