package mongodb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
)

// interrupted is an error of a stream that can be opened again where it ended.
const interrupted = 11601

// TestWatch_OfABrokenStream checks that a handle recovers after its stream has failed. For a while no new stream
// can be opened. If the oplog still has the position of the stream, the handle hears each change once and in
// order. Otherwise it hears that everything may have changed. One case has errors that the server labels as
// resumable: then the driver itself resumes the stream.
func TestWatch_OfABrokenStream(t *testing.T) {
	for name, test := range map[string]struct {
		code   int
		labels bson.A
	}{
		"and is resumed":                               {interrupted, bson.A{}},
		"and its history is lost":                      {historyLost, bson.A{}},
		"and its history is lost while it was resumed": {historyLost, bson.A{"ResumableChangeStreamError"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeaf(t, sharedSet(t), test.code == historyLost)
			w.deafen("errorCode", test.code, "errorLabels", test.labels)
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
	lost  bool   // the changes are lost for b
	heard *revisions
	mode  func(any)
	want  []uint64
}

func newDeaf(t *testing.T, set *mongotest.Set, lost bool) *deaf {
	t.Helper()
	o := newDatabase(t, set)
	late := o
	late.URI += "&appName=" + o.Database + "-late"
	w := &deaf{T: t, set: set, app: o.Database + "-late", a: openTest(t, o), b: openTest(t, late), lost: lost}
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
	if w.lost {
		w.want = []uint64{0}
	}
}

// hearAgain makes b's stream work again. b must receive each change once and in order, or EverythingChanged if
// they are lost. It must also receive later changes.
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
	await(t, "word of it", func() bool { return s.Late() != nil })
	if text := s.Late().Error(); !strings.Contains(text, "periodicNoopIntervalSecs") {
		t.Errorf("Late = %s, want what to set", text)
	}
	stream.By(0)
	await(t, "freshness", func() bool { return s.FreshFor() <= storage.MaxAge })
	await(t, "the end of the trouble", func() bool { return s.Late() == nil })
}
