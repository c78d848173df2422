package mongodb

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"writ/storage/mongodb/mongotest"
)

// TestWatch_OfATruncatedOplog: a handle can't read its stream while the oplog, at the
// smallest size that a server allows, is written over from end to end. It then hears of
// each change once and in order, or of EverythingChanged where changes were trimmed, and
// of what follows.
func TestWatch_OfATruncatedOplog(t *testing.T) {
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("SKIPPED but for make soak: writes more than 1 GB")
	}
	set := mongotest.For(t, 1)
	if err := set.Admin(t.Context(), doc("replSetResizeOplog", 1, "size", float64(990))); err != nil {
		t.Fatal(err)
	}
	o := newDatabase(t, set)
	late := o
	late.URI += "&appName=" + o.Database + "-late"
	a, b := openTest(t, o), openTest(t, late)
	lost := beginStream(t, a)
	for name, trim := range map[string]bool{"and nothing was trimmed": false, "and changes were": true} {
		t.Run(name, func(t *testing.T) {
			heard := watchRevisions(t, b)
			mend := deafen(t, set, o.Database+"-late")
			waitLong(t, "the stream to fail", func() bool { return b.health.trouble(streaming) != nil })
			var want []uint64
			for range 150 {
				want = append(want, updateRule(t, a))
			}
			overwrite(t, a, lost)
			lost = beginStream(t, a)
			if trim {
				if err := a.Trim(t.Context(), want[100]); err != nil {
					t.Fatal(err)
				}
				want = []uint64{0}
			}
			mend()
			waitLong(t, "all that was missed", func() bool { return len(heard.list()) >= len(want) })
			want = append(want, updateRule(t, a))
			waitLong(t, "what follows", func() bool { return len(heard.list()) >= len(want) })
			if got := heard.list(); !slices.Equal(got, want) {
				t.Errorf("heard of the revisions %v, want %v", got, want)
			}
		})
	}
}

// deafen has all reads of streams by an application fail until mend is called.
func deafen(t *testing.T, set *mongotest.Set, app string) (mend func()) {
	t.Helper()
	fail := func(mode string) {
		t.Helper()
		if err := set.Admin(context.Background(), doc(
			"configureFailPoint", "failCommand", "mode", mode,
			"data", doc(
				"failCommands", bson.A{"getMore", "aggregate"}, "errorCode", 8000, "appName", app,
			),
		)); err != nil {
			t.Fatal(err)
		}
	}
	fail("alwaysOn")
	t.Cleanup(func() { fail("off") })
	return func() { fail("off") }
}

// beginStream returns where a stream of changes is now.
func beginStream(t *testing.T, s *Store) bson.Raw {
	t.Helper()
	stream, err := s.db.Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close(t.Context())
	return stream.ResumeToken()
}

// overwrite writes until the server has lost the place of a stream.
func overwrite(t *testing.T, s *Store, lost bson.Raw) {
	t.Helper()
	ballast := s.client.Database("ballast").Collection("rows", options.Collection().SetWriteConcern(writeconcern.W1()))
	row := doc("b", bytes.Repeat([]byte{'x'}, 1<<20))
	for mb := 0; ; mb += 32 {
		if mb > 4096 {
			t.Fatal("the oplog still has what is 4 GB old")
		}
		rows := make([]any, 32)
		for i := range rows {
			rows[i] = row
		}
		if _, err := ballast.InsertMany(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
		stream, err := s.db.Watch(t.Context(), mongo.Pipeline{}, options.ChangeStream().SetResumeAfter(lost))
		if err == nil {
			if err := stream.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var e mongo.ServerError
		if !errors.As(err, &e) || !e.HasErrorCode(historyLost) {
			t.Fatalf("resuming a stream = %v, want ChangeStreamHistoryLost", err)
		}
		t.Logf("the oplog was written over after some %d MB", mb)
		if err := ballast.Drop(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
}

func waitLong(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no sign of %s within a minute", what)
		}
	}
}
