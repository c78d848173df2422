package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// verdicts are the decisions that verdicts are on, and whether each is there. None is
// added once rows are read.
type verdicts map[decisionName]*atomic.Bool

type decisionName struct{ org, id string }

// verdict takes a verdict. Of its body it proves that it is canonical JSON with the
// members entry, organization_id and approval_id, the id of the decision, which is its
// key. What else it says is signed and is not compared with anything.
func (p *prover) verdict(e *storage.Entry) error {
	var body struct {
		Entry          storage.EntryKind `json:"entry"`
		OrganizationID string            `json:"organization_id"`
		ApprovalID     string            `json:"approval_id"`
	}
	canonical, err := receipt.Canonicalize(e.Body)
	if err == nil {
		err = json.Unmarshal(e.Body, &body)
	}
	if err != nil {
		return fmt.Errorf("the body of a %s: %w", e.Kind, err)
	}
	if !bytes.Equal(canonical, e.Body) || body.Entry != e.Kind || body.OrganizationID != e.OrganizationID || body.ApprovalID != e.Key {
		return fmt.Errorf("the body of a %s is not that of its key", e.Kind)
	}
	p.verdicts[decisionName{e.OrganizationID, e.Key}] = new(atomic.Bool)
	return nil
}

// on takes a decision that is there; outcome is 0 where only its tombstone is.
func (v verdicts) on(org, id string, outcome engine.Decision) error {
	if len(v) == 0 {
		return nil
	}
	found := v[decisionName{org, id}]
	if found == nil {
		return nil
	}
	if found.Store(true); outcome != 0 && outcome != engine.ApprovalRequired {
		return fmt.Errorf("a verdict is on it, and it is %s", outcome)
	}
	return nil
}

// check holds that each decision that a verdict is on is there.
func (v verdicts) check() error {
	names := slices.SortedFunc(maps.Keys(v), func(a, b decisionName) int { return cmp.Or(cmp.Compare(a.org, b.org), cmp.Compare(a.id, b.id)) })
	for _, d := range names {
		if !v[d].Load() {
			return &storage.BreakError{OrganizationID: d.org, DecisionID: d.id, Err: errors.New("a verdict is on it, and it is not there")}
		}
	}
	return nil
}
