package storage

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ParseID returns the id whose canonical form is s.
func ParseID(s string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(s)
	text, _ := id.MarshalText() // cannot fail; String would allocate
	return id, err == nil && string(text) == s
}

// IDTime returns the time in a UUIDv7. Its resolution is one millisecond.
func IDTime(id uuid.UUID) time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:])))
}

// IDAt returns the least id with the time t.
func IDAt(t time.Time) uuid.UUID {
	const last = 1<<48 - 1
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(min(max(t.UnixMilli(), 0), last)))
	var id uuid.UUID
	copy(id[:6], ms[2:])
	return id
}

// Check returns the decision id of each record of b. It returns an error if no backend may store b.
// org returns an error for an organization that this backend can't store.
func (b Batch) Check(org func(string) error) (map[*Record]uuid.UUID, error) {
	for _, e := range b.Entries {
		if err := org(e.OrganizationID); err != nil {
			return nil, err
		}
		if err := e.check(); err != nil {
			return nil, err
		}
	}
	ids := make(map[*Record]uuid.UUID, len(b.Records))
	for _, r := range b.Records {
		if err := org(r.OrganizationID); err != nil {
			return nil, err
		}
		id, err := r.checkID()
		if err != nil {
			return nil, err
		}
		if r.Settlement != nil {
			return nil, fmt.Errorf("decision %s is settled before it is stored", id)
		}
		if strings.Contains(r.IntentID, "\x00") {
			return nil, fmt.Errorf("intent id %.64q of decision %s has a zero byte", r.IntentID, id)
		}
		ids[r] = id
	}
	return ids, nil
}

func decisionID(s string) (uuid.UUID, error) {
	id, ok := ParseID(s)
	if !ok || id.Version() != 7 {
		return id, fmt.Errorf("decision id %.64q is not a canonical UUIDv7", s)
	}
	return id, nil
}

// checkID returns r's decision id. It returns an error if no backend may store r.
func (r *Record) checkID() (uuid.UUID, error) {
	id, err := decisionID(r.DecisionID)
	if skew := r.DecidedAt.Sub(IDTime(id)).Abs(); err == nil && skew > MaxSkew {
		err = fmt.Errorf("decision id %s carries a time that is %v away from decided_at", id, skew)
	}
	return id, err
}

// check returns an error if no backend may store e.
func (e *Entry) check() error {
	switch e.Kind {
	case SettlementEntry:
		if _, ok := ParseID(e.Key); !ok || e.Settlement == nil {
			return fmt.Errorf("a settlement of decision %.64q", e.Key)
		}
		return nil
	case VerdictEntry, RetentionEntry, ChangeEntry, ImportEntry, AbandonEntry:
		if len(e.Body) > 0 {
			return nil
		}
	}
	return fmt.Errorf("an entry of kind %.64q with %d bytes", e.Kind, len(e.Body))
}
