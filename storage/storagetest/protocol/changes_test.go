//go:build !race

package protocol

import (
	"strings"
	"testing"
)

// TestExploreChanges_EveryState checks that no invariant of changes is broken in any state.
func TestExploreChanges_EveryState(t *testing.T) {
	worlds := []Changes{
		{Replicas: 2, Breaks: true}, {Replicas: 2, Signs: true}, {Replicas: 2, Restore: true}, {Replicas: 2, Late: true},
		{Replicas: 2, Groups: true, Breaks: true}, {Replicas: 2, Groups: true, Restore: true},
	}
	for _, c := range worlds {
		r := ExploreChanges(c)
		t.Logf("%+v: %d states, %d steps", c, r.States, r.Steps)
		if r.Broken != "" {
			t.Errorf("%q breaks:\n%s", r.Broken, strings.Join(r.Trace, "\n"))
		}
	}
}

// TestExploreChanges_EachMechanismIsNeeded checks that without each mechanism an invariant breaks.
func TestExploreChanges_EachMechanismIsNeeded(t *testing.T) {
	for _, test := range []struct {
		name   string
		c      Changes
		broken string
		trace  string
	}{
		{"Counter: two changes of an organization have one revision", Changes{Replicas: 2, Without: Counter}, "order", `
replica 1 begins to write the switch
replica 2 begins to write the switch
replica 1 commits the switch
replica 1 hears of the switch
replica 2 commits the switch
replica 1 hears of the switch
`},
		{"InPlace: an own change is told before an earlier one", Changes{Replicas: 2, Without: InPlace}, "order", `
replica 1 begins to write the switch
replica 1 commits the switch
replica 2 begins to write a rule
replica 2 commits a rule
replica 2 hears of the switch
`},
		{"OwnRow: who has written has not heard yet", Changes{Replicas: 2, Without: OwnRow}, "switch", `
replica 1 begins to write the switch
replica 1 reads the agent
replica 1 commits the switch
replica 1 takes the time up to which it was told
replica 1 answers the switch
`},
		{"Mark: who has written nothing has not heard yet", Changes{Replicas: 2, Without: Mark}, "switch", `
replica 1 begins to write the switch
replica 1 reads the agent
replica 1 commits the switch
replica 2 finds the agent switched off, and writes nothing
replica 2 takes the time up to which it was told
replica 2 answers the switch
`},
		{"Told: who has received has told nobody", Changes{Replicas: 2, Without: Told}, "switch", `
replica 1 begins to write the switch
replica 2 reads the agent
replica 1 commits the switch
replica 1 receives the switch
replica 1 tells its watchers
replica 1 acknowledges
replica 2 receives the switch
replica 2 acknowledges
replica 1 answers the switch
`},
		{"Resume: a change came while the stream was broken", Changes{Replicas: 2, Breaks: true, Without: Resume}, "switch", `
replica 1 begins to write the switch
replica 2 reads the agent
replica 1 commits the switch
replica 1 hears of the switch
replica 1 acknowledges
replica 2 has its stream broken
replica 2 opens its stream again
replica 2 acknowledges
replica 1 answers the switch
`},
		{"Everything: a change is gone from the store", Changes{Replicas: 2, Breaks: true, Without: Everything}, "switch", `
replica 1 begins to write the switch
replica 2 reads the agent
replica 1 commits the switch
replica 1 hears of the switch
replica 1 acknowledges
replica 2 has its stream broken
replica 2 is to hear of what the store has no more
replica 2 opens its stream again
replica 2 acknowledges
replica 1 answers the switch
`},
		{"ByKey: a change is committed late under a smaller key", Changes{Replicas: 2, Signs: true, Without: ByKey}, "signed", `
replica 1 begins to write the switch
replica 2 begins to write another organization
replica 2 commits another organization
the changes are signed
replica 1 commits the switch
the signed changes are trimmed
`},
		{"RowHeard: a time comes again", Changes{Replicas: 2, Restore: true, Without: RowHeard}, "switch", `
replica 1 begins to write a rule
replica 1 commits a rule
replica 1 hears of a rule
replica 1 acknowledges
replica 1 reads the agent
the store is restored as it was with 0 changes
replica 2 begins to write the switch
replica 2 commits the switch
replica 2 hears of the switch
replica 2 acknowledges
replica 2 answers the switch
`},
		{"OwnBeat: a late stream brings the beats of others", Changes{Replicas: 2, Late: true, Without: OwnBeat}, "bound", `
replica 1 begins to write the switch
replica 1 writes a beat
replica 2 reads the agent
replica 1 commits the switch
the bound of freshness passes
replica 2 hears of a beat
`},
		{"Whole: the switch is not the first row of its transaction", Changes{Replicas: 2, Groups: true, Without: Whole}, "switch", `
replica 1 begins to write the switch and another organization
replica 2 reads the agent
replica 1 commits another organization and the switch
replica 1 hears of another organization
replica 1 hears of the switch
replica 1 acknowledges
replica 2 hears of another organization
replica 2 acknowledges
replica 1 answers the switch
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := ExploreChanges(test.c)
			if got, want := strings.Join(r.Trace, "\n"), strings.TrimSpace(test.trace); r.Broken != test.broken || got != want {
				t.Errorf("%q breaks, want %q:\n%s\nwant:\n%s", r.Broken, test.broken, got, want)
			}
		})
	}
}
