package system

import (
	"os"
	"strings"
	"testing"

	"writ.example/writ/storage/mongodb/mongotest"
)

// soaking reports whether the tests run with the long durations of `make soak`.
func soaking() bool { return os.Getenv("WRIT_SOAK") != "" }

// rounds returns the number of repetitions of a step: many in a soak test, otherwise few.
func rounds(few, many int) int {
	if soaking() {
		return many
	}
	return few
}

// TestReplicas runs tests in which real processes share a real replica set of three members.
func TestReplicas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set and replicas for minutes")
	}
	set := mongotest.For(t, 3)
	for name, test := range map[string]func(*testing.T, *cluster){
		"RaceOfOneIntent": raceOfOneIntent, "RaceOfOneApproval": raceOfOneApproval, "RaceOfPolicyVersions": raceOfPolicyVersions, "RaceToThePlansLimit": raceToThePlansLimit,
		"RaceToALimitOverTime": raceToALimitOverTime, "MutatedNames": mutatedNames,
		"KillSwitch": killSwitchOverReplicas, "KillSwitchBesideAFrozenReplica": killSwitchBesideFrozen,
		"Stop": stopOverReplicas, "StopBesideAFrozenReplica": stopBesideFrozen,
		"KilledReplicas": killedReplicas, "KilledPrimary": killedPrimary, "OneLeads": oneLeads,
		"TwoForOneSlot": twoForOneSlot, "StartWithoutPrimary": startWithoutPrimary, "ClocksApart": clocksApart,
		"RestoredUnderReplicas": restoredUnderReplicas, "TwoSchemas": twoSchemas, "Sinks": sinksOfReplicas, "Streams": streamsOfReplicas,
		"WritingTenants": writingTenants,
	} {
		t.Run(name, func(t *testing.T) { test(t, newCluster(t, set)) })
	}
}

// TestCluster_Stacks checks that a failure about a silent replica says what all its goroutines waited for.
func TestCluster_Stacks(t *testing.T) {
	c := newCluster(t, nil)
	c.start(t, 1)
	if got := c.stacks(); !strings.Contains(got, "main.main") ||
		!strings.Contains(got, c.replicas[0].url) || strings.Count(got, "\ngoroutine ") < 3 {
		t.Errorf("the stacks of a replica are %q", got)
	}
	if again := c.stacks(); again != "" {
		t.Errorf("a second call returns %q, want nothing", again)
	}
}
