package storage

import (
	"crypto/rand"
	"maps"

	"writ/ledger/receipt"
)

// Details are what is kept of a decision beside its row, until it is no longer
// needed. The row has their digest alone, of which nothing can be guessed once they
// and their salt are deleted.
type Details struct {
	DecisionID string            `json:"decision_id"`
	Salt       string            `json:"salt"`
	Values     map[string]string `json:"values"` // scrubbed
}

// NewDetails returns the details of a decision, with a new salt.
func NewDetails(decisionID string, values map[string]string) *Details {
	return &Details{DecisionID: decisionID, Salt: rand.Text(), Values: maps.Clone(values)}
}

// Digest returns the digest of the canonical JSON of {decision_id, salt, values}.
func (d *Details) Digest() string {
	dst := receipt.AppendString([]byte(`{"decision_id":`), d.DecisionID)
	dst = receipt.AppendString(append(dst, `,"salt":`...), d.Salt)
	dst = receipt.AppendMap(append(dst, `,"values":`...), d.Values)
	return receipt.DigestBytes(append(dst, '}'))
}
