package approval_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ.example/writ/decision"
	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// TestApproval_IsTheHeldDecision checks the promise "An approval is the held decision". It has
// the id of the decision and is pending until its time is over. It has no entry of its own.
func TestApproval_IsTheHeldDecision(t *testing.T) {
	d := open(t)
	_, id := d.hold()
	a, err := d.Find(t.Context(), org, id)
	d.must(err)
	if want := a.Held.DecidedAt.Add(ttl); a.Held.DecisionID != id || !d.ExpiresAt(a).Equal(want) || a.First != nil || a.End != nil {
		t.Errorf("Find = %+v until %v, want the held decision until %v without a verdict", a, d.ExpiresAt(a), want)
	}
	d.wantStatus(id, approval.Pending, true)
	d.clock.advance(ttl - time.Millisecond)
	d.wantStatus(id, approval.Pending, true)
	d.clock.advance(time.Millisecond)
	d.wantStatus(id, approval.Expired, true)

	allowed := d.decide(payment(1), "")
	d.want(allowed, engine.Allow, engine.CodePolicyAllowed)
	for _, none := range []struct{ org, id string }{{org, allowed.Record.DecisionID}, {org, uuid.NewString()}, {"rival", id}} {
		if a, err := d.Find(t.Context(), none.org, none.id); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Find(%s, %s) = %+v, %v; want ErrNotFound", none.org, none.id, a, err)
		}
	}
}

// TestApproval_OfAnIntentThatIsSentAgain checks an intent that was held before and is sent
// again in a batch. The other intents of the batch are decided.
func TestApproval_OfAnIntentThatIsSentAgain(t *testing.T) {
	d := open(t)
	in, id := d.hold()
	requests := []decision.Request{{Intent: payment(100)}, {Intent: in}}
	outs := d.service.Decide(t.Context(), decision.Caller{Organization: org, Credential: asker}, requests)
	d.want(outs[0], engine.Allow, engine.CodePolicyAllowed)
	d.want(outs[1], engine.ApprovalRequired, engine.CodeRuleApprovalRequired)
	if !outs[1].Replayed || outs[1].Record.DecisionID != id {
		t.Errorf("Decide of what is held = %+v, want it again", outs[1])
	}
}

func TestApproval_IsListed(t *testing.T) {
	d := open(t)
	var ids []string
	for range 4 {
		_, id := d.hold()
		ids = append(ids, id)
	}
	d.approve(ids[1])
	_, err := d.judge(ids[2], ledger.Rejected)
	d.must(err)
	for name, tc := range map[string]struct {
		f    approval.Filter
		want []string
	}{
		"all":             {approval.Filter{}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"pending":         {approval.Filter{Status: approval.Pending}, []string{ids[3], ids[0]}},
		"approved":        {approval.Filter{Status: approval.Approved, PolicyID: policyID}, []string{ids[1]}},
		"rejected":        {approval.Filter{Status: approval.Rejected}, []string{ids[2]}},
		"of the agent":    {approval.Filter{Status: approval.Pending, AgentIDs: []string{"billing"}}, []string{ids[3], ids[0]}},
		"of another":      {approval.Filter{Status: approval.Pending, AgentIDs: []string{"support"}}, nil},
		"another policy":  {approval.Filter{PolicyID: uuid.NewString()}, nil},
		"none is revoked": {approval.Filter{Status: approval.Revoked}, nil},
	} {
		if diff := cmp.Diff(tc.want, d.listed(org, tc.f)); diff != "" {
			t.Errorf("List of %s (-want +got):\n%s", name, diff)
		}
	}
	if got := d.listed("rival", approval.Filter{}); got != nil {
		t.Errorf("List of another organization = %v", got)
	}
}

// listed reads a list in pages of one approval.
func (d *desk) listed(organization string, f approval.Filter) (ids []string) {
	d.Helper()
	for after := ""; ; {
		page, next, err := d.List(d.Context(), organization, f, storage.Page{Limit: 1, After: after})
		d.must(err)
		for _, a := range page {
			ids = append(ids, a.Held.DecisionID)
		}
		if after = next; next == "" {
			return ids
		}
	}
}

// TestApproval_IsAwaited checks that Await returns after a verdict. If the wait ends first,
// Await returns the approval in its state at that time.
func TestApproval_IsAwaited(t *testing.T) {
	d := open(t)
	_, id := d.hold()
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := d.Await(short, org, id); err != nil || a.Status(d.Now()) != approval.Pending {
		t.Errorf("Await = %+v, %v; want what is pending", a, err)
	}
	got := make(chan approval.Status)
	go func() {
		a, err := d.Await(t.Context(), org, id)
		if err != nil {
			t.Error(err)
			close(got)
			return
		}
		got <- a.Status(d.Now())
	}()
	d.approve(id)
	if status := <-got; status != approval.Approved {
		t.Errorf("Await = %s, want approved", status)
	}
	if _, err := d.Await(t.Context(), "rival", id); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Await of another organization = %v, want ErrNotFound", err)
	}
}

// TestJudge_TheFirstVerdictStands checks the promise "Same verdict again: same bytes; another
// verdict: decided; expired; not held; revoked only from approved and unused."
func TestJudge_TheFirstVerdictStands(t *testing.T) {
	approve := func(d *desk, id string) { d.approve(id) }
	verdict := func(v string) func(*desk, string) {
		return func(d *desk, id string) { _, err := d.judge(id, v); d.must(err) }
	}
	expire := func(d *desk, _ string) { d.clock.advance(ttl) }
	for name, tc := range map[string]struct {
		before []func(*desk, string)
		errs   map[string]error // the error of each verdict
	}{
		"pending": {nil, map[string]error{ledger.Approved: nil, ledger.Rejected: nil, ledger.Revoked: approval.ErrPending}},
		"approved": {[]func(*desk, string){approve}, map[string]error{
			ledger.Approved: nil, ledger.Rejected: approval.ErrDecided, ledger.Revoked: nil,
		}},
		"rejected": {[]func(*desk, string){verdict(ledger.Rejected)}, map[string]error{
			ledger.Approved: approval.ErrDecided, ledger.Rejected: nil, ledger.Revoked: approval.ErrDecided,
		}},
		"revoked": {[]func(*desk, string){approve, verdict(ledger.Revoked)}, map[string]error{
			ledger.Rejected: approval.ErrDecided, ledger.Revoked: nil,
		}},
		"expired": {[]func(*desk, string){expire}, map[string]error{
			ledger.Approved: approval.ErrExpired, ledger.Rejected: approval.ErrExpired, ledger.Revoked: approval.ErrExpired,
		}},
		"approved and expired": {[]func(*desk, string){approve, expire}, map[string]error{
			ledger.Rejected: approval.ErrDecided, ledger.Revoked: approval.ErrExpired,
		}},
	} {
		for v, want := range tc.errs {
			t.Run(name+", then "+v, func(t *testing.T) {
				d := open(t)
				_, id := d.hold()
				for _, f := range tc.before {
					f(d, id)
				}
				before, err := d.Find(t.Context(), org, id)
				d.must(err)
				a, err := d.judge(id, v)
				if !errors.Is(err, want) {
					t.Fatalf("Judge = %v, want %v", err, want)
				}
				if want != nil || before.First == nil {
					return
				}
				if diff := cmp.Diff(before.First, a.First); diff != "" {
					t.Errorf("the first verdict changed (-before +after):\n%s", diff)
				}
			})
		}
	}
	d := open(t)
	if _, err := d.judge(uuid.NewString(), ledger.Approved); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Judge of none = %v, want ErrNotFound", err)
	}
}

// TestJudge_NobodyApprovesWhatTheyAskedFor checks the promise "The approver is neither the one
// who asked nor of its family."
func TestJudge_NobodyApprovesWhatTheyAskedFor(t *testing.T) {
	d := open(t)
	for id, parent := range map[string]string{"maker": "", "asks": "maker", "sibling": "maker", "child": "asks", "other": "", "others": "other"} {
		d.token(id, parent)
	}
	for _, tc := range []struct {
		asks, decides string
		self          bool
	}{
		{"asks", "asks", true},
		{"asks", "maker", true},
		{"asks", "sibling", true},
		{"asks", "child", true},
		{"maker", "child", true},
		{"asks", "other", false},
		{"asks", "others", false},
		{"asks", "operator:alice", false},
		{"operator:alice", "operator:alice", true},
		{"operator:alice", "operator:carol", false},
		{"operator:[email:bob]", "operator:bob@example.com", true}, // as the row has it
		{"operator:alice", "other", true},                          // which alice may have made
		{"operator:alice", "gone", true},
	} {
		in := payment(82_000)
		who := decision.Caller{Organization: org, Credential: tc.asks}
		out := d.service.Decide(t.Context(), who, []decision.Request{{Intent: in}})[0]
		d.want(out, engine.ApprovalRequired, engine.CodeRuleApprovalRequired)
		for _, v := range []string{ledger.Rejected, ledger.Approved} {
			if _, err := d.judgeBy(out.Record.DecisionID, v, tc.decides); errors.Is(err, approval.ErrSelf) != tc.self {
				t.Errorf("%s asks, and %s says %s: %v, want refused %v", tc.asks, tc.decides, v, err, tc.self)
			}
		}
	}
}

// token stores a key that was made by another key.
func (d *desk) token(id, parent string) {
	d.Helper()
	if parent != "" {
		if _, err := d.docs.Token(d.Context(), parent); errors.Is(err, storage.ErrNotFound) {
			d.token(parent, map[string]string{"asks": "maker", "maker": "", "other": ""}[parent])
		}
	}
	if _, err := d.docs.Token(d.Context(), id); err == nil {
		return
	}
	d.must(d.docs.PutToken(d.Context(), &storage.Token{ID: id, OrganizationID: org, ParentID: parent, Name: id, CreatedAt: noon}, 0))
}

// TestRedeem_TheSameIntentOnce checks the promise "Resume: the same body again." The intent is
// decided once under an approval and replayed after that. With another body, or under an
// unknown approval, nothing is decided.
func TestRedeem_TheSameIntentOnce(t *testing.T) {
	d := open(t)
	in, id := d.hold()
	if out := d.decide(in, id); !out.Replayed || out.Record.DecisionID != id {
		t.Errorf("Decide while it is pending = %+v, want the held decision", out)
	}
	d.approve(id)
	if out := d.decide(in, ""); !out.Replayed || out.Record.DecisionID != id {
		t.Errorf("Decide without the approval = %+v, want the first answer for ever", out)
	}
	dearer := payment(820_000)
	dearer.IntentID = in.IntentID
	if out := d.decide(dearer, id); !errors.Is(out.Err, ledger.ErrIntentConflict) {
		t.Errorf("Decide of 8,200.00 = %v, want ErrIntentConflict", out.Err)
	}
	if out := d.decide(in, uuid.NewString()); !errors.Is(out.Err, decision.ErrNoApproval) {
		t.Errorf("Decide under an unknown approval = %v, want ErrNoApproval", out.Err)
	}
	d.wantStatus(id, approval.Approved, true)

	out := d.decide(in, id)
	d.want(out, engine.Allow, engine.CodeApprovalGranted)
	if out.Record.DecisionID == id || out.Record.ApprovalID != id || out.Replayed {
		t.Errorf("Decide = %+v, want a decision of its own under %s", out.Record, id)
	}
	d.wantStatus(id, approval.Used, false)
	if again := d.decide(in, id); !again.Replayed || again.Record.DecisionID != out.Record.DecisionID {
		t.Errorf("Decide once more = %+v, want a replay", again)
	}
	if _, err := d.judge(id, ledger.Revoked); !errors.Is(err, approval.ErrDecided) {
		t.Errorf("Judge of what is used = %v, want ErrDecided", err)
	}
}

// TestRedeem_AnotherOrganizations checks that an approval does not exist for another
// organization.
func TestRedeem_AnotherOrganizations(t *testing.T) {
	d := open(t)
	in, id := d.hold()
	d.approve(id)
	d.policy(1, func(p *engine.ActionPolicy) { p.OrganizationID = "rival" })
	if out := d.decideIn("rival", in, id); !errors.Is(out.Err, decision.ErrNoApproval) {
		t.Errorf("Decide = %+v, want ErrNoApproval", out)
	}
	d.wantStatus(id, approval.Approved, true)
}

// TestRedeem_EvaluatesAfresh checks the promise "Everything is evaluated afresh". A deny
// denies, a new objection is not covered, and one approval has one answer.
func TestRedeem_EvaluatesAfresh(t *testing.T) {
	lower := int64(50_000)
	another := engine.Rule{
		ID: uuid.NewString(), Name: "Payouts wait", Condition: `{"action_type":"payment.payout"}`,
		Action: `{"decision":"approval_required"}`, Priority: 100, IsActive: true, CreatedAt: noon.Add(time.Hour), UpdatedAt: noon,
	}
	for name, tc := range map[string]struct {
		change   func(d *desk)
		decision engine.Decision
		codes    []engine.Code
	}{
		"nothing": {func(*desk) {}, engine.Allow, []engine.Code{engine.CodeApprovalGranted}},
		"the kill switch": {
			func(d *desk) {
				d.must(d.docs.PutAgent(d.Context(), org, &engine.Agent{ID: "billing", Name: "billing", Status: engine.AgentDisabled, CreatedAt: noon}, 0))
			}, engine.Deny, []engine.Code{engine.CodeAgentDisabled, engine.CodeRuleApprovalRequired},
		},
		"a suspended policy": {
			func(d *desk) { d.policy(2, func(p *engine.ActionPolicy) { p.Status = engine.StatusSuspended }) },
			engine.Deny, []engine.Code{engine.CodePolicyInactive, engine.CodeRuleApprovalRequired},
		},
		"a lowered cap": {
			func(d *desk) { d.policy(2, func(p *engine.ActionPolicy) { p.MaxCostMinor = &lower }) },
			engine.Deny, []engine.Code{engine.CodeCostExceeded, engine.CodeRuleApprovalRequired},
		},
		"a new version that says the same": {
			func(d *desk) { d.policy(2, nil) }, engine.Allow, []engine.Code{engine.CodeApprovalGranted},
		},
		"another agent's policy": {
			func(d *desk) { d.policy(2, func(p *engine.ActionPolicy) { p.AgentID = "support" }) }, engine.ApprovalRequired,
			[]engine.Code{engine.CodeAgentMismatch, engine.CodeRuleApprovalRequired, engine.CodeApprovalOutOfScope},
		},
		"another rule": {
			func(d *desk) {
				another.Priority = 200
				d.must(d.docs.PutRule(d.Context(), org, &another, 0))
			}, engine.ApprovalRequired, []engine.Code{engine.CodeRuleApprovalRequired, engine.CodeApprovalOutOfScope},
		},
		"the rule was changed": {
			func(d *desk) {
				_, err := d.docs.UpdateRule(d.Context(), org, d.rule.ID, func(r engine.Rule) (engine.Rule, error) {
					r.Description = "changed"
					return r, nil
				})
				d.must(err)
			}, engine.ApprovalRequired, []engine.Code{engine.CodeRuleApprovalRequired, engine.CodeApprovalOutOfScope},
		},
		"what is blocked": {
			func(d *desk) {
				d.policy(2, func(p *engine.ActionPolicy) { p.BlockedResourcePatterns = []string{"**"} })
			}, engine.Deny, []engine.Code{engine.CodeResourceBlocked, engine.CodeRuleApprovalRequired},
		},
		"a rule that denies": {
			func(d *desk) {
				denies := another
				denies.Action = `{"decision":"deny"}`
				d.must(d.docs.PutRule(d.Context(), org, &denies, 0))
			}, engine.Deny, []engine.Code{engine.CodeRuleDeny},
		},
		"the rule is gone": {
			func(d *desk) { d.must(d.docs.DeleteRule(d.Context(), org, d.rule.ID, nil)) }, engine.Allow, []engine.Code{engine.CodePolicyAllowed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			in, id := d.hold()
			d.approve(id)
			tc.change(d)
			out := d.decide(in, id)
			d.want(out, tc.decision, tc.codes...)
			d.wantStatus(id, approval.Used, false)
			if again := d.decide(in, id); again.Record.DecisionID != out.Record.DecisionID {
				t.Errorf("Decide once more = %+v, want the one answer", again.Record)
			}
			if tc.decision == engine.ApprovalRequired { // which is an approval of its own
				d.wantStatus(out.Record.DecisionID, approval.Pending, true)
				d.approve(out.Record.DecisionID)
				d.want(d.decide(in, out.Record.DecisionID), engine.Allow, engine.CodeApprovalGranted)
			}
		})
	}
}

// TestRedeem_WithoutAnApprovalThatHolds checks that an intent is denied under an approval that
// was rejected, was revoked or has expired. The deny names the reason.
func TestRedeem_WithoutAnApprovalThatHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(d *desk, id string)
		code   engine.Code
		status approval.Status
	}{
		"rejected": {func(d *desk, id string) { _, err := d.judge(id, ledger.Rejected); d.must(err) }, engine.CodeApprovalRejected, approval.Rejected},
		"revoked": {
			func(d *desk, id string) { d.approve(id); _, err := d.judge(id, ledger.Revoked); d.must(err) },
			engine.CodeApprovalRevoked, approval.Revoked,
		},
		"nobody decided in time": {func(d *desk, _ string) { d.clock.advance(ttl) }, engine.CodeApprovalExpired, approval.Expired},
		"nobody used it in time": {func(d *desk, id string) { d.approve(id); d.clock.advance(ttl) }, engine.CodeApprovalExpired, approval.Expired},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			in, id := d.hold()
			tc.before(d, id)
			d.want(d.decide(in, id), engine.Deny, engine.CodeRuleApprovalRequired, tc.code)
			if got := d.status(id); got != tc.status {
				t.Errorf("Status = %s, want %s", got, tc.status)
			}
		})
	}
}

// TestVerdicts_AreInTheChain checks the promise "History: the redemption is its own row, the
// verdict an entry of the same chain". From the store alone, one can prove that the intent was
// held, approved and allowed.
func TestVerdicts_AreInTheChain(t *testing.T) {
	d := open(t)
	in, id := d.hold()
	d.approve(id)
	out := d.decide(in, id)
	d.want(out, engine.Allow, engine.CodeApprovalGranted)
	a, err := d.Find(t.Context(), org, id)
	d.must(err)
	if a.First.DecidedBy != person || a.First.DetailsDigest != a.Held.DetailsDigest || a.First.IntentDigest != a.Held.IntentDigest ||
		a.End.UsedBy != out.Record.DecisionID || a.First.Receipt.Sig == "" || a.End.Receipt.Sig == "" {
		t.Errorf("the verdicts are %+v and %+v", a.First, a.End)
	}
	keys, err := receipt.NewKeys(d.signer.Public())
	d.must(err)
	d.close()
	r, err := embedded.OpenReadOnly("db", embedded.Options{FS: d.fs})
	d.must(err)
	proof, err := ledger.Prove(t.Context(), r, ledger.ProveConfig{Keys: keys})
	d.must(errors.Join(err, r.Close()))
	if proof.Rows != 2 || proof.Verdicts != 2 {
		t.Errorf("Prove = %d rows and %d verdicts, want 2 and 2", proof.Rows, proof.Verdicts)
	}
}

// TestDetails_AreErasedAtTheEnd checks the promise "Values are scrubbed, kept while pending,
// erased at the end."
func TestDetails_AreErasedAtTheEnd(t *testing.T) {
	d := open(t)
	_, id := d.hold()
	if diff := cmp.Diff(map[string]string{"to": "acme-gmbh", "password": "[scrubbed]"}, d.values(id)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	_, err := d.judge(id, ledger.Rejected)
	d.must(err)
	d.wantStatus(id, approval.Rejected, false)

	keys := open(t, func(c *decision.Config) { c.ApprovalDetail = approval.Keys })
	_, id = keys.hold()
	if got := keys.values(id); len(got) > 0 {
		t.Errorf("kept %v, want keys alone", got)
	}
}

// TestSweep checks that a sweep erases expired details, and details that a crash left without a
// decision. Pending details stay.
func TestSweep(t *testing.T) {
	d := open(t)
	_, lapsed := d.hold()
	orphan := storage.NewDetails(uuid.NewString(), nil)
	orphan.AgentID, orphan.PolicyID, orphan.ExpiresAt = "billing", policyID, d.Now().Add(ttl)
	d.must(d.Keep(t.Context(), org, []*storage.Details{orphan}))
	d.clock.advance(ttl + storage.MaxSkew + time.Second)
	_, pending := d.hold()
	d.must(d.Sweep(t.Context()))
	d.wantStatus(lapsed, approval.Expired, false)
	d.wantStatus(pending, approval.Pending, true)
	if _, err := d.docs.Details(t.Context(), org, orphan.DecisionID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("what no decision names is kept: %v", err)
	}
}

func TestNew_Refuses(t *testing.T) {
	d := open(t)
	ok := approval.Config{Ledger: d.ledger, Store: d.store, Scrub: marking{}}
	for name, change := range map[string]func(*approval.Config){
		"no ledger":     func(c *approval.Config) { c.Ledger = nil },
		"no store":      func(c *approval.Config) { c.Store = nil },
		"no scrubber":   func(c *approval.Config) { c.Scrub = nil },
		"a short TTL":   func(c *approval.Config) { c.TTL = time.Millisecond },
		"a long TTL":    func(c *approval.Config) { c.TTL = approval.MaxTTL + 1 },
		"other details": func(c *approval.Config) { c.Detail = "all" },
	} {
		cfg := ok
		change(&cfg)
		if _, err := approval.New(cfg); err == nil {
			t.Errorf("New with %s: no error", name)
		}
	}
}
