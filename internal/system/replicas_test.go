package system

import (
	"os"
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
	} {
		t.Run(name, func(t *testing.T) { test(t, newCluster(t, set)) })
	}
}
