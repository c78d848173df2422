package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/stripe/stripe-go/v85"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// maxRemembered bounds two lists of an organization: the stored events of one second, and the
// stored ended subscriptions.
const maxRemembered = 32

// These are the statuses of a subscription that the package treats specially.
const (
	statusActive            = string(stripe.SubscriptionStatusActive)
	statusTrialing          = string(stripe.SubscriptionStatusTrialing)
	statusPastDue           = string(stripe.SubscriptionStatusPastDue)
	statusCanceled          = string(stripe.SubscriptionStatusCanceled)
	statusIncomplete        = string(stripe.SubscriptionStatusIncomplete)
	statusIncompleteExpired = string(stripe.SubscriptionStatusIncompleteExpired)
)

// paid reports whether a subscription with this status gives its plan.
func paid(status string) bool {
	return status == statusActive || status == statusTrialing || status == statusPastDue
}

// ended reports whether a subscription with this status can never give a plan again.
func ended(status string) bool {
	return status == statusCanceled || status == statusIncompleteExpired
}

// change is the effect of an event on a subscription.
type change interface {
	// apply changes s. It returns false if the event is not newer than s.
	apply(s *storage.Subscription) bool
}

// rankPurchase is the rank of a subscription before its own first event, when only its purchase
// is known.
const rankPurchase = 0

// rankOf returns the rank that orders a subscription's events of the same second.
func rankOf(t stripe.EventType) int {
	switch t {
	case stripe.EventTypeCustomerSubscriptionDeleted:
		return 3
	case stripe.EventTypeCustomerSubscriptionUpdated:
		return 2
	default:
		return 1
	}
}

// snapshot is the state of a subscription as an event describes it.
type snapshot struct {
	event     string
	at        time.Time
	rank      int
	id        string
	customer  string
	item      string
	plan      string // the free plan unless the subscription is paid for
	status    string
	began     time.Time
	periodEnd time.Time
	cancel    bool
}

func (n *snapshot) apply(s *storage.Subscription) bool {
	if n.status == statusIncomplete {
		return false
	}
	if !n.news(s) {
		return ended(n.status) && n.id != s.SubscriptionID && rememberEnd(s, n.id)
	}
	ids := []string{n.event}
	if s.SubscriptionID == n.id && n.compare(s.Last) == 0 {
		ids = append(slices.Clone(s.Last.IDs), n.event)
		ids = ids[max(0, len(ids)-maxRemembered):]
	}
	s.Plan, s.Status = n.plan, n.status
	s.SubscriptionID, s.ItemID = n.id, n.item
	s.CustomerID = cmp.Or(n.customer, s.CustomerID)
	s.CurrentPeriodEnd = n.periodEnd
	s.CancelAtPeriodEnd = n.cancel && !ended(n.status)
	s.Began = n.began
	s.Last = storage.SubscriptionEvent{At: n.at, Rank: n.rank, IDs: ids}
	return true
}

// news reports whether n is later than the state in s.
func (n *snapshot) news(s *storage.Subscription) bool {
	if s.SubscriptionID != n.id {
		newer := cmp.Or(n.at.Compare(s.Last.At), n.began.Compare(s.Began))
		takesOver := n.plan != engine.FreePlan && newer > 0 && !slices.Contains(s.Ended, n.id)
		return takesOver || s.SubscriptionID == "" && ended(n.status)
	}
	switch c := n.compare(s.Last); {
	case ended(s.Status):
		return false
	case s.Last.Rank == rankPurchase:
		return true
	case c == 0:
		return !slices.Contains(s.Last.IDs, n.event)
	default:
		return c > 0
	}
}

// rememberEnd stores in s that another subscription, id, has ended. It returns false if s has
// that already. Older events of the ended subscription may arrive later. Without this record they
// would give its plan forever.
func rememberEnd(s *storage.Subscription, id string) bool {
	if slices.Contains(s.Ended, id) {
		return false
	}
	s.Ended = append(slices.Clone(s.Ended), id)
	s.Ended = s.Ended[max(0, len(s.Ended)-maxRemembered):]
	return true
}

func (n *snapshot) compare(last storage.SubscriptionEvent) int {
	return cmp.Or(n.at.Compare(last.At), cmp.Compare(n.rank, last.Rank))
}

// purchase is a paid Checkout. It gives the plan until the first event of the subscription itself
// arrives.
type purchase struct {
	at       time.Time
	id       string
	customer string
	plan     string
}

func (p *purchase) apply(s *storage.Subscription) bool {
	if s.SubscriptionID == p.id || !p.at.After(s.Last.At) || slices.Contains(s.Ended, p.id) {
		return false
	}
	*s = storage.Subscription{
		OrganizationID: s.OrganizationID, Plan: p.plan, Status: statusActive,
		SubscriptionID: p.id, CustomerID: cmp.Or(p.customer, s.CustomerID),
		Last:  storage.SubscriptionEvent{At: p.at, Rank: rankPurchase},
		Ended: s.Ended,
	}
	return true
}

// failure is a failed payment. It changes the status before the subscription's own event arrives.
// It does not change Last, so that event still counts as later.
type failure struct {
	at time.Time
	id string
}

func (f *failure) apply(s *storage.Subscription) bool {
	if s.SubscriptionID != f.id || !f.at.After(s.Last.At) || s.Status != statusActive && s.Status != statusTrialing {
		return false
	}
	s.Status = statusPastDue
	return true
}
