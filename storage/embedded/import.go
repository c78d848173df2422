package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"writ/storage"
)

// Import implements storage.Importer. It is a write like that of documents: the
// chain and the meters stay as they are.
func (s *Store) Import(ctx context.Context, org string, rows []*storage.Record, removed []*storage.Tombstone) error {
	if err := errors.Join(ctx.Err(), checkOrg(org), storage.CheckImport(org, rows, removed)); err != nil {
		return err
	}
	s.writes.Lock()
	defer s.writes.Unlock()
	s.commits.Lock()
	defer s.commits.Unlock()
	if err := s.health.writable(); err != nil {
		return err
	}
	b := &batch{b: s.db.NewBatchWithSize(1024 * (len(rows) + len(removed)))}
	if err := s.addImport(b, rows, removed); err != nil {
		return errors.Join(err, b.b.Close())
	}
	if b.err == nil && b.b.Empty() {
		return b.b.Close()
	}
	return s.finish(b)
}

// addImport puts the rows and tombstones that are not stored yet into b. commits is held.
func (s *Store) addImport(b *batch, rows []*storage.Record, removed []*storage.Tombstone) (err error) {
	stored, err := s.intents()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.Close()) }()
	for _, r := range rows {
		id := uuid.MustParse(r.DecisionID) // CheckImport has
		stands, err := s.byIntent(stored, intent{r.OrganizationID, r.IntentKey()})
		if stands != nil {
			err = storage.SameRow(stands, r)
		} else if err == nil {
			err = s.noRow(r.OrganizationID, id)
		}
		if err != nil {
			return err
		}
		if stands != nil {
			continue
		}
		s.addRecord(b, r, id)
		if r.Settlement != nil {
			s.addEntry(b, r.SettlementEntry(), place{})
		}
	}
	for _, t := range removed {
		if err := s.addTombstone(b, stored, t); err != nil {
			return err
		}
	}
	return nil
}

// noRow returns storage.ErrConflict if a decision has a row.
func (s *Store) noRow(org string, id uuid.UUID) error {
	_, err := s.get(recordKey(org, id))
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err == nil:
		err = fmt.Errorf("%w: decision %s is of another intent", storage.ErrConflict, id)
	}
	return err
}

// addTombstone puts t into b unless it is stored.
func (s *Store) addTombstone(b *batch, stored *iterator, t *storage.Tombstone) error {
	id := uuid.MustParse(t.DecisionID) // CheckImport has
	v := id[:]
	for _, l := range t.Leaves {
		v = appendForeignLeaf(v, l, true)
	}
	s.keys = s.keys[:0].org(kindIntent, t.OrganizationID).text(t.IntentKey())
	stands, found, err := s.lookUp(stored, s.keys)
	switch {
	case err != nil:
		return err
	case found && string(stands) == string(v):
		return nil
	case found:
		return fmt.Errorf("%w: another decision than %s, which was removed, stands for its intent", storage.ErrConflict, id)
	}
	b.set(s.keys, v)
	s.known.add(hashIntent(s.keys))
	return s.noRow(t.OrganizationID, id)
}
