package condition

import (
	"slices"
	"strings"
)

// CountsMember names the counters of conditions. They are counted for the decision and are not kept.
const CountsMember = "counts"

// metadataMember is the prefix of the name of a metadata value.
const metadataMember = "metadata."

// LeafReads is what a leaf of a condition reads of the intent. Members are named as a row of the history
// names those that it lacks: "resource", "agent_id", "action_type", "issued_at", "metadata.<key>" for a
// value, and "metadata" for a key. [CountsMember] stands for all counters.
type LeafReads struct {
	members []string
	// keys has the metadata keys whose existence the leaf tests.
	keys []string
	// metadata says that the leaf reads all metadata.
	metadata bool
}

// Lacks returns the members in unknown that the leaf reads. kept are the metadata keys that are known.
func (r *LeafReads) Lacks(unknown []string, kept []string) (all []string) {
	for _, m := range unknown {
		_, isValue := strings.CutPrefix(m, metadataMember)
		if slices.Contains(r.members, m) || r.metadata && (isValue || m == "metadata") || m == "metadata" &&
			slices.ContainsFunc(r.keysRead(), func(k string) bool { return !slices.Contains(kept, k) }) {
			all = append(all, m)
		}
	}
	return all
}

// keysRead returns the metadata keys whose value or existence the leaf reads.
func (r *LeafReads) keysRead() []string {
	keys := slices.Clone(r.keys)
	for _, m := range r.members {
		if key, ok := strings.CutPrefix(m, metadataMember); ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func (r *LeafReads) field(f Field) {
	switch f.ID {
	case AgentID, AgentNames, AgentName, GovernedAgentID, GovernedAgentStatus: // the status depends on the spelling
		r.members = append(r.members, "agent_id")
	case ActionType:
		r.members = append(r.members, "action_type")
	case Resource:
		r.members = append(r.members, "resource")
	case IssuedAt:
		r.members = append(r.members, "issued_at")
	case MetadataValue:
		r.members = append(r.members, metadataMember+f.Key)
	case Metadata:
		r.metadata = true
	case CounterValue:
		r.members = append(r.members, CountsMember)
	}
}

// presence adds a test of the existence of f.
func (r *LeafReads) presence(f Field) {
	switch f.ID {
	case MetadataValue:
		r.keys = append(r.keys, f.Key)
	case CounterValue:
		r.field(f)
	}
}

// Reads returns what each leaf of the condition reads, in the order of [Clause.Index]. It is nil if the
// condition is in Rego or does not compile. It compiles a condition in CEL again.
func (c *Condition) Reads() []LeafReads {
	var all []LeafReads
	switch {
	case c.tree != nil:
		c.tree.leaves(func(n *Node) {
			var r LeafReads
			r.node(n)
			all = append(all, r)
		})
	case c.cel != "":
		return celReads(c.cel)
	}
	return all
}

// leaves calls f for each leaf of the clause of n, from left to right.
func (n *Node) leaves(f func(*Node)) {
	if n.Kind == Leaf {
		f(n)
		return
	}
	for _, k := range n.Kids {
		k.leaves(f)
	}
}

// node adds what a leaf of a tree reads.
func (r *LeafReads) node(n *Node) {
	if n.Kind == Leaf {
		if n.Op == Exists {
			r.presence(n.Field)
		} else {
			r.field(n.Field)
		}
	}
	for _, k := range n.Kids {
		r.node(k)
	}
}
