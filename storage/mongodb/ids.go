package mongodb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"writ/storage"
)

// parseID returns the id that s spells canonically.
func parseID(s string) (uuid.UUID, bool) {
	id, err := uuid.Parse(s)
	return id, err == nil && id.String() == s
}

// idTime returns the time in a UUIDv7, which has a resolution of one millisecond.
func idTime(id uuid.UUID) time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))) //nolint:gosec // 48 bits
}

// idAt returns the least id of time t.
func idAt(t time.Time) uuid.UUID {
	const last = 1<<48 - 1
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(min(max(t.UnixMilli(), 0), last))) //nolint:gosec // 48 bits
	var id uuid.UUID
	copy(id[:6], ms[2:])
	return id
}

// checkBatch returns the decision ids of batch, by record, or why batch can't be
// stored.
func checkBatch(batch storage.Batch) (map[*storage.Record]uuid.UUID, error) {
	for _, e := range batch.Entries {
		if err := errors.Join(checkOrg(e.OrganizationID), checkEntry(e)); err != nil {
			return nil, err
		}
	}
	ids := make(map[*storage.Record]uuid.UUID, len(batch.Records))
	for _, r := range batch.Records {
		if err := checkOrg(r.OrganizationID); err != nil {
			return nil, err
		}
		id, ok := parseID(r.DecisionID)
		if !ok || id.Version() != 7 {
			return nil, fmt.Errorf("decision id %.64q is not a canonical UUIDv7", r.DecisionID)
		}
		if skew := r.DecidedAt.Sub(idTime(id)).Abs(); skew > storage.MaxSkew {
			return nil, fmt.Errorf("decision id %s carries a time that is %v away from decided_at", id, skew)
		}
		if r.Settlement != nil {
			return nil, fmt.Errorf("decision %s is settled before it is stored", id)
		}
		ids[r] = id
	}
	return ids, nil
}

// checkEntry returns why e can't be stored.
func checkEntry(e *storage.Entry) error {
	switch e.Kind {
	case storage.SettlementEntry:
		if _, ok := parseID(e.Key); !ok || e.Settlement == nil {
			return fmt.Errorf("a settlement of decision %.64q", e.Key)
		}
		return nil
	case storage.VerdictEntry, storage.RetentionEntry, storage.ChangeEntry:
		if len(e.Body) > 0 {
			return nil
		}
	}
	return fmt.Errorf("an entry of kind %.64q with %d bytes", e.Kind, len(e.Body))
}
