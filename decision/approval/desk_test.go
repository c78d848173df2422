package approval_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/decision"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

const (
	org      = "acme"
	policyID = "0c0ffee0-0000-4000-8000-0000000000d5"
	asker    = "key-of-the-agent"
	person   = "key-of-a-person"
	ttl      = 10 * time.Minute
)

// noon is the time at which the clocks of the tests start.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// clock is a clock that a test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// marking is a scrubber for tests. It replaces every text that contains "hunter", and it tags
// bob@example.com.
type marking struct{}

func (marking) Text(s string) string {
	if strings.Contains(s, "hunter") {
		return "[scrubbed]"
	}
	return s
}

func (marking) Identity(s string) string {
	return strings.ReplaceAll(s, "bob@example.com", "[email:bob]")
}

func (m marking) Name(_, folded string) string { return m.Identity(folded) }

func (marking) Resource(_, projection string) string { return projection }

func (m marking) Values(metadata map[string]string) map[string]string {
	kept := make(map[string]string)
	for key, value := range metadata {
		kept[key] = m.Text(value)
	}
	return kept
}

func (m marking) Spellings(identity string) []string { return []string{m.Identity(identity)} }

func (m marking) Stored(identity string) []string { return m.Spellings(identity) }

// desk is a desk and a pipeline on a store in memory. Its policy holds payments above 250.00.
type desk struct {
	*testing.T
	*approval.Desk
	service *decision.Service
	ledger  *ledger.Ledger
	store   *embedded.Store
	docs    *registry.Registry
	fs      vfs.FS
	signer  *receipt.Signer
	clock   *clock
	rule    engine.Rule
	closed  bool
}

func open(t *testing.T, changes ...func(*decision.Config)) *desk {
	t.Helper()
	d := &desk{T: t, fs: vfs.NewMem(), clock: &clock{now: noon}}
	d.signer = receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)))
	var err error
	d.store, err = embedded.Open("db", embedded.Options{FS: d.fs, Log: slog.New(slog.DiscardHandler)})
	d.must(err)
	d.docs = registry.New(d.store)
	d.ledger, err = ledger.Open(t.Context(), ledger.Config{Store: d.store, Scrub: marking{}, Signer: d.signer, Now: d.clock.Now})
	d.must(err)
	t.Cleanup(d.close)
	cfg := decision.Config{
		Ledger: d.ledger, Store: d.store, Scrub: marking{}, ApprovalTTL: ttl, Now: d.clock.Now, Metrics: prometheus.NewRegistry(),
		Plans:       map[string]engine.Plan{"free": {Name: "free", Evaluations: 1e6}},
		VerifyEvery: 1, PrepareQuery: func(*engine.ActionPolicy, []engine.Rule, condition.Lists, []engine.Library) (decision.Query, error) {
			return nil, errors.New("not verified here")
		},
	}
	for _, change := range changes {
		change(&cfg)
	}
	d.service, err = decision.Open(cfg)
	d.must(err)
	d.Desk = d.service.Approvals
	d.policy(1, nil)
	d.rule = engine.Rule{
		ID: uuid.NewString(), Name: "Large payments wait", Condition: `{"cost.amount_minor":{"$gt":25000}}`,
		Action: `{"decision":"approval_required","reason":"finance"}`, Priority: 100, IsActive: true, CreatedAt: noon, UpdatedAt: noon,
	}
	d.must(d.docs.PutRule(t.Context(), org, &d.rule, 0))
	return d
}

func (d *desk) close() {
	if !d.closed {
		d.closed = true
		d.service.Close()
		d.must(errors.Join(d.ledger.Close(context.Background()), d.store.Close()))
	}
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// policy stores a version of the policy, after change has changed it.
func (d *desk) policy(version int64, change func(*engine.ActionPolicy)) {
	d.Helper()
	limit := int64(100_000)
	p := &engine.ActionPolicy{
		PolicyID: policyID, Version: version, OrganizationID: org, AgentID: "*", AllowedActionTypes: []string{"payment.*"},
		MaxCostMinor: &limit, Status: engine.StatusActive, UpdatedAt: noon,
	}
	if change != nil {
		change(p)
	}
	_, err := d.docs.PutPolicy(d.Context(), p, 0)
	d.must(err)
}

// payment returns an intent with a new id.
func payment(amount int64) *engine.Intent {
	return &engine.Intent{
		IntentID: uuid.NewString(), PolicyID: policyID, AgentID: "billing", ActionType: "payment.payout", Resource: "acct/1",
		Cost: &engine.Cost{AmountMinor: amount, Currency: "EUR"}, IssuedAt: noon.Format(time.RFC3339),
		Metadata: map[string]string{"to": "acme-gmbh", "password": "hunter2"},
	}
}

func (d *desk) decide(in *engine.Intent, approvalID string) ledger.Outcome {
	return d.decideIn(org, in, approvalID)
}

func (d *desk) decideIn(organization string, in *engine.Intent, approvalID string) ledger.Outcome {
	who := decision.Caller{Organization: organization, Credential: asker}
	return d.service.Decide(d.Context(), who, []decision.Request{{Intent: in, ApprovalID: approvalID}})[0]
}

// hold sends a payment of 820.00, which is held, and returns the id of its approval.
func (d *desk) hold() (in *engine.Intent, id string) {
	d.Helper()
	in = payment(82_000)
	out := d.decide(in, "")
	d.want(out, engine.ApprovalRequired, engine.CodeRuleApprovalRequired)
	return in, out.Record.DecisionID
}

// want fails the test unless the decision and its codes are the wanted ones.
func (d *desk) want(out ledger.Outcome, want engine.Decision, codes ...engine.Code) {
	d.Helper()
	if out.Err != nil {
		d.Fatalf("Decide = %v, want %v", out.Err, want)
	}
	var got []engine.Code
	for _, reason := range out.Record.Reasons {
		code, _, _ := strings.Cut(reason, ":")
		got = append(got, engine.Code(code))
	}
	if out.Record.Decision != want || !slices.Equal(got, codes) {
		d.Errorf("Decide = %v %v, want %v %v", out.Record.Decision, got, want, codes)
	}
}

func (d *desk) judge(id, verdict string) (*approval.Approval, error) {
	return d.judgeBy(id, verdict, person)
}

func (d *desk) judgeBy(id, verdict, credential string) (*approval.Approval, error) {
	return d.Judge(d.Context(), org, id, approval.Approver{Credential: credential, Kept: credential}, approval.Ruling{Verdict: verdict})
}

func (d *desk) approve(id string) {
	d.Helper()
	_, err := d.judge(id, ledger.Approved)
	d.must(err)
}

// status returns the state of an approval now.
func (d *desk) status(id string) approval.Status {
	d.Helper()
	a, err := d.Find(d.Context(), org, id)
	d.must(err)
	return a.Status(d.Now())
}

// wantStatus fails the test unless the approval has the wanted status. kept says whether its
// details must be kept.
func (d *desk) wantStatus(id string, want approval.Status, kept bool) {
	d.Helper()
	if got := d.status(id); got != want {
		d.Errorf("Status = %s, want %s", got, want)
	}
	_, err := d.docs.Details(d.Context(), org, id)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		d.Fatal(err)
	}
	if (err == nil) != kept {
		d.Errorf("what is kept for the approver is there: %v, want %v", err == nil, kept)
	}
}

// values returns the values of metadata that are kept.
func (d *desk) values(id string) map[string]string {
	d.Helper()
	kept, err := d.docs.Details(d.Context(), org, id)
	d.must(err)
	return maps.Clone(kept.Values)
}
