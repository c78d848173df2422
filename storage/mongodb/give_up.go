package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// giveUpSilent gives up the holders of expired slots. It also cleans up after every holder that was
// given up earlier, if that is still needed.
func (s *Store) giveUpSilent(ctx context.Context) error {
	rows, err := find[slotRow](ctx, s.slots(), doc("$or", bson.A{
		doc(slotHolder, doc("$ne", ""), "$expr", expired), doc(slotDead, doc("$ne", "")),
	}))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Holder != "" {
			s.health.log.Warn("another replica is silent and is given up", "slot", row.ID)
			if err := s.giveUp(ctx, &row, "$expr", expired); err != nil {
				return err
			}
			if row.Dead == row.Holder {
				s.metrics.givenUp.Inc()
			}
		}
		if err := s.settleDead(ctx, &row); err != nil {
			return err
		}
	}
	return nil
}

// giveUp takes a slot away from its holder. It does nothing if the slot has another holder by now,
// or if the conditions in more do not select it.
func (s *Store) giveUp(ctx context.Context, row *slotRow, more ...any) error {
	held := append(doc("_id", row.ID, slotHolder, row.Holder), doc(more...)...)
	r, err := s.slots().UpdateOne(ctx, held, set(slotHolder, "", slotDead, row.Holder))
	if err == nil && r.MatchedCount > 0 {
		row.Dead = row.Holder
	}
	return err
}

// settleDead cleans up after a holder that was given up. It ends the transactions of the holder,
// which could otherwise block others for a minute. It counts the uncounted decisions of the holder
// and takes back its places. A later transaction of the holder fails. settleDead is idempotent.
func (s *Store) settleDead(ctx context.Context, row *slotRow) error {
	if row.Dead == "" {
		return nil
	}
	var sessions bson.A
	for _, id := range row.Sessions {
		sessions = append(sessions, doc("id", id))
	}
	if len(sessions) > 0 {
		if err := s.db.RunCommand(ctx, doc("killSessions", sessions)).Err(); err != nil {
			return err
		}
	}
	if err := s.countChain(ctx, [16]byte(row.Chain)); err != nil {
		return err
	}
	if err := s.freePlaces(ctx, row.Dead); err != nil {
		return err
	}
	_, err := s.slots().UpdateOne(ctx, doc("_id", row.ID, slotDead, row.Dead),
		set(slotDead, "", slotSessions, bson.A{}))
	return err
}

// release counts the decisions of this handle, takes back its places and frees its slot. If another
// handle has given this handle up, the slot stays unchanged. This handle must have no operation
// under way.
func (l *slot) release(ctx context.Context, s *Store) error {
	if err := s.countChain(ctx, l.chain); err != nil {
		return err
	}
	if err := s.freePlaces(ctx, l.holder); err != nil {
		return err
	}
	_, err := s.slots().UpdateOne(ctx, l.mine(), set(slotHolder, "", slotSessions, bson.A{}))
	return err
}
