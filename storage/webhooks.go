package storage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The types of events. They are part of the public interface, so none may change.
const (
	ApprovalPending  = "approval.pending"
	ApprovalApproved = "approval.approved"
	ApprovalRejected = "approval.rejected"
	ApprovalExpired  = "approval.expired"
	AgentDisabled    = "agent.disabled"
	UsageLimitNear   = "usage.limit_near"
	PolicyRegistered = "policy.registered"
	// WebhookTest is sent on request, also to a webhook that does not name this type.
	WebhookTest = "webhook.test"
)

// EventTypes are the types of events that a webhook can receive.
func EventTypes() []string {
	return []string{
		ApprovalPending, ApprovalApproved, ApprovalRejected, ApprovalExpired, AgentDisabled, UsageLimitNear,
		PolicyRegistered,
	}
}

// Event is a fact that an organization's webhooks receive.
type Event struct {
	Type string
	// Subject says what the fact is about, such as "agent/" and an id. A webhook receives the
	// facts of one subject in their order.
	Subject string
	// Fact identifies the fact among those with the same type and subject.
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
	Events []string `json:"events"` // their types
	// Secrets each sign every message. The newest is first.
	Secrets   []WebhookSecret `json:"secrets"`
	CreatedAt time.Time       `json:"created_at"`
}

// WebhookSecret is a secret in the form of Standard Webhooks: "whsec_" and base64. It is stored
// in plain text, because HMAC needs it.
type WebhookSecret struct {
	Secret string    `json:"secret"`
	Until  time.Time `json:"until,omitzero"` // when it ceases to sign; zero for the newest
}

// Wants reports whether w receives e: w wants the type of e, and w is not newer than e.
func (w *Webhook) Wants(e *Event) bool {
	return slices.Contains(w.Events, e.Type) && !e.At.Before(w.CreatedAt)
}

// The states of a delivery.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryDead      = "dead"
)

// Delivery is an event on its way to one webhook.
type Delivery struct {
	Revision  uint64 `json:"-"` // of the update that wrote it last
	WebhookID string `json:"webhook_id"`
	MessageID string `json:"message_id"` // [Event.ID]
	Type      string `json:"type"`
	Subject   string `json:"subject"`
	// Seq numbers the organization's deliveries in the order of their creation.
	Seq       int64          `json:"seq"`
	Body      jsontext.Value `json:"body"` // as it is sent
	CreatedAt time.Time      `json:"created_at"`
	Status    string         `json:"status"`
	// DueAt is when a pending delivery is attempted next. It is zero while an earlier delivery
	// of the same subject is pending.
	DueAt time.Time `json:"due_at,omitzero"`
	// Since is when the delivery became pending. That is when it was created or, if it was
	// replayed, when it was replayed last.
	Since time.Time `json:"since"`
	// Attempts counts the attempts. AttemptedAt, Answer and Problem describe the last attempt.
	// They are its time, the HTTP status of the answer, and the kind of failure in a word.
	Attempts    int       `json:"attempts,omitzero"`
	AttemptedAt time.Time `json:"attempted_at,omitzero"`
	Answer      int       `json:"answer,omitzero"`
	Problem     string    `json:"problem,omitzero"`
	// RemoveAt is when an ended delivery is removed.
	RemoveAt time.Time `json:"remove_at,omitzero"`
}

// SetRevision sets d.Revision. [Of.Parse] calls it.
func (d *Delivery) SetRevision(revision int64) { d.Revision = uint64(revision) } //nolint:gosec // it counts

// DeliveryID returns the id of the delivery of a message to a webhook.
func DeliveryID(webhookID, messageID string) string { return webhookID + "/" + messageID }

// LaneOf returns a prefix of keys in the index [ByName]. Exactly the pending deliveries to a
// webhook about a subject have keys with the prefix.
func LaneOf(webhookID, subject string) []byte { return append(Text(webhookID), Text(subject)...) }

func (d *Delivery) keys() []Key {
	keys := []Key{{ByAge, binary.BigEndian.AppendUint64(Text(d.WebhookID), ^uint64(d.Seq))}} //nolint:gosec // it counts
	if d.Status != DeliveryPending {
		return append(keys, Key{ByExpiry, Time(d.RemoveAt)})
	}
	seq := binary.BigEndian.AppendUint64(nil, uint64(d.Seq)) //nolint:gosec // it counts
	keys = append(keys, Key{ByName, append(LaneOf(d.WebhookID, d.Subject), seq...)})
	if !d.DueAt.IsZero() {
		keys = append(keys, Key{ByDue, slices.Concat(Text(d.WebhookID), Time(d.DueAt), seq)})
	}
	return keys
}

// Outbox is the state of all deliveries of an organization.
type Outbox struct {
	OrganizationID string `json:"organization_id"`
	Seq            int64  `json:"seq"`              // of the newest delivery
	Pending        int64  `json:"pending,omitzero"` // how many are pending
	Blocked        int64  `json:"blocked,omitzero"` // how many of the pending wait for an earlier one of their subject
	Ended          int64  `json:"ended,omitzero"`   // how many ended ones are still kept
	// Positions has, for each source, the position up to which its facts have become events.
	Positions map[string]string `json:"positions,omitzero"`
	// Gone has the ids of deleted webhooks that still have deliveries.
	Gone []string `json:"gone,omitzero"`
}
