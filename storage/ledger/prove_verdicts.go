package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// verdicts has the decisions that verdicts name. It does not grow while rows are read.
type verdicts struct {
	n     int // verdicts
	named map[decisionName]*namedDecision
}

// namedDecision is a decision that a verdict is on, or that used an approval.
type namedDecision struct {
	Verdicts             // on the decision
	uses     bool        // a verdict says that the decision used an approval
	found    atomic.Bool // the decision is there
}

type decisionName struct{ org, id string }

// verdict adds the verdict of e. Later, row compares the verdict with the decision that
// it judges and with the decision that used the approval. If the verdict was proved before, these
// decisions are not looked for.
func (p *prover) verdict(e *storage.Entry, before bool) error {
	v, err := ParseVerdict(e)
	if err != nil {
		return err
	}
	on := p.verdicts.name(v.OrganizationID, v.ApprovalID)
	if before {
		on.found.Store(true)
	} else {
		p.verdicts.n++
	}
	if !v.ends() {
		on.First = v
		return nil
	}
	if on.End = v; v.Verdict == Used {
		by := p.verdicts.name(v.OrganizationID, v.UsedBy)
		by.uses = true
		if before {
			by.found.Store(true)
		}
	}
	return nil
}

// name returns the decision of that name, which a verdict names.
func (v *verdicts) name(org, id string) *namedDecision {
	name := decisionName{org, id}
	if v.named[name] == nil {
		v.named[name] = new(namedDecision)
	}
	return v.named[name]
}

// removed notes that a decision has a tombstone.
func (v *verdicts) removed(org, id string) {
	if d := v.named[decisionName{org, id}]; d != nil {
		d.found.Store(true)
	}
}

// row compares the decision r with the verdicts that name r. own says that r is under a
// head of the history. An imported row is not under such a head, and its verdicts are not
// in the history.
func (v *verdicts) row(r *storage.Record, own bool) error {
	d := v.named[decisionName{r.OrganizationID, r.DecisionID}]
	if d != nil {
		d.found.Store(true)
		for _, w := range []*Verdict{d.First, d.End} {
			switch {
			case w == nil:
			case !r.Held():
				return fmt.Errorf("a verdict is on it, and it is %s", r.Decision)
			case w.IntentDigest != "" && w.IntentDigest != r.IntentDigest,
				w.DetailsDigest != "" && w.DetailsDigest != r.DetailsDigest:
				return fmt.Errorf("it was %s as another intent or with other details", w.Verdict)
			}
		}
	}
	switch {
	case r.ApprovalID != "" && own:
		return v.checkApproval(r)
	case r.ApprovalID == "" && d != nil && d.uses:
		return errors.New("an approval was used by it, and it names none")
	}
	return nil
}

// checkApproval returns an error if the verdicts on an approval do not lead to r, which was
// decided under it.
func (v *verdicts) checkApproval(r *storage.Record) error {
	on := v.named[decisionName{r.OrganizationID, r.ApprovalID}]
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

// check returns an error if a decision that a verdict names is missing.
func (v *verdicts) check() error {
	for _, name := range slices.SortedFunc(maps.Keys(v.named), func(a, b decisionName) int {
		return cmp.Or(cmp.Compare(a.org, b.org), cmp.Compare(a.id, b.id))
	}) {
		d := v.named[name]
		switch {
		case !d.found.Load() && d.uses:
			return brokenRow(name.org, name.id, errors.New("it used an approval, and it is not there"))
		case !d.found.Load():
			return brokenRow(name.org, name.id, errors.New("a verdict is on it, and it is not there"))
		case d.End != nil && (d.First == nil || d.First.Verdict != Approved):
			return brokenRow(name.org, name.id, fmt.Errorf("its approval is %s, and it was not given", d.End.Verdict))
		}
	}
	return nil
}
