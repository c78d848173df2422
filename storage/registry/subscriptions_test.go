package registry_test

import (
	"fmt"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// subscription returns a subscription with every field set.
func subscription(org, plan string) *storage.Subscription {
	return &storage.Subscription{
		OrganizationID: org, Plan: plan, Status: "active", CustomerID: "cus_1", SubscriptionID: "sub_1", ItemID: "si_1",
		CurrentPeriodEnd: noon.AddDate(0, 1, 0), CancelAtPeriodEnd: true, UpdatedAt: noon.Add(time.Second),
		Past:  []storage.PastPlan{{Plan: "pro", Until: noon}, {Plan: "free", Until: noon.Add(time.Second)}},
		Began: noon.Add(-time.Hour), Last: storage.SubscriptionEvent{At: noon, Rank: 2, IDs: []string{"evt_1", "evt_2"}},
		Ended: []string{"sub_0"},
	}
}

func (w *world) wantSubscription(want *storage.Subscription) {
	w.Helper()
	got, err := w.Subscription(w.ctx, want.OrganizationID)
	w.Must("Subscription", err)
	w.WantSame("Subscription", got, want)
}

var subscriptionTests = []test{
	{"PutSubscription stores or replaces", func(w *world) {
		_, err := w.Subscription(w.ctx, "org")
		w.WantErr("Subscription before", err, storage.ErrNotFound)
		for _, plan := range []string{"pro", "business"} {
			w.put("org", subscription("org", plan))
			w.wantSubscription(subscription("org", plan))
		}
		_, err = w.Subscription(w.ctx, "or")
		w.WantErr("Subscription elsewhere", err, storage.ErrNotFound)
	}},
	{"UpdateSubscription replaces the subscription by what f makes of it", func(w *world) {
		for _, plan := range []string{"pro", "business"} {
			got, err := w.UpdateSubscription(w.ctx, "org", func(s *storage.Subscription) bool {
				if s.OrganizationID != "org" || (s.Plan == "") != (plan == "pro") {
					w.Errorf("f's subscription = %+v before %s", s, plan)
				}
				*s = *subscription("org", plan)
				return true
			})
			w.Must("UpdateSubscription", err)
			w.WantSame("UpdateSubscription", got, subscription("org", plan))
			w.wantSubscription(subscription("org", plan))
		}
	}},
	{"UpdateSubscription that changes nothing writes nothing; ErrNotFound when there is none", func(w *world) {
		var h storagetest.Heard
		unchanged := func(s *storage.Subscription) bool {
			s.Plan = "thrown away"
			return false
		}
		_, err := w.UpdateSubscription(w.ctx, "org", unchanged)
		w.WantErr("UpdateSubscription of none", err, storage.ErrNotFound)
		_, err = w.Subscription(w.ctx, "org")
		w.WantErr("Subscription", err, storage.ErrNotFound)
		w.put("org", subscription("org", "pro"))
		defer w.docs.Watch(h.Add)()
		_, err = w.UpdateSubscription(w.ctx, "org", unchanged)
		w.Must("UpdateSubscription", err)
		w.wantSubscription(subscription("org", "pro"))
		w.WantSame("changes", h.TakeNames(), []storage.Change(nil))
	}},
	{"UpdateSubscription refuses another organization's", func(w *world) {
		_, err := w.UpdateSubscription(w.ctx, "org", func(s *storage.Subscription) bool {
			*s = *subscription("other", "pro")
			return true
		})
		if err == nil {
			w.Error("UpdateSubscription to another organization = nil, want an error")
		}
		_, err = w.Subscription(w.ctx, "other")
		w.WantErr("Subscription", err, storage.ErrNotFound)
	}},
	{"UpdateSubscription is atomic: no other write may fall between", func(w *world) {
		storagetest.Race(func(racer int) {
			_, err := w.UpdateSubscription(w.ctx, "org", func(s *storage.Subscription) bool {
				s.Last.Rank++
				s.Last.IDs = append(s.Last.IDs, fmt.Sprint(racer))
				return true
			})
			if err != nil {
				w.Errorf("UpdateSubscription = %v", err)
			}
		})
		got, err := w.Subscription(w.ctx, "org")
		w.Must("Subscription", err)
		if got.Last.Rank != storagetest.Racers || len(got.Last.IDs) != storagetest.Racers {
			w.Errorf("after %d updates the rank is %d with %d ids", storagetest.Racers, got.Last.Rank, len(got.Last.IDs))
		}
	}},
}
