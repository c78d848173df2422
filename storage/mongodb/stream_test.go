package mongodb

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
)

// historyLost is the server's error code ChangeStreamHistoryLost. With this error the oplog no
// longer has the position of a stream.
const historyLost = 286

// TestWatch_OfAStreamWhoseHistoryIsLost checks that a handle recovers after the oplog has lost the
// position of its stream. For a while no new stream can be opened. One case has errors that the
// server labels as resumable: then the driver itself resumes the stream.
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
			w := newDeaf(t, sharedSet(t), test.trim)
			w.deafen("errorCode", historyLost, "errorLabels", test.labels)
			w.change()
			w.hearAgain()
		})
	}
}

// deaf has a handle whose stream fails, and another handle that makes changes.
type deaf struct {
	*testing.T
	set   *mongotest.Set
	app   string
	a, b  *Store // b's stream fails
	trim  bool   // trim some changes before b's stream works again
	heard *revisions
	mode  func(any)
	want  []uint64
}

func newDeaf(t *testing.T, set *mongotest.Set, trim bool) *deaf {
	t.Helper()
	o := newDatabase(t, set)
	late := o
	late.URI += "&appName=" + o.Database + "-late"
	w := &deaf{T: t, set: set, app: o.Database + "-late", a: openTest(t, o), b: openTest(t, late), trim: trim}
	w.heard = watchRevisions(t, w.b)
	return w
}

// deafen makes reads of b's stream fail, and waits until one read has failed.
func (w *deaf) deafen(how ...any) {
	w.Helper()
	w.mode = failing(w, w.set, w.app, bson.A{"getMore", "aggregate"}, how...)
	await(w, "the stream's failure", func() bool { return w.b.health.trouble(streaming) != nil })
}

// change makes more changes than one batch of a cursor has.
func (w *deaf) change() {
	w.Helper()
	for range 150 {
		w.want = append(w.want, updateRule(w.T, w.a))
	}
	if w.trim {
		changes, err := w.a.Changes(w.Context(), storage.Change{}, 100)
		must(w, errors.Join(err, w.a.Trim(w.Context(), changes)))
		w.want = []uint64{0}
	}
}

// hearAgain makes b's stream work again. If nothing was trimmed, b must receive each change once
// and in order. Otherwise b must receive EverythingChanged. In both cases b must also receive later
// changes.
func (w *deaf) hearAgain() {
	w.Helper()
	w.mode("off")
	for range 2 {
		await(w, "the changes", func() bool { return len(w.heard.list()) >= len(w.want) })
		if got := w.heard.list(); !slices.Equal(got, w.want) {
			w.Fatalf("heard of the revisions %v, want %v", got, w.want)
		}
		w.want = append(w.want, updateRule(w.T, w.a))
	}
}

// putRule writes a rule of the organization "org". It is a function for Update.
func putRule(tx storage.Tx) error {
	return storage.Rules.Put(tx, "org", &engine.Rule{ID: "r"})
}

// updateRule writes a rule and returns the revision of the update.
func updateRule(t *testing.T, s *Store) uint64 {
	t.Helper()
	revision, err := s.Update(t.Context(), "org", putRule)
	must(t, err)
	return revision
}

// TestFreshFor_BehindALateStream makes the stream of a handle late by more than MaxAge. The beats of another
// handle keep coming, and prove nothing.
func TestFreshFor_BehindALateStream(t *testing.T) {
	t.Parallel()
	set, stream := mongotest.LateFor(t)
	o := newDatabase(t, set)
	openTest(t, o)
	late := o
	late.URI += "&appName=" + stream.App
	s := openTest(t, late)
	await(t, "freshness", func() bool { return s.FreshFor() <= storage.MaxAge })
	heard := watchRevisions(t, s)
	stream.By(5 * time.Second)
	updateRule(t, s)
	other := openTest(t, o)
	revision := updateRule(t, other)
	await(t, "staleness", func() bool { return s.FreshFor() > storage.MaxAge })
	await(t, "the change", func() bool { return slices.Contains(heard.list(), revision) })
	for range 20 { // events come all the time
		if age := s.FreshFor(); age <= storage.MaxAge {
			t.Fatalf("FreshFor of a handle whose stream is late by 5 s = %v", age)
		}
		time.Sleep(100 * time.Millisecond)
	}
	stream.By(0)
	await(t, "freshness", func() bool { return s.FreshFor() <= storage.MaxAge })
}
