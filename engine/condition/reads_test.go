package condition

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition/conditiontest"
)

func TestReads(t *testing.T) {
	unknown := []string{"resource", "agent_id", "action_type", "issued_at", "metadata.env", "metadata.freight", CountsMember}
	for doc, want := range map[string][][]string{
		`{"action_type":"deploy","metadata.env":"prod"}`:                          {{"action_type"}, {"metadata.env"}},
		`{"metadata.env":{"$exists":true}}`:                                       {nil},
		`{"agent_id":"a","cost.amount_minor":{"$gt":5}}`:                          {{"agent_id"}, nil},
		`{"metadata.env":{"$some":["a"]}}`:                                        {{"metadata.env"}},
		`{"cel":"intent.metadata.env == 'a' && has(intent.metadata.freight)"}`:    {{"metadata.env"}, nil},
		`{"cel":"'env' in intent.metadata || intent.metadata['freight'] == 'x'"}`: {nil, {"metadata.freight"}},
		`{"cel":"intent.metadata.exists(k, intent.metadata[k] == 'x')"}`:          {{"metadata.env", "metadata.freight"}},
		`{"cel":"decided_at > intent.issued_at"}`:                                 {{"issued_at"}},
		`{"cel":"intent.resource.startsWith('a')"}`:                               {{"resource"}},
		`{"cel":"has(intent.cost)"}`:                                              {nil},
		`{"count":{"window":"1h"},"gt":5}`:                                        {{CountsMember}},
	} {
		c := mustCondition(t, doc)
		var got [][]string
		for _, r := range c.Reads() {
			got = append(got, r.Lacks(unknown, []string{"env", "freight"}))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s reads (-want +got):\n%s", doc, diff)
		}
	}
}

// TestReads_NothingElse checks that a leaf has the same value for two intents that differ only in
// metadata values that it does not read.
func TestReads_NothingElse(t *testing.T) {
	g := conditiontest.New(31)
	told := 0
	for range 3_000 {
		doc := g.Condition()
		c := mustCondition(t, doc)
		reads := c.Reads()
		if len(reads) != len(c.Clause().Leaves()) {
			t.Fatalf("%s has %d leaves, and reads of %d", doc, len(c.Clause().Leaves()), len(reads))
		}
		in := g.Intent()
		other := *in
		other.Metadata = maps.Clone(in.Metadata)
		var unknown []string
		var kept []string
		for key := range in.Metadata {
			kept = append(kept, key)
			unknown = append(unknown, metadataMember+key)
			other.Metadata[key] = ""
		}
		oks, errs := saidOf(c, testFrame(t, in))
		others, otherErrs := saidOf(c, testFrame(t, &other))
		for i, r := range reads {
			if len(r.Lacks(unknown, kept)) > 0 {
				continue
			}
			told++
			if oks[i] != others[i] || (errs[i] == nil) != (otherErrs[i] == nil) {
				text, _ := json.Marshal(in)
				t.Fatalf("leaf %d of %s is %v, %v for %s, and %v, %v without the values", i, doc, oks[i], errs[i], text, others[i], otherErrs[i])
			}
		}
	}
	if told < 1000 {
		t.Errorf("only %d leaves were compared", told)
	}
}
