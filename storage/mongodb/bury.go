package mongodb

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// bury gives up the holders of expired slots and settles the remains of all handles that
// were given up.
func (s *Store) bury(ctx context.Context) error {
	rows, err := find[slotRow](ctx, s.slots(), bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "holder", Value: bson.D{{Key: "$ne", Value: ""}}}, expired},
		bson.D{{Key: "dead", Value: bson.D{{Key: "$ne", Value: ""}}}},
	}}})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Holder != "" {
			s.health.log.Warn("another replica is silent and is given up", "slot", row.ID)
			if err := s.giveUp(ctx, &row, expired); err != nil {
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

// giveUp takes a slot from its holder if the slot is unchanged and more selects it.
func (s *Store) giveUp(ctx context.Context, row *slotRow, more ...bson.E) error {
	held := append(bson.D{{Key: "_id", Value: row.ID}, {Key: "holder", Value: row.Holder}}, more...)
	r, err := s.slots().UpdateOne(ctx, held, bson.D{{Key: "$set", Value: bson.D{{Key: "holder", Value: ""}, {Key: "dead", Value: row.Holder}}}})
	if err == nil && r.MatchedCount > 0 {
		row.Dead = row.Holder
	}
	return err
}

// settleDead settles the remains of a holder that was given up. It ends its
// transactions, which would block others for a minute, counts its uncounted decisions,
// and takes back its places. A later transaction of that holder sees that the holder was
// given up. settleDead is idempotent.
func (s *Store) settleDead(ctx context.Context, row *slotRow) error {
	if row.Dead == "" {
		return nil
	}
	var sessions bson.A
	for _, id := range row.Sessions {
		sessions = append(sessions, bson.D{{Key: "id", Value: id}})
	}
	if len(sessions) > 0 {
		if err := s.db.RunCommand(ctx, bson.D{{Key: "killSessions", Value: sessions}}).Err(); err != nil {
			return err
		}
	}
	if err := s.countChain(ctx, [16]byte(row.Chain)); err != nil {
		return err
	}
	if err := s.freePlaces(ctx, row.Dead); err != nil {
		return err
	}
	_, err := s.slots().UpdateOne(ctx, bson.D{{Key: "_id", Value: row.ID}, {Key: "dead", Value: row.Dead}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "dead", Value: ""}, {Key: "sessions", Value: bson.A{}}}}})
	return err
}

// release settles what this handle has and gives its slot up, unless others have done so. It
// must have no operation under way.
func (l *slot) release(ctx context.Context, s *Store) error {
	if err := s.countChain(ctx, l.chain); err != nil {
		return err
	}
	if err := s.freePlaces(ctx, l.holder); err != nil {
		return err
	}
	_, err := s.slots().UpdateOne(ctx, l.mine(), bson.D{{Key: "$set", Value: bson.D{{Key: "holder", Value: ""}, {Key: "sessions", Value: bson.A{}}}}})
	return err
}
