//go:build !race

package protocol

import (
	"strings"
	"testing"
)

// TestExplore_EveryState checks that no invariant is broken in any state.
func TestExplore_EveryState(t *testing.T) {
	worlds := []World{
		{Replicas: 2, Intents: 1},
		{Replicas: 2, Intents: 1, Without: Named | Closed | Number}, // only the keys of heads protect the chain
		{Replicas: 2, Intents: 2},
		{Replicas: 2, Intents: 1, Switch: true, Restore: true},
		{Replicas: 2, Intents: 1, Switch: true, Unsettled: true},
		{Replicas: 2, Intents: 1, Limit: 1, Unsettled: true},
	}
	if testing.Short() {
		worlds = worlds[:2]
		t.Log("SKIPPED in short mode: the larger worlds")
	}
	for _, w := range worlds {
		r := Explore(w)
		t.Logf("%+v: %d states, %d steps", w, r.States, r.Steps)
		if r.Broken != "" {
			t.Errorf("%q breaks:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
		}
	}
}

// TestExplore_EachMechanismIsNeeded checks that without each mechanism an invariant breaks. Each
// test has the shortest trace to a state that breaks it.
func TestExplore_EachMechanismIsNeeded(t *testing.T) {
	for _, test := range []struct {
		name   string
		w      World
		broken string
		trace  string
	}{
		{"Fence: two write one chain, where who was given up can still commit", World{Replicas: 2, Intents: 2, Without: Fence | Named | Closed | Number}, "chain", `
replica 1 starts, and takes the slot of chain 1
replica 1 is given up
replica 2 starts, and takes the slot of chain 1
replica 1 decides a
replica 1 begins a transaction
replica 2 decides b
replica 2 begins a transaction
replica 1 commits, and answers
replica 2 commits, and answers
`},
		{"Named: who was given up has not heard, and commits", World{Replicas: 2, Intents: 1, Switch: true, Without: Named}, "switch", `
replica 1 starts, and takes the slot of chain 1
replica 1 is given up
replica 2 starts, and takes the slot of chain 1
replica 2 switches the agent off
the switch is answered
replica 1 decides a: allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Named: who was given up uses a place that was freed", World{Replicas: 2, Intents: 2, Limit: 1, Without: Named}, "limit", `
replica 1 starts, and takes the slot of chain 1
replica 1 is granted a place
replica 1 is given up
replica 1 is granted a place
replica 1 decides a and b: allow, allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Closed: who was given up has not heard, and commits", World{Replicas: 2, Intents: 1, Switch: true, Without: Closed}, "switch", `
replica 1 starts, and takes the slot of chain 1
replica 1 is given up
replica 2 starts, and takes the slot of chain 2
replica 2 switches the agent off
the switch is answered
replica 1 decides a: allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Closed: who was given up uses a place that was freed", World{Replicas: 2, Intents: 2, Limit: 1, Without: Closed}, "limit", `
replica 1 starts, and takes the slot of chain 1
replica 1 is granted a place
replica 1 is given up
replica 1 is granted a place
replica 1 decides a and b: allow, allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Unique: a head signs what is not stored", World{Replicas: 2, Intents: 1, Without: Unique}, "chain", `
replica 1 starts, and takes the slot of chain 1
replica 1 decides a
replica 1 begins a transaction
replica 1 commits, and answers
replica 1 decides a
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"LookAgain: who meets a row begins in the same way for ever", World{Replicas: 1, Intents: 2, Without: LookAgain}, "live", `
replica 1 starts, and takes the slot of chain 1
replica 1 decides a
replica 1 begins a transaction
replica 1 gets no answer
replica 1 has its transaction committed, and is not told
`},
		{"LookUnsigned: a place that is used passes for free", World{Replicas: 1, Intents: 2, Limit: 1, Without: LookUnsigned}, "limit", `
replica 1 starts, and takes the slot of chain 1
replica 1 is granted a place
replica 1 decides a: allow
replica 1 begins a transaction
replica 1 gets no answer
replica 1 refuses, and appends the same batch again with nothing signed
replica 1 has its transaction committed, and is not told
replica 1 begins a transaction
replica 1 decides b: allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"SameBatch: a place that is used passes for free", World{Replicas: 1, Intents: 2, Limit: 1, Without: SameBatch}, "limit", `
replica 1 starts, and takes the slot of chain 1
replica 1 is granted a place
replica 1 decides a: allow
replica 1 begins a transaction
replica 1 gets no answer
replica 1 has its transaction committed, and is not told
replica 1 takes the batch for lost
replica 1 decides b: allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"SameBatch: the end of the chain is not what it was", World{Replicas: 1, Intents: 2, Without: SameBatch | Number}, "chain", `
replica 1 starts, and takes the slot of chain 1
replica 1 decides a
replica 1 begins a transaction
replica 1 commits, and answers
replica 1 decides b
replica 1 begins a transaction
replica 1 gets no answer
replica 1 has its transaction committed, and is not told
replica 1 takes the batch for lost
the primary is lost, with what a majority does not have
replica 1 decides b
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Sure: a head follows one that was rolled back", World{Replicas: 1, Intents: 1, Without: Sure | Number}, "chain", `
replica 1 starts, and takes the slot of chain 1
replica 1 decides a
replica 1 begins a transaction
replica 1 gets no answer
replica 1 appends the same batch again
replica 1 has its transaction committed, and is not told
replica 1 begins a transaction
the primary is lost, with what a majority does not have
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Barrier: another replica has not heard", World{Replicas: 2, Intents: 1, Switch: true, Without: Barrier}, "switch", `
replica 1 starts, and takes the slot of chain 1
replica 2 starts, and takes the slot of chain 2
replica 1 switches the agent off
the switch is answered
replica 2 decides a: allow
replica 2 begins a transaction
replica 2 commits, and answers
`},
		{"GivenUp: who crashed or froze has decided before, and commits after", World{Replicas: 2, Intents: 1, Switch: true, Without: GivenUp}, "passed", `
replica 1 starts, and takes the slot of chain 1
replica 2 starts, and takes the slot of chain 2
replica 1 switches the agent off
replica 2 decides a: allow
replica 2 begins a transaction
replica 2 crashes
the switch is answered
replica 2 has its transaction committed, and is not told
`},
		{"Bound: a replica that hears nothing believes what it knows", World{Replicas: 2, Intents: 1, Switch: true, Without: Bound}, "bound", `
replica 1 starts, and takes the slot of chain 1
replica 2 starts, and takes the slot of chain 2
replica 1 switches the agent off
the bound of freshness passes
replica 2 decides a: allow
`},
		{"Grant: two count the same place", World{Replicas: 2, Intents: 2, Limit: 1, Without: Grant}, "limit", `
replica 1 starts, and takes the slot of chain 1
replica 2 starts, and takes the slot of chain 2
replica 1 decides a: allow
replica 1 begins a transaction
replica 2 decides b: allow
replica 1 commits, and answers
replica 2 begins a transaction
replica 2 commits, and answers
`},
		{"Forget: a place that is back in the store is used", World{Replicas: 2, Intents: 2, Limit: 1, Without: Forget}, "limit", `
replica 1 starts, and takes the slot of chain 1
replica 1 is granted a place
replica 1 returns a place, and is not told
replica 1 is granted a place
replica 1 decides a and b: allow, allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Number: a head follows one that a restore has taken", World{Replicas: 1, Intents: 1, Restore: true, Without: Number}, "chain", `
replica 1 starts, and takes the slot of chain 1
replica 1 decides a
replica 1 begins a transaction
replica 1 commits, and answers
the store is restored
replica 1 decides a
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"RowHeard: who has heard another change under the same number has not heard", World{Replicas: 2, Intents: 1, Switch: true, Restore: true, Without: RowHeard}, "switch", `
replica 1 starts, and takes the slot of chain 1
replica 1 switches the agent off
the store is restored
replica 2 starts, and takes the slot of chain 2
replica 2 switches the agent off
the switch is answered
replica 1 decides a: allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
		{"Settled: the chain is not closed yet", World{Replicas: 2, Intents: 1, Switch: true, Unsettled: true, Without: Settled}, "switch", `
replica 1 starts, and takes the slot of chain 1
replica 1 is given up, and its chain is not closed
replica 2 starts, and takes the slot of chain 2
replica 2 switches the agent off
the switch is answered
replica 1 decides a: allow
replica 1 begins a transaction
replica 1 commits, and answers
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Explore(test.w)
			if got, want := strings.Join(r.Trace, "\n"), strings.TrimSpace(test.trace); r.Broken != test.broken || got != want {
				t.Errorf("%q breaks, want %q:\n%s\nwant:\n%s", r.Broken, test.broken, got, want)
			}
		})
	}
}
