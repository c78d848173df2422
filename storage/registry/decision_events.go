package registry

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"writ.example/writ/storage"
)

// FeedDecisions stores the deliveries of events about decisions of a chain. The events are in the order of
// their heads. Events of a head that was fed before are left out, so all events of a head must be in one
// call. In a minute at most most events of each type are stored. Further ones, and those for which there is
// no room, are counted.
func (r *Registry) FeedDecisions(
	ctx context.Context, org string, chain [16]byte, at time.Time, most int, events []storage.HeadEvent,
) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		hooks, err := webhooks(tx, org)
		if err != nil {
			return err
		}
		return changeOutbox(tx, org, func(o *storage.Outbox) error {
			s, of := &sorter{tx, org, at, o}, hex.EncodeToString(chain[:])
			if err := s.sumUp(hooks); err != nil {
				return err
			}
			fed := o.Heads[of]
			for i := range events {
				if events[i].Seq <= fed {
					continue
				}
				if err := s.tally(hooks, &events[i].Event, most); err != nil {
					return err
				}
				if o.Heads == nil {
					o.Heads = make(map[string]uint64)
				}
				o.Heads[of] = events[i].Seq
			}
			return nil
		})
	})
}

// SumUp stores the events with the numbers of decisions that had no event in an earlier minute than at.
func (r *Registry) SumUp(ctx context.Context, org string, at time.Time) error {
	return r.update(ctx, org, func(tx storage.Tx) error {
		hooks, err := webhooks(tx, org)
		if err != nil {
			return err
		}
		return changeOutbox(tx, org, func(o *storage.Outbox) error { return (&sorter{tx, org, at, o}).sumUp(hooks) })
	})
}

// tally adds e, or counts it.
func (s *sorter) tally(hooks []*storage.Webhook, e *storage.Event, most int) error {
	if !slices.ContainsFunc(hooks, func(w *storage.Webhook) bool { return w.Wants(e) }) {
		return nil
	}
	t := s.box.Tallies[e.Type]
	if minute := s.at.UTC().Truncate(time.Minute); minute.After(t.Minute) {
		t = storage.Tally{Minute: minute}
	}
	counted := t.Events >= most || s.box.Pending >= maxPending
	if counted {
		t.Summed++
	} else {
		t.Events++
	}
	if s.box.Tallies == nil {
		s.box.Tallies = make(map[string]storage.Tally)
	}
	s.box.Tallies[e.Type] = t
	if counted {
		return nil
	}
	return s.sort(hooks, []storage.Event{*e})
}

// sumUp adds the events of tallies that are over, and forgets these tallies.
func (s *sorter) sumUp(hooks []*storage.Webhook) error {
	for _, kind := range slices.Sorted(maps.Keys(s.box.Tallies)) {
		t := s.box.Tallies[kind]
		if !t.Over(s.at) {
			continue
		}
		delete(s.box.Tallies, kind)
		if err := s.sort(hooks, []storage.Event{{
			Type: kind, Subject: "decisions/" + kind, Fact: t.Minute.Format(time.RFC3339), At: s.at,
			Data: map[string]any{"count": t.Summed, "from": t.Minute, "to": t.Minute.Add(time.Minute)},
		}}); err != nil {
			return err
		}
	}
	return nil
}
