package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestMigrate opens a database of this schema with writs of the next one. If older writs can't work beside the next
// schema, its writ is refused. Otherwise it migrates the database once it leads, and the older handle keeps working.
func TestMigrate(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s, w := openTest(t, o), storagetest.NewWriter()
	validator := func() bson.Raw {
		all, err := s.validators(t.Context(), replicasName)
		must(t, err)
		return all[replicasName]
	}
	before, next := validator(), o
	next.schema, next.oldest = schema+1, schema+1
	if _, err := Open(t.Context(), next); err == nil || !strings.Contains(err.Error(), "is older than this writ: its schema is 10, and this writ uses schema 11") {
		t.Errorf("Open of a writ that needs the next schema = %v", err)
	}
	next.oldest = schema
	is := openTest(t, next)
	must(t, is.keepOnce(t.Context()))
	if got := validator(); !bytes.Equal(got, before) {
		t.Errorf("a handle that does not lead has changed the validator to %s", got)
	}
	all, err := is.validators(t.Context())
	must(t, err)
	must(t, is.migrate(t.Context(), schema, all)) // as if it led
	if got := validator(); bytes.Equal(got, before) {
		t.Errorf("the validator after the migration is %s, want the next one", got)
	}
	must(t, s.keepOnce(t.Context()))
	must(t, s.renew(t.Context()))
	mustCommit(t, w, s, w.Record("org"))
	mustCommit(t, w, is, w.Record("org"))
	updateRule(t, s)
	openTest(t, o) // its schema is not less than the least one
	if got := validator(); bytes.Equal(got, before) {
		t.Error("an older handle has changed the validator back")
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
	whole, _, err := s.indexesOf(t.Context(), recordsName)
	must(t, err)
	return slices.Contains(whole, name)
}

// TestOpen_BuildsAnIndexInTheBackground opens handles on many rows without an index, while the server doesn't finish
// its build. Each must decide at once, and only what needs the index must wait for it.
func TestOpen_BuildsAnIndexInTheBackground(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
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
	hang := func(mode string) {
		must(t, sharedSet(t).Admin(context.Background(),
			doc("configureFailPoint", "hangAfterStartingIndexBuild", "mode", mode)))
	}
	hang("alwaysOn")
	t.Cleanup(func() { hang("off") })
	log := &logged{}
	o.Log = log.logger()
	first := openTest(t, o)
	await(t, "the build", func() bool {
		_, pending, err := first.indexesOf(t.Context(), recordsName)
		must(t, err)
		return slices.Equal(pending, []string{name})
	})
	second := openTest(t, o) // joins the build of the first
	r := w.Record("org")
	mustCommit(t, w, second, r)
	for _, b := range []*Store{first, second} {
		if text := b.Building(); !strings.Contains(text, "the index o_1_d_-1 of the collection records is being built") {
			t.Errorf("Building = %q", text)
		}
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
	}
	hang("off")
	for _, b := range []*Store{first, second} {
		await(t, "the index", func() bool { return b.Building() == "" })
		if _, err := b.Record(t.Context(), "org", r.DecisionID); err != nil {
			t.Errorf("Record with its index = %v", err)
		}
	}
	if !hasIndex(t, first, name) || !strings.Contains(log.String(), "an index was built") {
		t.Errorf("the index is there: %t, the log is %s", hasIndex(t, first, name), log)
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
