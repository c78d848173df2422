package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
)

// Index is an order of the documents of a collection. Stores contain the values of Index, so no
// value may change its meaning.
type Index byte

// The indexes. A comment names the collections that have the index, and the order of its keys.
const (
	ByID    Index = iota // every collection
	ByAge                // agents, tokens: time of creation; deliveries: webhook, then newest first
	ByName               // agents: lower-case id and lower-case external id; pending deliveries: webhook and subject
	ByAlias              // agents: external id
	ByMaker              // tokens: id of the parent token
	// sessions: time of expiry; unrevoked tokens: time of expiry, tokens that never expire
	// last; ended deliveries: time of removal; details: deadline; revisions: time of replacement
	ByExpiry
	ByOwnName // tokens: id in the organization; ByID spans all organizations
	ByDue     // pending deliveries: webhook and time of the next attempt
	ByWaiting // details: a byte that is set if the decision is approved, then newest decision first
	ByAgent   // details: agent, then as ByWaiting
	ByPolicy  // details: policy, then as ByWaiting
)

// Key is a key of a document in an index. No key of an index may be a prefix of another key,
// see [Text].
type Key struct {
	Index Index
	Value []byte
}

// Collection declares the documents of a kind. A backend can check and rebuild all indexes with
// Describe and the documents alone.
type Collection struct {
	Kind Kind
	// Name is the name of the kind in the history of changes.
	Name string
	// Global says that ids are unique across all organizations.
	Global bool
	// Quiet says that the documents are bookkeeping. A write of one makes no Change.
	Quiet bool
	// Describe returns the keys of a document in the indexes. It also returns the id and the alias
	// of the document in its organization. It must return an error if the document's value names
	// another organization or id.
	Describe func(d Document) (keys []Key, id, alias string, err error)
}

// Of is a collection of documents of type T, stored as JSON.
type Of[T any] struct {
	Collection
	place func(*T) (org, id string)
}

// The collections of a store.
var (
	Policies = of(Collection{Kind: PolicyKind, Name: "policy"},
		func(p *engine.ActionPolicy) (org, id string) {
			return p.OrganizationID, VersionID(p.PolicyID, p.Version)
		},
		func(p *engine.ActionPolicy) ([]Key, string, string) { return nil, p.PolicyID, "" })

	Rules = of(Collection{Kind: RuleKind, Name: "rule"},
		func(r *engine.Rule) (org, id string) { return "", r.ID },
		nil)

	Lists = of(Collection{Kind: ListKind, Name: "list"},
		func(l *engine.List) (org, id string) { return "", l.Name },
		nil)

	Libraries = of(Collection{Kind: LibraryKind, Name: "library"},
		func(l *engine.Library) (org, id string) { return "", l.Name },
		nil)

	Sessions = of(Collection{Kind: SessionKind, Name: "session"},
		func(s *engine.Session) (org, id string) { return "", s.ID },
		func(s *engine.Session) ([]Key, string, string) { return []Key{{ByExpiry, Time(s.ExpiresAt)}}, s.ID, "" })

	Agents = of(Collection{Kind: AgentKind, Name: "agent"},
		func(a *engine.Agent) (org, id string) { return "", a.ID },
		func(a *engine.Agent) ([]Key, string, string) { return agentKeys(a), a.ID, a.ExternalID })

	Tokens = of(Collection{Kind: TokenKind, Name: "key", Global: true},
		func(t *Token) (org, id string) { return t.OrganizationID, t.ID },
		func(t *Token) ([]Key, string, string) { return tokenKeys(t), t.ID, "" })

	Subscriptions = of(Collection{Kind: SubscriptionKind, Name: "plan"},
		func(s *Subscription) (org, id string) { return s.OrganizationID, "" },
		nil)

	// Stops are of the stopped organizations. Removing one is the change that resumes its organization.
	Stops = of(Collection{Kind: StopKind, Name: "organization"},
		func(*Stop) (org, id string) { return "", StopID },
		nil)

	AllCounts = of(Collection{Kind: CountsKind, Name: "counts", Quiet: true},
		func(*Counts) (org, id string) { return "", "" },
		nil)

	// PublicKeys belong to no organization, so their Org is empty.
	PublicKeys = of(Collection{Kind: PublicKeyKind, Name: "public key", Quiet: true},
		func(k *PublicKey) (org, id string) { return "", k.ID },
		nil)

	AllDetails = of(Collection{Kind: DetailsKind, Name: "details", Quiet: true},
		func(d *Details) (org, id string) { return "", d.DecisionID },
		func(d *Details) ([]Key, string, string) { return detailsKeys(d), d.DecisionID, "" })

	// Imports are the unfinished imports, at most one for each organization.
	Imports = of(Collection{Kind: ImportKind, Name: "import"},
		func(*Import) (org, id string) { return "", "" },
		nil)

	// Webhooks hold the secrets that sign their messages.
	Webhooks = of(Collection{Kind: WebhookKind, Name: "webhook", Quiet: true},
		func(w *Webhook) (org, id string) { return "", w.ID },
		nil)

	Deliveries = of(Collection{Kind: DeliveryKind, Name: "delivery", Quiet: true},
		func(d *Delivery) (org, id string) { return "", DeliveryID(d.WebhookID, d.MessageID) },
		func(d *Delivery) ([]Key, string, string) { return d.keys(), DeliveryID(d.WebhookID, d.MessageID), "" })

	Outboxes = of(Collection{Kind: OutboxKind, Name: "outbox", Quiet: true},
		func(o *Outbox) (org, id string) { return o.OrganizationID, "" },
		nil)

	Revisions = of(Collection{Kind: RevisionKind, Name: "revision", Quiet: true},
		func(v *Revision) (org, id string) {
			return "", v.DocumentID()
		},
		func(v *Revision) ([]Key, string, string) {
			return []Key{{ByExpiry, Time(v.ReplacedAt)}}, v.DocumentID(), ""
		})

	Origins = of(Collection{Kind: OriginKind, Name: "origin", Quiet: true},
		func(o *Origin) (org, id string) { return "", o.ID },
		nil)

	// Sinks belong to no organization, so their Org is empty.
	Sinks = of(Collection{Kind: SinkKind, Name: "sink", Quiet: true},
		func(s *Sink) (org, id string) { return "", s.Name },
		nil)

	// IntentAges belong to no organization. There is at most one.
	IntentAges = of(Collection{Kind: IntentAgeKind, Name: "intent age", Quiet: true},
		func(*IntentAge) (org, id string) { return "", "" },
		nil)

	AllLoaded = of(Collection{Kind: LoadedKind, Name: "loaded", Quiet: true},
		func(*Loaded) (org, id string) { return "", "" },
		nil)
)

var collections = []*Collection{
	&Policies.Collection, &Rules.Collection, &Agents.Collection, &Tokens.Collection, &Subscriptions.Collection,
	&AllCounts.Collection,
	&PublicKeys.Collection, &AllDetails.Collection, &Imports.Collection,
	&Webhooks.Collection, &Deliveries.Collection, &Outboxes.Collection,
	&Lists.Collection, &Sessions.Collection, &Libraries.Collection, &Revisions.Collection, &AllLoaded.Collection,
	&Sinks.Collection, &Stops.Collection, &Origins.Collection, &IntentAges.Collection,
}

// Collections returns every collection.
func Collections() []*Collection { return slices.Clone(collections) }

// CollectionOf returns the collection of a kind, or nil.
func CollectionOf(k Kind) *Collection {
	for _, c := range collections {
		if c.Kind == k {
			return c
		}
	}
	return nil
}

// of completes c. place returns the organization and the id of a document. The organization is
// empty if the document does not name one. describe returns the results of Describe. If describe is
// nil, a document has no keys and no alias, and its id comes from place.
func of[T any](c Collection, place func(*T) (org, id string), describe func(*T) (keys []Key, id, alias string)) Of[T] {
	c.Describe = func(d Document) (keys []Key, id, alias string, err error) {
		doc, err := Of[T]{}.Parse(d)
		if err != nil {
			return nil, "", "", err
		}
		org, id := place(doc)
		if id != d.ID || org != "" && org != d.Org {
			return nil, "", "", fmt.Errorf("the %s %q of %q is in the place of %q of %q", c.Name, id, org, d.ID, d.Org)
		}
		if describe != nil {
			keys, id, alias = describe(doc)
		}
		return keys, id, alias, nil
	}
	return Of[T]{c, place}
}

// Parse decodes the value of d and sets its revision.
func (Of[T]) Parse(d Document) (*T, error) {
	doc := new(T)
	if err := json.Unmarshal(d.Value, doc, lists); err != nil {
		return nil, fmt.Errorf("decoding a stored %T: %w", *doc, err)
	}
	if revised, ok := any(doc).(interface{ SetRevision(int64) }); ok {
		revised.SetRevision(int64(d.Revision)) //nolint:gosec // a revision fits into int64
	}
	return doc, nil
}

// lists reads a list of texts into one piece of memory.
var lists = json.WithUnmarshalers(json.UnmarshalFromFunc(func(dec *jsontext.Decoder, list *[]string) error {
	value, err := dec.ReadValue()
	if err != nil {
		return err //nolint:wrapcheck // Parse wraps it
	}
	if texts, ok := readTexts(value); ok {
		*list = texts
		return nil
	}
	return json.Unmarshal(value, list)
}))

// readTexts returns the texts of a valid JSON value. It reports false if the value has another form than a list of
// texts without escapes and white space.
func readTexts(value []byte) (texts []string, ok bool) {
	n := bytes.Count(value, []byte{'"'}) / 2
	if n == 0 || value[0] != '[' || bytes.IndexByte(value, '\\') >= 0 {
		return nil, false
	}
	texts = make([]string, 0, n)
	var all strings.Builder
	all.Grow(len(value) - len("[") - n*len(`"",`)) // the texts together, so that they stay where they are
	for value[0] != ']' {
		if value[1] != '"' { // after a bracket or a comma
			return nil, false
		}
		value = value[2:]
		end, at := bytes.IndexByte(value, '"'), all.Len()
		all.Write(value[:end])
		texts, value = append(texts, all.String()[at:]), value[end+1:]
	}
	return texts, true
}

// Encode returns the value of a document.
func (Of[T]) Encode(doc *T) ([]byte, error) {
	value, err := json.Marshal(doc, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", *doc, err)
	}
	return value, nil
}

// Get returns a document, or ErrNotFound.
func (c Of[T]) Get(r Reader, org, id string) (*T, error) {
	d, err := r.Get(c.Kind, org, id)
	if err != nil {
		return nil, err
	}
	return c.Parse(d)
}

// Scan calls f for the documents that q selects, like Scan of a [Reader].
func (c Of[T]) Scan(r Reader, q Query, f func(position []byte, doc *T) (more bool, err error)) error {
	q.Kind = c.Kind
	return r.Scan(q, func(position []byte, d Document) (bool, error) {
		doc, err := c.Parse(d)
		if err != nil {
			return false, err
		}
		return f(position, doc)
	})
}

// Put stores a document of org.
func (c Of[T]) Put(tx Tx, org string, doc *T) error {
	_, err := c.PutSized(tx, org, doc)
	return err
}

// PutSized is Put, and returns the size of the document in bytes.
func (c Of[T]) PutSized(tx Tx, org string, doc *T) (size int, err error) {
	_, id := c.place(doc)
	value, err := c.Encode(doc)
	if err != nil {
		return 0, err
	}
	return len(value), tx.Put(Document{Kind: c.Kind, Org: org, ID: id, Value: value})
}

// StopID is the id of every [Stop].
const StopID = "status"

// Stop says that its organization is stopped: nothing that its agents ask is allowed. An organization
// without one is active.
type Stop struct {
	At time.Time `json:"stopped_at"`
	By string    `json:"stopped_by,omitzero"` // in the form of [Change.Actor]
}

// Counts are the numbers of an organization's documents. Plans limit these numbers.
type Counts struct {
	Policies     int64 `json:"policies"`
	VersionBytes int64 `json:"version_bytes"`
	Rules        int64 `json:"rules"`
	Agents       int64 `json:"agents"`
	Disabled     int64 `json:"disabled_agents"`
	Sessions     int64 `json:"sessions,omitzero"`
	Webhooks     int64 `json:"webhooks,omitzero"`
	ListBytes    int64 `json:"list_bytes,omitzero"`    // as engine.List.Size counts
	LibraryBytes int64 `json:"library_bytes,omitzero"` // as engine.Library.Size counts
}

// PublicKey is the public half of a key . Some receipts may be signed with it.
type PublicKey struct {
	ID   string `json:"kid"`
	JWKS string `json:"jwks"` // a JSON Web Key Set with only this key
}

// Sink is a place outside to which the rows of all organizations are sent. Confirmed has the sequence of
// the last head of each chain up to which the sink has confirmed the rows. A chain is named by the
// hexadecimal digits of its id. A chain that Confirmed lacks is sent from its beginning.
type Sink struct {
	Name      string            `json:"name"`
	Confirmed map[string]uint64 `json:"confirmed"`
}

// IntentAge is the greatest age of a new intent in a deployment. Intents of more than twice that age are
// refused without a look, and so are intents that were issued before Before. MostMS is in milliseconds, and 0
// for any age.
//
// Since says from when on all replicas have an age. It is zero while the age is any. WidestMS is the greatest age that
// there ever was.
type IntentAge struct {
	MostMS   int64     `json:"most_ms"`
	Before   time.Time `json:"before,omitzero"`
	Since    time.Time `json:"since,omitzero"`
	WidestMS int64     `json:"widest_ms,omitzero"`
}

// Most returns the age, or 0 for any.
func (a *IntentAge) Most() time.Duration { return time.Duration(a.MostMS) * time.Millisecond }

// AgeSettles is a time after which all replicas have an age that one of them has set, whatever their clocks are.
const AgeSettles = time.Hour

// Set changes the age at a time. most is 0 for any age. If the age is raised, decisions of intents that were more than
// twice the earlier age old may be forgotten. So these intents stay refused.
func (a *IntentAge) Set(most time.Duration, now time.Time) {
	earlier := a.Most()
	if earlier > 0 && (most == 0 || most > earlier) {
		if forgotten := now.Add(MaxSkew - 2*earlier); forgotten.After(a.Before) {
			a.Before = forgotten.UTC()
		}
	}
	a.MostMS = most.Milliseconds()
	a.WidestMS = max(a.WidestMS, a.MostMS)
	if most == 0 {
		a.Since = time.Time{}
	} else if a.Since.IsZero() {
		a.Since = now.Add(AgeSettles).UTC()
	}
}

// Widest returns the greatest age that there ever was.
func (a *IntentAge) Widest() time.Duration { return time.Duration(a.WidestMS) * time.Millisecond }

// Forgettable returns between which times an intent was decided, under no approval, if its decision need not be
// remembered. An intent that was decided then was issued at most Widest after its decision. So it is more than twice
// Widest old, and every replica refuses it without a look. It stays refused when the age is raised.
func (a *IntentAge) Forgettable(now time.Time) (from, before time.Time) {
	if a.Since.IsZero() {
		return from, from
	}
	return a.Since, now.Add(-3*a.Widest() - AgeSettles)
}

// RefusedBefore returns a time: all intents that were issued before it are refused at now, and stay refused.
func (a *IntentAge) RefusedBefore(now time.Time) time.Time {
	if a.MostMS > 0 {
		if t := now.Add(-2 * a.Most()); t.After(a.Before) {
			return t.UTC()
		}
	}
	return a.Before
}

func agentKeys(a *engine.Agent) []Key {
	keys := []Key{{ByAge, Time(a.CreatedAt)}, {ByName, Text(engine.FoldID(a.ID))}}
	if a.ExternalID != "" {
		keys = append(keys, Key{ByAlias, Text(a.ExternalID)})
		if engine.FoldID(a.ExternalID) != engine.FoldID(a.ID) {
			keys = append(keys, Key{ByName, Text(engine.FoldID(a.ExternalID))})
		}
	}
	return keys
}

func tokenKeys(t *Token) []Key {
	keys := []Key{{ByAge, Time(t.CreatedAt)}, {ByOwnName, Text(t.ID)}}
	if t.ParentID != "" {
		keys = append(keys, Key{ByMaker, Text(t.ParentID)})
	}
	switch {
	case !t.RevokedAt.IsZero():
	case t.ExpiresAt.IsZero():
		keys = append(keys, Key{ByExpiry, []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")})
	default:
		keys = append(keys, Key{ByExpiry, Time(t.ExpiresAt)})
	}
	return keys
}

// Text returns the key of s. A zero byte of s is written as 00 FF, and 00 01 ends the key. Keys
// have the order of their texts, and no key is a prefix of another.
func Text(s string) []byte { return AppendText(make([]byte, 0, len(s)+2), s) }

// AppendText appends [Text] of s.
func AppendText(dst []byte, s string) []byte {
	for i := range len(s) {
		dst = append(dst, s[i])
		if s[i] == 0 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0, 1)
}

// TimeLen is the length of the key of a time in bytes.
const TimeLen = 12

// Time returns the key of t: 8 bytes of Unix seconds with the sign bit flipped, then 4 bytes of
// nanoseconds. Both are big-endian.
func Time(t time.Time) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, TimeLen), uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}

// VersionID returns the id of a policy's version: the key of the policy's id, then 8 bytes for the
// version. In these 8 bytes the sign bit is flipped, and then all bits are inverted. So the newest
// version of a policy comes first.
func VersionID(policyID string, version int64) string {
	return string(binary.BigEndian.AppendUint64(Text(policyID), ^(uint64(version) ^ 1<<63)))
}

// EndOfVersions returns the first position after the versions of a policy.
func EndOfVersions(policyID string) []byte {
	end := Text(policyID)
	end[len(end)-1]++ // the keys of ids end with 00 01
	return end
}
