package billing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
)

const (
	created   = "customer.subscription.created"
	updated   = "customer.subscription.updated"
	deleted   = "customer.subscription.deleted"
	completed = "checkout.session.completed"
	failed    = "invoice.payment_failed"
)

// session returns a completed Checkout of acme for plan.
func session(sub, plan string, changes obj) obj {
	s := obj{
		"id": "cs_1", "object": "checkout.session", "mode": "subscription", "payment_status": "paid", "customer": "cus_1",
		"subscription": sub, "client_reference_id": acme, "metadata": obj{"organization_id": acme, "plan": plan},
	}
	for k, v := range changes {
		s[k] = v
	}
	return s
}

// invoice returns an unpaid invoice for the subscription sub of acme.
func invoice(sub string) obj {
	return obj{
		"id": "in_1", "object": "invoice", "customer": "cus_1",
		"parent": obj{"type": "subscription_details", "subscription_details": obj{"subscription": sub, "metadata": obj{"organization_id": acme}}},
	}
}

func TestWebhook_MovesThePlan(t *testing.T) {
	type step struct {
		event        obj
		plan, status string
	}
	up := func(id string, at int, status, price string, changes ...obj) obj {
		return event(id, updated, at, subscription("sub_1", status, price, changes...))
	}
	for name, steps := range map[string][]step{
		"bought, changed, cancelled": {
			{event("e1", created, 0, subscription("sub_1", "incomplete", pricePro)), "", ""},
			{event("e2", completed, 1, session("sub_1", "pro", nil)), "pro", "active"},
			{up("e3", 1, "active", pricePro), "pro", "active"},
			{up("e4", 10, "active", priceBusiness), "business", "active"},
			{up("e5", 20, "active", pricePro), "pro", "active"},
			{event("e6", deleted, 30, subscription("sub_1", "canceled", pricePro)), "free", "canceled"},
		},
		"on trial": {
			{event("e1", created, 0, subscription("sub_1", "trialing", priceBusiness)), "business", "trialing"},
			{up("e2", 10, "paused", priceBusiness), "free", "paused"},
			{up("e3", 20, "active", priceBusiness), "business", "active"},
		},
		"payment failed, then paid": {
			{up("e1", 0, "active", pricePro), "pro", "active"},
			{event("e2", failed, 10, invoice("sub_1")), "pro", "past_due"},
			{up("e3", 10, "past_due", pricePro), "pro", "past_due"},
			{up("e4", 20, "active", pricePro), "pro", "active"},
			{event("e2", failed, 10, invoice("sub_1")), "pro", "active"},
		},
		"payment failed for good": {
			{up("e1", 0, "active", pricePro), "pro", "active"},
			{up("e2", 10, "past_due", pricePro), "pro", "past_due"},
			{up("e3", 20, "unpaid", pricePro), "free", "unpaid"},
			{event("e4", failed, 21, invoice("sub_1")), "free", "unpaid"},
			{event("e5", deleted, 30, subscription("sub_1", "canceled", pricePro)), "free", "canceled"},
		},
		"failed payment in the form of older versions": {
			{up("e1", 0, "active", pricePro), "pro", "active"},
			{event("e2", failed, 10, obj{"subscription": "sub_1", "subscription_details": obj{"metadata": obj{"organization_id": acme}}}), "pro", "past_due"},
		},
		"wrong price gives nothing": {
			{up("e1", 0, "active", "price_other"), "", ""},
			{up("e2", 1, "active", pricePro), "pro", "active"},
			{up("e3", 2, "active", "price_other"), "free", "active"},
			{up("e4", 3, "active", pricePro), "pro", "active"},
		},
		"a status of the future gives nothing": {
			{up("e1", 0, "active", pricePro), "pro", "active"},
			{up("e2", 1, "hibernating", pricePro), "free", "hibernating"},
		},
		"never paid": {
			{event("e1", created, 0, subscription("sub_1", "incomplete", pricePro)), "", ""},
			{event("e2", failed, 1, invoice("sub_1")), "", ""},
			{up("e3", 100, "incomplete_expired", pricePro), "free", "incomplete_expired"},
		},
		"a checkout that was not paid, or is not of a plan": {
			{event("e1", completed, 0, session("sub_1", "pro", obj{"payment_status": "unpaid"})), "", ""},
			{event("e2", completed, 1, session("sub_1", "gold", nil)), "", ""},
			{event("e3", completed, 2, session("", "pro", obj{"mode": "payment"})), "", ""},
			{event("e4", completed, 3, session("sub_1", "pro", obj{"metadata": obj{}})), "", ""},
		},
		"expanded objects": {
			{event("e1", completed, 0, session("sub_1", "pro", obj{"subscription": obj{"id": "sub_1"}, "customer": obj{"id": "cus_1"}})), "pro", "active"},
		},
		"several items": {
			{up("e1", 0, "active", "", obj{"items": obj{"data": []obj{
				{"id": "si_x", "price": obj{"id": "price_seats"}}, {"id": "si_y", "price": obj{"id": priceBusiness}}}}}), "business", "active"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := start(t, "")
			for i, s := range steps {
				if err := h.deliver(s.event); err != nil {
					t.Fatalf("step %d: Webhook(%v) = %v, want nil", i, s.event["type"], err)
				}
				if h.wantPlan(acme, s.plan, s.status); t.Failed() {
					t.Fatalf("step %d: %v", i, s.event)
				}
			}
			h.wantPlan(rival, "", "")
			h.wantNoSecret(nil)
		})
	}
}

func TestWebhook_KeepsWhatTheEventTells(t *testing.T) {
	h := start(t, "")
	must(t, h.deliver(event("e1", created, 0, subscription("sub_1", "active", pricePro, obj{"cancel_at_period_end": true}))))
	want := storage.Subscription{
		OrganizationID: acme, Plan: "pro", Status: "active", CustomerID: "cus_1", SubscriptionID: "sub_1", ItemID: "si_sub_1",
		CurrentPeriodEnd: noon.AddDate(0, 1, 0), CancelAtPeriodEnd: true, UpdatedAt: noon,
		Past:  []storage.PastPlan{{Plan: "free", Until: noon}},
		Began: noon.Add(-time.Minute), Last: storage.SubscriptionEvent{At: noon, Rank: 1, IDs: []string{"e1"}},
	}
	if diff := cmp.Diff(want, h.stored(acme)); diff != "" {
		t.Errorf("subscription (-want +got):\n%s", diff)
	}
	must(t, h.deliver(event("e2", deleted, 9, subscription("sub_1", "canceled", pricePro, obj{"cancel_at_period_end": true}))))
	if s := h.stored(acme); s.CustomerID != "cus_1" || s.CancelAtPeriodEnd || s.Plan != "free" {
		t.Errorf("after the end the subscription is %+v, want the free plan, its customer and nothing to cancel", s)
	}
}

// TestWebhook_AnyOrderAndRepetitionEndsTheSame delivers the events of one subscription in every
// order, each event twice. Late and repeated events must not restore an older plan. Every order
// must have the same result.
func TestWebhook_AnyOrderAndRepetitionEndsTheSame(t *testing.T) {
	for name, story := range map[string]struct {
		events       []obj
		plan, status string
	}{
		"upgraded": {[]obj{
			event("e1", created, 0, subscription("sub_1", "incomplete", pricePro)),
			event("e2", updated, 0, subscription("sub_1", "active", pricePro)),
			event("e3", completed, 1, session("sub_1", "pro", nil)),
			event("e4", updated, 10, subscription("sub_1", "active", priceBusiness)),
		}, "business", "active"},
		"cancelled": {[]obj{
			event("e1", created, 0, subscription("sub_1", "active", pricePro)),
			event("e2", completed, 1, session("sub_1", "pro", nil)),
			event("e3", updated, 10, subscription("sub_1", "active", priceBusiness)),
			event("e4", deleted, 10, subscription("sub_1", "canceled", priceBusiness)),
		}, "free", "canceled"},
		"paid late": {[]obj{
			event("e1", updated, 0, subscription("sub_1", "active", pricePro)),
			event("e2", failed, 5, invoice("sub_1")),
			event("e3", updated, 5, subscription("sub_1", "past_due", pricePro)),
			event("e4", updated, 9, subscription("sub_1", "active", pricePro)),
		}, "pro", "active"},
	} {
		t.Run(name, func(t *testing.T) {
			permute(story.events, func(order []obj) {
				h := start(t, "")
				for _, e := range append(order, order...) {
					must(t, h.deliver(e))
				}
				if h.wantPlan(acme, story.plan, story.status); t.Failed() {
					t.Fatalf("order %v", ids(order))
				}
			})
		})
	}
}

// TestWebhook_AnyOrderOfACancelledSubscriptionEndsFree delivers each event once, because Stripe does not repeat an
// event that got a 200. The end of a subscription may come before its other events.
func TestWebhook_AnyOrderOfACancelledSubscriptionEndsFree(t *testing.T) {
	story := func(sub string) []obj {
		return []obj{
			event("e1", created, 1, subscription(sub, "active", pricePro)),
			event("e2", completed, 2, session(sub, "pro", nil)),
			event("e3", updated, 10, subscription(sub, "active", priceBusiness)),
			event("e4", deleted, 11, subscription(sub, "canceled", priceBusiness)),
		}
	}
	for name, tc := range map[string]struct {
		first        obj
		plan, status string
	}{
		"the only one":         {nil, "free", "canceled"},
		"beside another":       {event("e0", created, 0, subscription("sub_0", "active", pricePro)), "pro", "active"},
		"after one that ended": {event("e0", deleted, 0, subscription("sub_0", "canceled", pricePro)), "free", "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			permute(story("sub_1"), func(order []obj) {
				if tc.plan != "free" && order[0]["type"] != deleted {
					return // sub_1 replaces sub_0 first, so the end of sub_1 gives the free plan
				}
				h := start(t, "")
				if tc.first != nil {
					must(t, h.deliver(tc.first))
				}
				for _, e := range order {
					must(t, h.deliver(e))
				}
				if h.wantPlan(acme, tc.plan, tc.status); t.Failed() {
					t.Fatalf("order %v", ids(order))
				}
			})
		})
	}
}

func TestWebhook_RemembersTheLastEndsAlone(t *testing.T) {
	h := start(t, "")
	must(t, h.deliver(event("e0", created, 0, subscription("sub_live", "active", pricePro))))
	for i := range 2 * maxRemembered {
		for range 2 {
			must(t, h.deliver(event(fmt.Sprint("e", i+1), deleted, i+1, subscription(fmt.Sprint("sub_", i), "canceled", priceBusiness))))
		}
	}
	got := h.stored(acme).Ended
	if len(got) != maxRemembered || got[0] != fmt.Sprint("sub_", maxRemembered) {
		t.Errorf("%d ends are remembered, the first of %v, want the last %d", len(got), got, maxRemembered)
	}
	h.wantPlan(acme, "pro", "active")
}

func ids(events []obj) (list []any) {
	for _, e := range events {
		list = append(list, e["id"])
	}
	return list
}

// permute calls f once for every order of list.
func permute(list []obj, f func([]obj)) {
	var rec func(head, tail []obj)
	rec = func(head, tail []obj) {
		if len(tail) == 0 {
			f(head[:len(head):len(head)])
			return
		}
		for i := range tail {
			rest := append(append([]obj{}, tail[:i]...), tail[i+1:]...)
			rec(append(head[:len(head):len(head)], tail[i]), rest)
		}
	}
	rec(nil, list)
}

func TestWebhook_OutOfOrder(t *testing.T) {
	sub2 := func(status, price string) obj {
		return subscription("sub_2", status, price, obj{"created": noon.Unix() + 100})
	}
	h := start(t, "")
	deliver := func(what string, e obj, plan, status string) {
		t.Helper()
		must(t, h.deliver(e))
		if h.wantPlan(acme, plan, status); t.Failed() {
			t.Fatalf("after %s", what)
		}
	}
	deliver("the first subscription", event("e1", updated, 50, subscription("sub_1", "active", pricePro)), "pro", "active")
	deliver("a late event", event("e0", updated, 49, subscription("sub_1", "active", priceBusiness)), "pro", "active")
	deliver("another of the same second", event("e2", updated, 50, subscription("sub_1", "active", priceBusiness)), "business", "active")
	deliver("a replay within that second", event("e1", updated, 50, subscription("sub_1", "active", pricePro)), "business", "active")
	deliver("the end of a subscription that it never had", event("e3", deleted, 60, subscription("sub_0", "canceled", pricePro)), "business", "active")
	deliver("the second subscription, before the end of the first", event("e5", updated, 101, sub2("active", pricePro)), "pro", "active")
	deliver("the late end of the first", event("e4", deleted, 100, subscription("sub_1", "canceled", priceBusiness)), "pro", "active")
	deliver("a replay of the first", event("e2", updated, 50, subscription("sub_1", "active", priceBusiness)), "pro", "active")
	deliver("a replay of the first's checkout", event("e6", completed, 40, session("sub_1", "business", nil)), "pro", "active")
	deliver("the end of the second", event("e7", deleted, 200, sub2("canceled", pricePro)), "free", "canceled")
	deliver("a replay after the end", event("e5", updated, 101, sub2("active", pricePro)), "free", "canceled")
	deliver("a later event after the end", event("e8", updated, 300, sub2("active", pricePro)), "free", "canceled")
	deliver("a replay of its checkout", event("e9", completed, 99, session("sub_2", "pro", nil)), "free", "canceled")
}

func TestWebhook_RacingEventsEndWithTheNewest(t *testing.T) {
	h := start(t, "")
	var group sync.WaitGroup
	for i := range 32 {
		price := pricePro
		if i == 31 {
			price = priceBusiness
		}
		e := event(fmt.Sprint("e", i), updated, i, subscription("sub_1", "active", price))
		group.Go(func() {
			if err := h.deliver(e); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	h.wantPlan(acme, "business", "active")
}

// TestWebhook_AnOrganizationsLengthIsInCharacters checks that the name of an organization may have
// 128 characters, even if they take more bytes.
func TestWebhook_AnOrganizationsLengthIsInCharacters(t *testing.T) {
	h := start(t, "")
	org := strings.Repeat("🜁", 128)
	must(t, h.deliver(event("e1", created, 0, subscription("sub_1", "active", pricePro, obj{"metadata": obj{"organization_id": org}}))))
	h.wantPlan(org, "pro", "active")
}

func TestWebhook_IgnoresWhatIsNotOurs(t *testing.T) {
	h := start(t, "")
	for name, e := range map[string]obj{
		"an unknown kind":            event("e1", "customer.created", 0, obj{"id": "cus_1", "metadata": obj{"organization_id": acme}}),
		"no organization":            event("e2", created, 0, subscription("sub_1", "active", pricePro, obj{"metadata": obj{}})),
		"null metadata":              event("e3", created, 0, subscription("sub_1", "active", pricePro, obj{"metadata": nil})),
		"an organization of nobody":  event("e4", created, 0, subscription("sub_1", "active", pricePro, obj{"metadata": obj{"organization_id": ""}})),
		"an impossible organization": event("e5", created, 0, subscription("sub_1", "active", pricePro, obj{"metadata": obj{"organization_id": strings.Repeat("x", 501)}})),
		"a connected account":        event("e6", created, 0, subscription("sub_1", "active", pricePro), obj{"account": "acct_1"}),
		"an invoice of nothing":      event("e7", failed, 0, obj{"id": "in_1", "metadata": obj{"organization_id": acme}}),
		"an invoice of a stranger":   event("e8", failed, 0, invoice("sub_of_nobody")),
	} {
		if err := h.deliver(e); err != nil {
			t.Errorf("Webhook with %s = %v, want nil", name, err)
		}
		h.wantPlan(acme, "", "")
		h.wantPlan("", "", "")
	}
}

func TestWebhook_TimesBeyondAllAreNone(t *testing.T) {
	h := start(t, "")
	for i, beyond := range []int64{253402300800, 1 << 40, 1 << 62, math.MaxInt64 - 62135596800, math.MaxInt64} {
		sub := subscription("sub_1", "active", pricePro, obj{"current_period_end": beyond, "created": beyond})
		sub["items"] = obj{"data": []obj{{"id": "si_1", "current_period_end": beyond, "price": obj{"id": pricePro}}}}
		must(t, h.deliver(event(fmt.Sprint("e", i), updated, i, sub)))
		h.wantPlan(acme, "pro", "active")
		if got := h.stored(acme); !got.CurrentPeriodEnd.IsZero() || !got.Began.IsZero() {
			t.Errorf("with times of %d s = %v and %v, want none", beyond, got.CurrentPeriodEnd, got.Began)
		}
	}
}

func TestWebhook_OtherOrganizationsAreUntouched(t *testing.T) {
	h := start(t, "")
	must(t, h.deliver(event("e1", created, 0, subscription("sub_1", "active", pricePro))))
	must(t, h.deliver(event("e2", created, 1, subscription("sub_2", "active", priceBusiness, obj{"metadata": obj{"organization_id": rival}}))))
	must(t, h.deliver(event("e3", deleted, 2, subscription("sub_2", "canceled", priceBusiness, obj{"metadata": obj{"organization_id": rival}}))))
	// This event names acme, but its subscription belongs to another organization. It must not change acme.
	must(t, h.deliver(event("e4", deleted, 3, subscription("sub_2", "canceled", priceBusiness))))
	h.wantPlan(acme, "pro", "active")
	h.wantPlan(rival, "free", "canceled")
}

func TestWebhook_AVersionOfTheAPIOtherThanTheLibrarys(t *testing.T) {
	h := start(t, "")
	old := subscription("sub_1", "active", "", obj{
		"current_period_end": noon.Add(time.Hour).Unix(),
		"items":              obj{"data": []obj{{"id": "si_1", "price": obj{"id": pricePro}}}},
	})
	must(t, h.deliver(event("e1", updated, 0, old, obj{"api_version": "2022-11-15"})))
	h.wantPlan(acme, "pro", "active")
	if s := h.stored(acme); !s.CurrentPeriodEnd.Equal(noon.Add(time.Hour)) {
		t.Errorf("current period end = %v, want that of the subscription", s.CurrentPeriodEnd)
	}
}

type broken struct{ Subscriptions }

var errBroken = errors.New("broken")

// UpdateSubscription implements Subscriptions.
func (broken) UpdateSubscription(context.Context, string, func(*storage.Subscription) bool) (*storage.Subscription, error) {
	return nil, errBroken
}

// Subscription implements Subscriptions.
func (broken) Subscription(context.Context, string) (*storage.Subscription, error) {
	return nil, errBroken
}

func TestStoreThatFailsIsNotHidden(t *testing.T) {
	h := start(t, "http://127.0.0.1:1")
	h.cfg.Store = broken{}
	err := h.deliver(event("e1", created, 0, subscription("sub_1", "active", pricePro)))
	if !errors.Is(err, errBroken) {
		t.Errorf("Webhook = %v, want the store's error: Stripe must deliver the event again", err)
	}
	if _, _, err := h.Checkout(context.Background(), acme, "pro"); !errors.Is(err, errBroken) {
		t.Errorf("Checkout = %v, want the store's error", err)
	}
	if _, err := h.Portal(context.Background(), acme); !errors.Is(err, errBroken) {
		t.Errorf("Portal = %v, want the store's error", err)
	}
}
