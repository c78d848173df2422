package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"writ/engine"
	"writ/storage"
)

// verdicts are what was decided about held decisions. None is added once rows are read.
type verdicts struct {
	n      int
	on     map[decisionName]*provenVerdicts
	usedBy map[decisionName]*atomic.Bool // the decisions that used an approval, and whether each is there
}

// provenVerdicts are the verdicts on a decision, and whether that is there.
type provenVerdicts struct {
	Verdicts
	found atomic.Bool
}

type decisionName struct{ org, id string }

// verdict takes a verdict. What it says of others is compared with them: the decision
// that it is on, which waited for one, and the decision that it was used by.
func (p *prover) verdict(e *storage.Entry) error {
	v, err := ParseVerdict(e)
	if err != nil {
		return err
	}
	name := decisionName{v.OrganizationID, v.ApprovalID}
	on := p.verdicts.on[name]
	if on == nil {
		on = new(provenVerdicts)
		p.verdicts.on[name] = on
	}
	p.verdicts.n++
	if !v.ends() {
		on.First = v
		return nil
	}
	if on.End = v; v.Verdict == Used {
		p.verdicts.usedBy[decisionName{v.OrganizationID, v.UsedBy}] = new(atomic.Bool)
	}
	return nil
}

// removed takes a decision of which its tombstone is left.
func (v *verdicts) removed(org, id string) {
	if on := v.on[decisionName{org, id}]; on != nil {
		on.found.Store(true)
	}
	if used := v.usedBy[decisionName{org, id}]; used != nil {
		used.Store(true)
	}
}

// row takes a decision that is there. Own says that it is under a head of the history:
// an import brings rows without their verdicts.
func (v *verdicts) row(r *storage.Record, own bool) error {
	if on := v.on[decisionName{r.OrganizationID, r.DecisionID}]; on != nil {
		if on.found.Store(true); !r.Held() {
			return fmt.Errorf("a verdict is on it, and it is %s", r.Decision)
		}
		for _, w := range []*Verdict{on.First, on.End} {
			if w != nil &&
				(w.IntentDigest != "" && w.IntentDigest != r.IntentDigest || w.DetailsDigest != "" &&
					w.DetailsDigest != r.DetailsDigest) {
				return fmt.Errorf("it was %s as another intent or with other details", w.Verdict)
			}
		}
	}
	used := v.usedBy[decisionName{r.OrganizationID, r.DecisionID}]
	if used != nil {
		used.Store(true)
	}
	switch {
	case r.ApprovalID != "" && own:
		return v.redeemed(r)
	case r.ApprovalID == "" && used != nil:
		return errors.New("an approval was used by it, and it names none")
	}
	return nil
}

// redeemed holds that a decision under an approval is one that its verdicts led to.
func (v *verdicts) redeemed(r *storage.Record) error {
	on := v.on[decisionName{r.OrganizationID, r.ApprovalID}]
	switch {
	case on == nil || on.First == nil:
		return fmt.Errorf("it was decided under the approval %s, on which there is no verdict", r.ApprovalID)
	case on.First.IntentDigest != r.IntentDigest:
		return fmt.Errorf("it is of another intent than the approval %s", r.ApprovalID)
	case r.Decision != engine.Allow:
		return nil
	case on.First.Verdict != Approved || on.End == nil || on.End.UsedBy != r.DecisionID:
		return fmt.Errorf("it is allowed under the approval %s, which was not given or was used by another",
			r.ApprovalID)
	case r.DecidedAt.Before(on.First.DecidedAt.Add(-storage.MaxSkew)) || r.DecidedAt.After(on.First.ApprovedUntil):
		return fmt.Errorf("it is allowed under the approval %s at a time for which that was not given", r.ApprovalID)
	}
	return nil
}

// check holds that each decision that a verdict is on, and each that used an approval, is
// there.
func (v *verdicts) check() error {
	byName := func(a, b decisionName) int { return cmp.Or(cmp.Compare(a.org, b.org), cmp.Compare(a.id, b.id)) }
	for _, d := range slices.SortedFunc(maps.Keys(v.on), byName) {
		on := v.on[d]
		if !on.found.Load() {
			return &storage.BreakError{OrganizationID: d.org, DecisionID: d.id,
				Err: errors.New("a verdict is on it, and it is not there")}
		}
		if on.End != nil && (on.First == nil || on.First.Verdict != Approved) {
			return &storage.BreakError{OrganizationID: d.org, DecisionID: d.id,
				Err: fmt.Errorf("its approval is %s, and it was not given", on.End.Verdict)}
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(v.usedBy), byName) {
		if !v.usedBy[d].Load() {
			return &storage.BreakError{OrganizationID: d.org, DecisionID: d.id,
				Err: errors.New("it used an approval, and it is not there")}
		}
	}
	return nil
}
