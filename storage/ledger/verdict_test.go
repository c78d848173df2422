package ledger

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// approving is a ledger with a held decision.
type approving struct {
	*testing.T
	*Ledger
	log   *storagetest.MemoryLog
	store *fake // the store that has the meters
	held  *storage.Record
}

func openApproving(t *testing.T) *approving {
	t.Helper()
	a := &approving{T: t, store: newFake()}
	a.log, a.Ledger = a.store.log, open(t, a.store)
	out, err := decide(t.Context(), a.Ledger, "acme", entry(intent(1), engine.ApprovalRequired))
	must(t, err)
	a.held = out.Record
	return a
}

func (a *approving) verdict(verdict string) *Verdict {
	v := &Verdict{
		OrganizationID: "acme", ApprovalID: a.held.DecisionID, Verdict: verdict, IntentDigest: a.held.IntentDigest,
		DecidedAt: a.Now(), DecidedBy: "operator:bob",
	}
	if verdict == Approved {
		v.ApprovedUntil = v.DecidedAt.Add(time.Hour)
	}
	return v
}

func (a *approving) judge(verdict string) {
	a.Helper()
	if _, err := a.Judge(a.Context(), a.verdict(verdict)); err != nil {
		a.Fatal(err)
	}
}

// redeem commits an allow that uses the approval. A non-empty verdict is committed with the allow.
func (a *approving) redeem(verdict string) (Outcome, error) {
	e := entry(intent(1), engine.Allow)
	e.ApprovalID = a.held.DecisionID
	if verdict != "" {
		e.Verdict = a.verdict(verdict)
	}
	return decide(a.Context(), a.Ledger, "acme", e)
}

func TestVerdict_TheFirstStands(t *testing.T) {
	a := openApproving(t)
	first := a.verdict(Approved)
	for _, v := range []*Verdict{first, a.verdict(Rejected), a.verdict(Approved)} {
		stands, err := a.Judge(t.Context(), v)
		if err != nil || stands.Verdict != Approved || !stands.DecidedAt.Equal(first.DecidedAt) || stands.Receipt.Sig == "" {
			t.Errorf("Judge(%s) = %+v, %v; want the first", v.Verdict, stands, err)
		}
	}
	got, err := a.Verdicts(t.Context(), "acme", a.held.DecisionID)
	if err != nil || got.First.Verdict != Approved || got.End != nil {
		t.Errorf("Verdicts = %+v, %v", got, err)
	}
	if none, err := a.Verdicts(t.Context(), "rival", a.held.DecisionID); err != nil || none != (Verdicts{}) {
		t.Errorf("Verdicts of another organization = %+v, %v", none, err)
	}
}

func TestVerdict_ADecisionAndItsVerdictAreStoredBothOrNone(t *testing.T) {
	a := openApproving(t)
	a.judge(Approved)
	a.judge(Revoked)
	if out, err := a.redeem(Used); !errors.Is(err, ErrRaced) {
		t.Fatalf("Commit after it was revoked = %+v, %v; want ErrRaced", out, err)
	}
	if n := len(a.log.Records); n != 1 {
		t.Errorf("%d records are stored, want the held one", n)
	}
	// If the decision is stored without a verdict, a later commit must not store the verdict alone.
	e := entry(intent(1), engine.Deny)
	e.ApprovalID = a.held.DecisionID
	if _, err := decide(t.Context(), a.Ledger, "acme", e); err != nil {
		t.Fatal(err)
	}
	if out, err := a.redeem(Used); err != nil || !out.Replayed || out.Record.Decision != engine.Deny {
		t.Errorf("Commit once more = %+v, %v; want the deny", out, err)
	}
	if got := ordinal(t, a.Ledger, "acme"); got != 2 {
		t.Errorf("the next ordinal = %d, want 2: what is decided under an approval has no place in the meter", got)
	}
	if _, err := proveLog(t, a.log); err != nil {
		t.Errorf("Prove = %v", err)
	}
}

// TestVerdict_UsesRaceARevocation checks concurrent uses and a revocation of one approval in the
// batches of one ledger. Exactly one verdict must end the approval. A caller gets an allow only if
// that allow is stored.
func TestVerdict_UsesRaceARevocation(t *testing.T) {
	for range 20 {
		a := openApproving(t)
		a.judge(Approved)
		var wg sync.WaitGroup
		outs, errs := make([]Outcome, 8), make([]error, 8)
		for i := range outs {
			wg.Go(func() { outs[i], errs[i] = a.redeem(Used) })
		}
		wg.Go(func() { a.judge(Revoked) })
		wg.Wait()
		end, err := a.Verdicts(t.Context(), "acme", a.held.DecisionID)
		must(t, err)
		for i, out := range outs {
			switch {
			case end.End.Verdict == Revoked && !errors.Is(errs[i], ErrRaced):
				t.Errorf("revoked, and Commit = %+v, %v", out, errs[i])
			case end.End.Verdict == Used && (errs[i] != nil || out.Record.DecisionID != end.End.UsedBy):
				t.Errorf("used by %s, and Commit = %+v, %v", end.End.UsedBy, out, errs[i])
			}
		}
		if _, err := proveLog(t, a.log); err != nil {
			t.Errorf("Prove = %v", err)
		}
	}
}

func TestProve_WhatIsAllowedUnderAnApproval(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(a *approving)
		want  string // empty if the history is valid
	}{
		"approved and used": {func(a *approving) { a.judge(Approved); a.use(Used) }, ""},
		"no verdict":        {func(a *approving) { a.use("") }, "on which there is no verdict"},
		"rejected":          {func(a *approving) { a.judge(Rejected); a.use("") }, "which was not given"},
		"not used by it":    {func(a *approving) { a.judge(Approved); a.use("") }, "was used by another"},
		"expired, used":     {func(a *approving) { a.judge(Expired); a.use(Used) }, "which was not given"},
		"another intent": {func(a *approving) {
			a.judge(Approved)
			e := entry(intent(2), engine.Allow)
			e.ApprovalID, e.Verdict = a.held.DecisionID, a.verdict(Used)
			if _, err := decide(a.Context(), a.Ledger, "acme", e); err != nil {
				a.Fatal(err)
			}
		}, "another intent than the approval"},
		"too late": {func(a *approving) {
			v := a.verdict(Approved)
			v.ApprovedUntil = v.DecidedAt.Add(-time.Second)
			if _, err := a.Judge(a.Context(), v); err != nil {
				a.Fatal(err)
			}
			a.use(Used)
		}, "at a time for which that was not given"},
		"of other details": {func(a *approving) {
			v := a.verdict(Approved)
			v.DetailsDigest = receipt.DigestBytes(nil)
			if _, err := a.Judge(a.Context(), v); err != nil {
				a.Fatal(err)
			}
		}, "with other details"},
		"its use is gone": {func(a *approving) {
			v := a.verdict(Used)
			v.UsedBy = "0190f5e6-0000-7000-8000-000000000000"
			a.judge(Approved)
			if _, err := a.Judge(a.Context(), v); err != nil {
				a.Fatal(err)
			}
		}, "it used an approval, and it is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			a := openApproving(t)
			tc.write(a)
			_, err := proveLog(t, a.log)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Prove = %v, want %q", err, tc.want)
			}
		})
	}
}

func (a *approving) use(verdict string) {
	a.Helper()
	if _, err := a.redeem(verdict); err != nil {
		a.Fatal(err)
	}
}
