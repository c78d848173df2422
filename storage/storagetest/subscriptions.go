package storagetest

import (
	"time"

	"writ/storage"
)

func subscription(org, plan string) *storage.Subscription {
	return &storage.Subscription{
		OrganizationID: org, Plan: plan, Status: "active", CustomerID: "cus_1", SubscriptionID: "sub_1",
		CurrentPeriodEnd: noon.AddDate(0, 1, 0), UpdatedAt: noon.Add(time.Second),
	}
}

var subscriptionTests = []test{
	{"PutSubscription stores or replaces", func(w *world) {
		_, err := w.Subscription(w.ctx, "org")
		w.wantErr("Subscription before", err, storage.ErrNotFound)
		for _, plan := range []string{"pro", "business"} {
			w.must("PutSubscription", w.PutSubscription(w.ctx, subscription("org", plan)))
			got, err := w.Subscription(w.ctx, "org")
			w.must("Subscription", err)
			w.wantSame("Subscription", got, subscription("org", plan))
		}
		_, err = w.Subscription(w.ctx, "or")
		w.wantErr("Subscription elsewhere", err, storage.ErrNotFound)
	}},
}
