package approval_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"writ.example/writ/decision/approval"
	"writ.example/writ/engine"
	"writ.example/writ/storage/ledger"
)

// rounds is how often each race is run.
const rounds = 200

// TestRace_ApproveAgainstReject checks the promise "Races, decided by the commit". Of an
// approval and a rejection at the same time, one stands, and both callers learn which.
func TestRace_ApproveAgainstReject(t *testing.T) {
	d := open(t)
	won := map[approval.Status]int{}
	for range rounds {
		in, id := d.hold()
		errs := both(
			func() error { _, err := d.judge(id, ledger.Approved); return err },
			func() error { _, err := d.judgeBy(id, ledger.Rejected, "another-person"); return err },
		)
		status := d.status(id)
		won[status]++
		lost, stood := errs[1], errs[0]
		if status == approval.Rejected {
			lost, stood = errs[0], errs[1]
		}
		if stood != nil || !errors.Is(lost, approval.ErrDecided) {
			t.Fatalf("%s stands, and Judge = %v and %v", status, errs[0], errs[1])
		}
		want, code := engine.Allow, []engine.Code{engine.CodeApprovalGranted}
		if status == approval.Rejected {
			want, code = engine.Deny, []engine.Code{engine.CodeRuleApprovalRequired, engine.CodeApprovalRejected}
		}
		d.want(d.decide(in, id), want, code...)
	}
	t.Logf("stood: %v", won)
}

// TestRace_AHundredRedemptions checks that a hundred redemptions of one approval at the same
// time get the same decision.
func TestRace_AHundredRedemptions(t *testing.T) {
	d := open(t)
	in, id := d.hold()
	d.approve(id)
	outs := make([]ledger.Outcome, 100)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() { outs[i] = d.decide(in, id) })
	}
	wg.Wait()
	made := 0
	for _, out := range outs {
		d.want(out, engine.Allow, engine.CodeApprovalGranted)
		if out.Record.DecisionID != outs[0].Record.DecisionID {
			t.Errorf("two decisions: %s and %s", out.Record.DecisionID, outs[0].Record.DecisionID)
		}
		if !out.Replayed {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d decisions were made, want 1", made)
	}
}

// TestRace_RedeemAgainstRevoke checks that a revoked approval allows nothing, and that a used
// approval cannot be revoked.
func TestRace_RedeemAgainstRevoke(t *testing.T) {
	d := open(t)
	for range rounds {
		in, id := d.hold()
		d.approve(id)
		var out ledger.Outcome
		errs := both(
			func() error { out = d.decide(in, id); return out.Err },
			func() error { _, err := d.judge(id, ledger.Revoked); return err },
		)
		switch status := d.status(id); status {
		case approval.Used:
			d.want(out, engine.Allow, engine.CodeApprovalGranted)
			if !errors.Is(errs[1], approval.ErrDecided) {
				t.Errorf("used, and Judge = %v, want ErrDecided", errs[1])
			}
		case approval.Revoked:
			d.want(out, engine.Deny, engine.CodeRuleApprovalRequired, engine.CodeApprovalRevoked)
			if errs[1] != nil {
				t.Errorf("revoked, and Judge = %v", errs[1])
			}
		default:
			t.Errorf("Status = %s", status)
		}
	}
}

// TestRace_ApproveAgainstExpiry checks a verdict at the end of an approval's time. Everybody
// must see the same result: either that the decision was approved, or that nobody decided in
// time.
func TestRace_ApproveAgainstExpiry(t *testing.T) {
	d := open(t)
	for range rounds {
		in, id := d.hold()
		a, err := d.Find(t.Context(), org, id)
		d.must(err)
		d.clock.advance(d.ExpiresAt(a).Sub(d.Now()) - time.Millisecond)
		go d.clock.advance(time.Millisecond)
		var out ledger.Outcome
		errs := both(
			func() error { out = d.decide(in, id); return out.Err },
			func() error { _, err := d.judge(id, ledger.Approved); return err },
		)
		d.must(errs[0])
		found, err := d.Find(t.Context(), org, id)
		d.must(err)
		denied := out.Record.Decision == engine.Deny
		switch {
		case errs[1] == nil && (found.First.Verdict != ledger.Approved || denied):
			t.Fatalf("approved, and Decide = %v under %+v", out.Record.Reasons, found.First)
		case errs[1] != nil && !errors.Is(errs[1], approval.ErrExpired) && !errors.Is(errs[1], approval.ErrDecided):
			t.Fatalf("Judge = %v", errs[1])
		case errs[1] != nil && out.Record.Decision == engine.Allow:
			t.Fatalf("Judge = %v, and Decide allows", errs[1])
		}
	}
}

// both runs a and b at the same time.
func both(a, b func() error) (errs [2]error) {
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = a() })
	wg.Go(func() { errs[1] = b() })
	wg.Wait()
	return errs
}
