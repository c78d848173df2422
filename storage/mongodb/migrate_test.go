package mongodb

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestUpgrade opens a database of schema 7, in which an unsigned change waits. The counters of organizations must
// begin after all earlier revisions, and the change must be there. A writ of schema 7 must be refused by name. One
// that still runs must end, and can commit no update before.
func TestUpgrade(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s := openTest(t, o)
	updateRule(t, s)
	s.silence(t)
	counters, changes := s.db.Collection(countersName), s.db.Collection(changesName)
	for _, shape := range shapes(7) {
		must(t, s.db.RunCommand(t.Context(), doc("collMod", shape.name, "validator", doc())).Err())
	}
	_, err := changes.DeleteMany(t.Context(), doc())
	must(t, err)
	waits := storage.Change{Kind: storage.RuleKind, Org: "org", ID: "r", Digest: [32]byte{1}}
	old := newChangeRow("org", 41, []storage.Change{waits})
	for _, row := range []bson.D{doc("_id", int64(41), "u", old.ID, "c", old.Changes), doc("_id", int64(42), "u", old.ID, "c", bson.A{})} {
		_, err := changes.InsertOne(t.Context(), row)
		must(t, err)
	}
	for id, fields := range map[string]bson.D{
		revisionCounter: doc(counterN, int64(42)), schemaCounter: doc(counterN, int64(7), counterLeast, int64(7)),
	} {
		_, err := counters.UpdateOne(t.Context(), doc("_id", id), doc("$set", fields))
		must(t, err)
	}
	_, err = counters.DeleteOne(t.Context(), doc("_id", orderOf("org")))
	must(t, err)
	_, err = s.db.Collection(documentsName).UpdateMany(t.Context(), doc("o", "org"), set("r", int64(41)))
	must(t, err)
	_, err = s.slots().UpdateMany(t.Context(), doc(), doc("$set", doc("heard", int64(42), "row", old.ID), "$unset", doc(slotTold, "", slotLast, "")))
	must(t, err)
	for _, shape := range shapes(7) {
		must(t, s.db.RunCommand(t.Context(), doc("collMod", shape.name, "validator", shape.validator())).Err())
	}

	if _, err := OpenSnapshot(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has schema 7, and its changes") {
		t.Errorf("OpenSnapshot of schema 7 = %v", err)
	}
	is := openTest(t, o)
	waits.Revision = 41
	if got, err := is.Changes(t.Context(), storage.Change{}, 9); err != nil || len(got) != 1 || got[0] != waits {
		t.Errorf("Changes = %+v, %v, want %+v", got, err, waits)
	}
	if _, err := changes.InsertOne(t.Context(), doc("_id", int64(43), "u", old.ID, "c", bson.A{})); err == nil {
		t.Error("a row of changes of schema 7 was stored")
	}
	if revision := updateRule(t, is); revision != 43 {
		t.Errorf("the first revision is %d, want 43", revision)
	}
	must(t, is.Trim(t.Context(), []storage.Change{waits}))
	if got, err := is.Changes(t.Context(), storage.Change{}, 9); err != nil || len(got) != 1 || got[0].Revision != 43 {
		t.Errorf("Changes after Trim = %+v, %v, want that of revision 43", got, err)
	}
	_, err = s.slots().UpdateOne(t.Context(), doc("_id", s.slot.id), set(slotHolder, "old", slotDead, "", slotBeat, "old/1"))
	must(t, err)
	if a := is.others(t.Context(), *is.watchers.own.Load()); a.err != nil || a.live != 1 {
		t.Errorf("%d replicas have not heard, %v, want the one of schema 7", a.live, a.err)
	}
	o.schema = 7
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "which a writ of schema 8 or later uses, and this writ is of schema 7") {
		t.Errorf("Open of a writ of schema 7 = %v", err)
	}
}

// TestRenew_OfAnOldSchema checks that a running replica ends if the database was migrated to a schema that it
// does not know.
func TestRenew_OfAnOldSchema(t *testing.T) {
	s, lost := openMortal(t, newDatabase(t, sharedSet(t)))
	_, err := s.db.Collection(countersName).UpdateOne(t.Context(), doc("_id", schemaCounter), set(counterLeast, int64(schema+1)))
	must(t, err)
	select {
	case err := <-lost:
		if !strings.Contains(err.Error(), "start a newer writ") {
			t.Errorf("lost = %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("not lost within a minute")
	}
}

func hasIndex(t *testing.T, s *Store, name string) bool {
	t.Helper()
	specs, err := s.records().Indexes().ListSpecifications(t.Context())
	must(t, err)
	return slices.ContainsFunc(specs, func(spec mongo.IndexSpecification) bool { return spec.Name == name })
}

// TestOpen_BuildsAnIndexInTheBackground opens a handle on many rows without an index. It must decide at once,
// and only what needs the index must wait for it.
func TestOpen_BuildsAnIndexInTheBackground(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	app := o.Database + "-builds"
	s, w := openTest(t, o), storagetest.NewWriter()
	mustCommit(t, w, s, w.Record("org"))
	const name = "o_1_d_-1"
	ballast := make([]any, fewRows+1)
	for i := range ballast {
		ballast[i] = doc("_id", []byte(fmt.Sprint("ballast", i)))
	}
	_, err := s.records().InsertMany(t.Context(), ballast)
	must(t, err)
	must(t, s.records().Indexes().DropOne(t.Context(), name))
	failing(t, sharedSet(t), app, bson.A{"createIndexes"}, "blockConnection", true, "blockTimeMS", 4000)
	log := &logged{}
	o.Log, o.URI = log.logger(), o.URI+"&appName="+app
	b := openTest(t, o)
	if text := b.Building(); !strings.Contains(text, "the index o_1_d_-1 of the collection records is being built") {
		t.Errorf("Building = %q", text)
	}
	r := w.Record("org")
	mustCommit(t, w, b, r)
	if got, err := b.Decided(t.Context(), "org", r.IntentID, ""); err != nil || got.DecisionID != r.DecisionID {
		t.Errorf("Decided = %v, %v", got, err)
	}
	must(t, b.Healthy(t.Context()))
	_, _, listed := b.ListRecords(t.Context(), "org", storage.Filter{}, storage.Page{Limit: 1})
	_, read := b.Record(t.Context(), "org", r.DecisionID)
	for name, err := range map[string]error{"ListRecords": listed, "Record": read} {
		if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "is being built") {
			t.Errorf("%s without its index = %v, want that it is being built", name, err)
		}
	}
	await(t, "the index", func() bool { return b.Building() == "" })
	if !hasIndex(t, b, name) || !strings.Contains(log.String(), "an index was built") {
		t.Errorf("the index is there: %t, the log is %s", hasIndex(t, b, name), log)
	}
	if _, err := b.Record(t.Context(), "org", r.DecisionID); err != nil {
		t.Errorf("Record with its index = %v", err)
	}
}

// TestKeep_NoticesWhatWasDropped drops a collection and an index.
func TestKeep_NoticesWhatWasDropped(t *testing.T) {
	s, lost := openMortal(t, newDatabase(t, sharedSet(t)))
	must(t, s.keepOnce(t.Context()))
	const name = "o_1_a_1_d_-1"
	must(t, s.records().Indexes().DropOne(t.Context(), name))
	must(t, s.keepOnce(t.Context()))
	await(t, "the index", func() bool { return hasIndex(t, s, name) && s.indexed(recordsName) == nil })
	must(t, s.records().Drop(t.Context()))
	if err := s.keepOnce(t.Context()); !errors.Is(err, errRestored) || !strings.Contains(err.Error(), "records was dropped") {
		t.Errorf("keepOnce without a collection = %v, want %v", err, errRestored)
	}
	if err := <-lost; !errors.Is(err, errRestored) {
		t.Errorf("lost = %v", err)
	}
}

// TestShareKeys checks which replicas may share a database.
func TestShareKeys(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	log := &logged{}
	o.Log = log.logger()
	key := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	a, b := openTest(t, o), openTest(t, o)
	must(t, a.ShareKeys(t.Context(), Replica{"a", "one"}, key(1), [][]byte{key(2)}))
	for _, test := range []struct {
		secret byte
		scrub  [][]byte
		want   string
		warned bool
	}{
		{1, [][]byte{key(2)}, "", false},
		{1, [][]byte{key(3), key(2)}, "", false}, // a new one in front of the others
		{1, [][]byte{key(3)}, "other scrub keys", false},
		{4, [][]byte{key(3)}, "other scrub keys", false},
		{4, [][]byte{key(2)}, "", true},
	} {
		err := b.ShareKeys(t.Context(), Replica{"b", "two"}, key(test.secret), test.scrub)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("ShareKeys(%d, %x) = %v, want %q", test.secret, test.scrub, err, test.want)
		}
		if warned := strings.Contains(log.String(), "another operator secret"); warned != test.warned {
			t.Errorf("ShareKeys(%d, %x) has logged %q", test.secret, test.scrub, log)
		}
	}
	replicas, err := b.Replicas(t.Context())
	must(t, err)
	if want := []Replica{{"a", "one"}, {"b", "two"}}; !slices.Equal(replicas, want) {
		t.Errorf("Replicas() = %v, want %v", replicas, want)
	}
	giveUpNow(t, b, a)
	must(t, b.ShareKeys(t.Context(), Replica{"b", "two"}, key(7), [][]byte{key(8)})) // who was given up does not count
}
