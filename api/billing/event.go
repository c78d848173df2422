package billing

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stripe/stripe-go/v85"

	"writ.example/writ/engine"
)

// These are the metadata keys that name an event's organization.
const (
	metaOrganization = "organization_id"
	metaPlan         = "plan"
)

// These types declare the members of events that the package reads. The Stripe account or the
// endpoint sets the API version of webhooks, which may differ from the library's version. The
// declared members mean the same in each version. If a member has moved between versions, both
// places are read.
type (
	subscriptionObject struct {
		ID         string            `json:"id"`
		Customer   reference         `json:"customer"`
		Status     string            `json:"status"`
		Created    int64             `json:"created"`
		CancelAtPE bool              `json:"cancel_at_period_end"`
		CancelAt   int64             `json:"cancel_at"`
		PeriodEnd  int64             `json:"current_period_end"`
		Metadata   map[string]string `json:"metadata"`
		Items      struct {
			Data []struct {
				ID        string `json:"id"`
				PeriodEnd int64  `json:"current_period_end"`
				Price     struct {
					ID string `json:"id"`
				} `json:"price"`
			} `json:"data"`
		} `json:"items"`
	}
	sessionObject struct {
		Mode          string            `json:"mode"`
		PaymentStatus string            `json:"payment_status"`
		Customer      reference         `json:"customer"`
		Subscription  reference         `json:"subscription"`
		Metadata      map[string]string `json:"metadata"`
	}
	invoiceObject struct {
		Subscription reference           `json:"subscription"`
		Details      subscriptionDetails `json:"subscription_details"`
		Parent       struct {
			Details subscriptionDetails `json:"subscription_details"`
		} `json:"parent"`
	}
	subscriptionDetails struct {
		Subscription reference         `json:"subscription"`
		Metadata     map[string]string `json:"metadata"`
	}
)

// reference is the id of an object. The JSON has either the id or the whole object.
type reference string

// UnmarshalJSON implements json.Unmarshaler.
func (r *reference) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var object struct {
			ID string `json:"id"`
		}
		err := json.Unmarshal(data, &object)
		*r = reference(object.ID)
		return err
	}
	return json.Unmarshal(data, (*string)(r))
}

// read returns the organization of e and the change that e makes. c is nil if e changes nothing.
func (b *Billing) read(e *stripe.Event) (org string, c change, err error) {
	if e.Account != "" {
		return "", nil, nil
	}
	if b.otherMode(e) {
		b.cfg.Log.Warn("a billing event is of Stripe's other mode: test or live", "event", e.ID, "livemode", e.Livemode)
		return "", nil, nil
	}
	switch e.Type {
	case stripe.EventTypeCustomerSubscriptionCreated, stripe.EventTypeCustomerSubscriptionUpdated,
		stripe.EventTypeCustomerSubscriptionDeleted:
		return b.readSubscription(e)
	case stripe.EventTypeCheckoutSessionCompleted:
		return b.readSession(e)
	case stripe.EventTypeInvoicePaymentFailed:
		return readInvoice(e)
	default:
		return "", nil, nil
	}
}

// otherMode reports whether e and the key differ in mode: one is live and the other is test.
// Purchases in test mode cost nothing, so they must not change a live plan. The key's prefix
// tells its mode. With another prefix, events of both modes count.
func (b *Billing) otherMode(e *stripe.Event) bool {
	_, mode, _ := strings.Cut(b.cfg.Key, "_") // sk_live_…, rk_test_…
	return strings.HasPrefix(mode, "live_") && !e.Livemode || strings.HasPrefix(mode, "test_") && e.Livemode
}

func (b *Billing) readSubscription(e *stripe.Event) (string, change, error) {
	var o subscriptionObject
	if err := object(e, &o); err != nil {
		return "", nil, err
	}
	if o.ID == "" || o.Status == "" {
		return "", nil, errNotEvent()
	}
	s := &snapshot{
		event: e.ID, at: time.Unix(e.Created, 0).UTC(), rank: rankOf(e.Type),
		id: o.ID, customer: string(o.Customer), status: o.Status, plan: engine.FreePlan,
		began: unix(o.Created), periodEnd: unix(o.PeriodEnd), cancel: o.CancelAtPE || o.CancelAt > 0,
	}
	if e.Type == stripe.EventTypeCustomerSubscriptionDeleted {
		s.status = statusCanceled
	}
	for _, item := range o.Items.Data {
		if plan, ok := b.plans[item.Price.ID]; ok {
			s.item = item.ID
			if item.PeriodEnd > 0 {
				s.periodEnd = unix(item.PeriodEnd)
			}
			if paid(s.status) {
				s.plan = plan
			}
			break
		}
	}
	if s.item == "" && organization(o.Metadata) != "" {
		b.cfg.Log.Warn("a subscription is at no price that is configured: it gives the free plan", "event", e.ID,
			"subscription", o.ID)
	}
	return organization(o.Metadata), s, nil
}

func (b *Billing) readSession(e *stripe.Event) (string, change, error) {
	var o sessionObject
	if err := object(e, &o); err != nil {
		return "", nil, err
	}
	_, known := b.cfg.Prices[o.Metadata[metaPlan]]
	if o.Mode != "subscription" || o.Subscription == "" || o.PaymentStatus == "unpaid" || !known {
		return "", nil, nil
	}
	return organization(o.Metadata), &purchase{
		at: unix(e.Created), id: string(o.Subscription), customer: string(o.Customer), plan: o.Metadata[metaPlan],
	}, nil
}

func readInvoice(e *stripe.Event) (string, change, error) {
	var o invoiceObject
	if err := object(e, &o); err != nil {
		return "", nil, err
	}
	d := o.Parent.Details
	if d.Subscription == "" {
		d = o.Details
		d.Subscription = o.Subscription
	}
	if d.Subscription == "" {
		return "", nil, nil
	}
	return organization(d.Metadata), &failure{at: unix(e.Created), id: string(d.Subscription)}, nil
}

func object(e *stripe.Event, o any) error {
	if err := json.Unmarshal(e.Data.Raw, o); err != nil {
		return errNotEvent()
	}
	return nil
}

func errNotEvent() error {
	return refuse(CodeInvalidEvent, "The event's object is not what its type says.")
}

// organization returns the organization that metadata names, or "".
func organization(metadata map[string]string) string {
	return metadata[metaOrganization]
}

// unix converts Unix seconds to a time. It returns the zero time if seconds is not positive or
// too large for RFC 3339.
func unix(seconds int64) time.Time {
	t := time.Unix(seconds, 0).UTC()
	if _, err := t.MarshalText(); err != nil || seconds <= 0 {
		return time.Time{}
	}
	return t
}
