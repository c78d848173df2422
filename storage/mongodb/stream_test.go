package mongodb

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ/engine"
	"writ/storage"
)

// historyLost is ChangeStreamHistoryLost: the oplog no longer has the point of a stream.
const historyLost = 286

// TestWatch_OfAStreamWhoseHistoryIsLost: the oplog has lost the point of a handle's
// stream, and for a while no other begins. The handle hears of each change once and in
// order where none was trimmed meanwhile, otherwise of EverythingChanged, and then of
// what follows. Labels are what the server says of the error: the driver resumes a
// stream by itself after a resumable one.
func TestWatch_OfAStreamWhoseHistoryIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		labels bson.A
		trim   bool
	}{
		"and nothing was trimmed":                      {bson.A{}, false},
		"and changes were":                             {bson.A{}, true},
		"when it is resumed":                           {bson.A{"ResumableChangeStreamError"}, false},
		"when it is resumed, and changes were trimmed": {bson.A{"ResumableChangeStreamError"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			set, o := sharedSet(t), newDatabase(t, sharedSet(t))
			late := o
			late.URI += "&appName=" + o.Database + "-late"
			a, b := openTest(t, o), openTest(t, late)
			heard := watchRevisions(t, b)
			lose := func(mode string) {
				t.Helper()
				err := set.Admin(context.Background(), doc(
					"configureFailPoint", "failCommand", "mode", mode,
					"data", doc(
						"failCommands", bson.A{"getMore", "aggregate"}, "errorCode", historyLost,
						"errorLabels", test.labels, "appName", o.Database+"-late",
					),
				))
				if err != nil {
					t.Fatal(err)
				}
			}
			lose("alwaysOn")
			t.Cleanup(func() { lose("off") })
			for end := time.Now().Add(time.Minute); b.health.trouble(streaming) == nil; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the stream goes on")
				}
			}
			var want []uint64
			for range 150 { // more than one batch of a cursor
				want = append(want, updateRule(t, a))
			}
			if test.trim {
				if err := a.Trim(t.Context(), want[100]); err != nil {
					t.Fatal(err)
				}
				want = []uint64{0}
			}
			lose("off")
			wait := func() {
				t.Helper()
				for end := time.Now().Add(time.Minute); len(heard.list()) < len(want); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						break
					}
				}
				if got := heard.list(); !slices.Equal(got, want) {
					t.Fatalf("heard of the revisions %v, want %v", got, want)
				}
			}
			wait()
			want = append(want, updateRule(t, a))
			wait()
		})
	}
}

// updateRule writes a rule and returns the revision.
// putRule is an update of a rule of the organization org.
func putRule(tx storage.Tx) error {
	return storage.Rules.Put(tx, "org", &engine.Rule{ID: "r"})
}

func updateRule(t *testing.T, s *Store) uint64 {
	t.Helper()
	revision, err := s.Update(t.Context(), "org", putRule)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}
