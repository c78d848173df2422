package mongodb

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestWatch_OfATruncatedOplog checks a handle whose stream position was lost from the oplog. The
// handle must hear that everything may have changed, and receive later changes. The test blocks the handle's stream and overwrites the whole
// oplog, which has the smallest size that a server allows.
func TestWatch_OfATruncatedOplog(t *testing.T) {
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("SKIPPED but for make soak: writes more than 1 GB")
	}
	set := mongotest.For(t, 1)
	must(t, set.Admin(t.Context(), doc("replSetResizeOplog", 1, "size", float64(990))))
	w := newDeaf(t, set, true)
	lost := beginStream(t, w.a)
	w.deafen("errorCode", 8000)
	w.change()
	overwrite(t, w.a, lost)
	w.hearAgain()
}

// beginStream returns the current position of a stream of changes.
func beginStream(t *testing.T, s *Store) bson.Raw {
	t.Helper()
	stream, err := s.db.Watch(t.Context(), mongo.Pipeline{})
	must(t, err)
	defer stream.Close(t.Context())
	return stream.ResumeToken()
}

// overwrite writes until the oplog no longer has a position of a stream.
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
			must(t, stream.Close(t.Context()))
			continue
		}
		var e mongo.ServerError
		if !errors.As(err, &e) || !e.HasErrorCode(historyLost) {
			t.Fatalf("resuming a stream = %v, want ChangeStreamHistoryLost", err)
		}
		t.Logf("the oplog was written over after some %d MB", mb)
		must(t, ballast.Drop(t.Context()))
		return
	}
}
