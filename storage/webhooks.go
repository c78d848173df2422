package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The types of events. They are part of the public API, so none may change.
const (
	ApprovalPending  = "approval.pending"
	ApprovalApproved = "approval.approved"
	ApprovalRejected = "approval.rejected"
	ApprovalExpired  = "approval.expired"
	AgentDisabled    = "agent.disabled"
	// OrganizationStopped and OrganizationResumed are of an organization whose status is changed.
	OrganizationStopped = "organization.stopped"
	OrganizationResumed = "organization.resumed"
	UsageLimitNear      = "usage.limit_near"
	PolicyRegistered    = "policy.registered"
	// DecisionDenied is of a deny, DecisionApprovedByRule of an allow that a rule decided. An event of
	// these types can also stand for the number of decisions for which there were no events: see [Tally].
	DecisionDenied         = "decision.denied"
	DecisionApprovedByRule = "decision.approved_by_rule"
	// WebhookTest is sent on request, also to a webhook that does not name this type.
	WebhookTest = "webhook.test"
)

// EventTypes are the types of events that a webhook can receive.
func EventTypes() []string {
	return []string{
		ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalExpired, AgentDisabled,
		OrganizationStopped, OrganizationResumed, UsageLimitNear,
		PolicyRegistered, DecisionDenied, DecisionApprovedByRule,
	}
}

// Event is something that happened, about which an organization's webhooks get a message.
type Event struct {
	Type string
	// Subject says what the event is about, such as "agent/" and an id. A webhook receives the
	// events about one subject in their order.
	Subject string
	// Fact distinguishes the event from other events with the same type and subject.
	Fact string
	At   time.Time
	Data any // a JSON object
}

// ID returns the id of the event: "msg_" and 32 hexadecimal digits. The id depends only on org
// and on the event's type, subject and fact, so every process computes the same id.
func (e *Event) ID(org string) string {
	h := sha256.New()
	for _, part := range []string{org, e.Type, e.Subject, e.Fact} {
		h.Write(Text(part))
	}
	return "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// Webhook is a URL that receives events of an organization.
type Webhook struct {
	ID     string   `json:"id"`
	URL    string   `json:"url"`
	Events []string `json:"events"` // types of the events that it receives
	// Secrets sign every message, each on its own. The newest is first.
	Secrets   []WebhookSecret `json:"secrets"`
	CreatedAt time.Time       `json:"created_at"`
}

// WebhookSecret is a secret in the form of Standard Webhooks: "whsec_" and base64. It is stored
// in plain text, because HMAC needs it.
type WebhookSecret struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until,omitzero"` // when the secret is no longer used; zero for the newest secret
}

// Wants reports whether w receives e. Its Events must include the type of e, and e must not be
// older than w.
func (w *Webhook) Wants(e *Event) bool {
	return slices.Contains(w.Events, e.Type) && !e.At.Before(w.CreatedAt)
}

// The states of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead"
)

// Delivery is an event that is sent to one webhook.
type Delivery struct {
	Revision  uint64 `json:"-"` // the revision of the last write
	WebhookID string `json:"webhook_id"`
	MessageID string `json:"message_id"` // [Event.ID]
	Type      string `json:"type"`
	Subject   string `json:"subject"`
	// Seq numbers the organization's deliveries in the order of their creation.
	Seq       int64          `json:"seq"`
	Body      jsontext.Value `json:"body"` // the body of the request
	CreatedAt time.Time      `json:"created_at"`
	Status    string         `json:"status"`
	// DueAt is when a pending delivery is attempted next. It is zero while an earlier delivery
	// of the same subject is pending.
	DueAt time.Time `json:"due_at,omitzero"`
	// Since is when the delivery was created. If it was replayed, it is when it was replayed last.
	Since time.Time `json:"since"`
	// Attempts is the number of attempts. The next fields describe the last attempt: its time, the
	// HTTP status of the answer, and the kind of failure in one word.
	Attempts    int       `json:"attempts,omitzero"`
	AttemptedAt time.Time `json:"attempted_at,omitzero"`
	Answer      int       `json:"answer,omitzero"`
	Problem     string    `json:"problem,omitzero"`
	// RemoveAt is when the delivery is removed, once it has ended.
	RemoveAt time.Time `json:"remove_at,omitzero"`
}

// SetRevision sets d.Revision. [Of.Parse] calls it.
func (d *Delivery) SetRevision(revision int64) { d.Revision = uint64(revision) } //nolint:gosec // not negative

// DeliveryID returns the id of the delivery of a message to a webhook.
func DeliveryID(webhookID, messageID string) string { return webhookID + "/" + messageID }

// LaneOf returns a prefix of keys in the index [ByName]. The keys of a webhook's pending deliveries
// about a subject have this prefix, and no other keys.
func LaneOf(webhookID, subject string) []byte { return append(Text(webhookID), Text(subject)...) }

func (d *Delivery) keys() []Key {
	keys := []Key{{ByAge, binary.BigEndian.AppendUint64(Text(d.WebhookID), ^uint64(d.Seq))}} //nolint:gosec // it counts
	if d.Status != DeliveryPending {
		return append(keys, Key{ByExpiry, Time(d.RemoveAt)})
	}
	seq := binary.BigEndian.AppendUint64(nil, uint64(d.Seq)) //nolint:gosec // Seq is never negative
	keys = append(keys, Key{ByName, append(LaneOf(d.WebhookID, d.Subject), seq...)})
	if !d.DueAt.IsZero() {
		keys = append(keys, Key{ByDue, slices.Concat(Text(d.WebhookID), Time(d.DueAt), seq)})
	}
	return keys
}

// Outbox summarizes all deliveries of an organization.
type Outbox struct {
	OrganizationID string `json:"organization_id"`
	Seq            int64  `json:"seq"`              // Seq of the newest delivery
	Pending        int64  `json:"pending,omitzero"` // number of pending deliveries
	Blocked        int64  `json:"blocked,omitzero"` // number that wait for an earlier delivery
	Ended          int64  `json:"ended,omitzero"`   // number of ended deliveries that are still stored
	// Positions has a position for each source of events. Everything up to the position was turned
	// into events.
	Positions map[string]string `json:"positions,omitzero"`
	// Gone has the ids of deleted webhooks whose deliveries are not all removed yet.
	Gone []string `json:"gone,omitzero"`
	// Heads has the last head of each chain whose decisions were turned into events or counted. A chain
	// is named by the hexadecimal digits of its id. Tallies are by the type of the events.
	Heads   map[string]uint64 `json:"heads,omitzero"`
	Tallies map[string]Tally  `json:"tallies,omitzero"`
}

// Tally counts the events about decisions of one type in a minute, and the decisions beyond the limit that
// have no event. An event with their number follows after the minute.
type Tally struct {
	Minute time.Time `json:"minute"`
	Events int       `json:"events"`
	Summed int64     `json:"summed,omitzero"`
}

// Over reports whether t is of an earlier minute than at, and has decisions without an event.
func (t Tally) Over(at time.Time) bool {
	return t.Summed > 0 && at.Truncate(time.Minute).After(t.Minute)
}

// HeadEvent is an event about a decision that a head has signed.
type HeadEvent struct {
	Seq uint64 // of the head
	Event
}
