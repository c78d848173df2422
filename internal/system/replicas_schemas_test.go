package system

import (
	"context"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// ofNextSchema builds the binary with the linker setting that makes it one of the next MongoDB schema. oldest is the
// oldest schema that it uses. There is no other binary to build: writ has no release yet.
func ofNextSchema(t *testing.T, oldest string) string {
	t.Helper()
	writ, err := build("schema-"+oldest, "build", "-ldflags=-w -X=writ.example/writ/storage/mongodb.linked="+oldest)
	must(t, err)
	return writ
}

// twoSchemas runs binaries of two MongoDB schemas on one database, under load. A binary that needs the next schema is
// refused, and the replicas that run are not disturbed. If older ones can work beside the next schema, they keep
// deciding while its replica leads and migrates the database, and can be started. Once the database says that they
// can't, they end and are refused, and the newer replica keeps deciding.
func twoSchemas(t *testing.T, c *cluster) {
	c.mortal = true
	needsNext, takesBoth := ofNextSchema(t, "11"), ofNextSchema(t, "10") // before the load, which has the processors
	c.start(t, 2)
	l := newReplicaLoad(c)
	l.flip = newFlip(t, c, "bot")
	stop := l.start(t, 8)
	l.await(t, between)

	older := c.program
	refused := func(what, want string) {
		t.Helper()
		p, ready := c.begin(t)
		if <-ready {
			t.Fatalf("%s serves", what)
		}
		<-p.done
		if p.cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s = %v, want exit code %d and %q\n%s", what, p.cmd.ProcessState, exitFailed, want, p.stderr)
		}
	}
	c.program = needsNext
	refused("a replica that needs schema 11", "is older than this writ: its schema is 10, and this writ uses schema 11")

	l.serve(c.urls()[1:])
	c.replicas[0].stop(t)
	c.program = takesBoth
	next := c.launch(t) // with the first slot, so that it leads
	c.replicas[0] = next
	l.serve(c.urls())
	client, err := mongo.Connect(options.Client().ApplyURI(c.set.URI()))
	must(t, err)
	defer func() { must(t, client.Disconnect(context.WithoutCancel(t.Context()))) }()
	db := client.Database(c.database)
	format := bson.D{{Key: "_id", Value: "format"}}
	waitFor(t, "the migration to schema 11", func() bool {
		var counter struct{ N, Least int64 }
		must(t, db.Collection("counters").FindOne(t.Context(), format).Decode(&counter))
		specs, err := db.ListCollectionSpecifications(t.Context(), bson.D{{Key: "name", Value: "replicas"}})
		must(t, err)
		return counter.N == 11 && counter.Least == 10 && strings.Contains(specs[0].Options.String(), `"next"`)
	})
	l.await(t, between)
	c.program = older
	c.replicas = append(c.replicas, c.launch(t))
	l.serve(c.urls())
	l.await(t, between)

	l.serve([]string{next.url})
	_, err = db.Collection("counters").UpdateOne(t.Context(), format, bson.D{{Key: "$set", Value: bson.D{{Key: "least", Value: int64(11)}}}})
	must(t, err)
	const newer = "is newer than this writ: its schema is 11, which a writ of schema 11 or later uses, and this writ is of schema 10: start a newer writ"
	for _, p := range c.replicas[1:] {
		<-p.done
		if p.cmd.ProcessState.Success() || !strings.Contains(p.stderr.String(), newer) {
			t.Errorf("an old replica = %v, want that it ends with %q\n%s", p.cmd.ProcessState, newer, p.stderr)
		}
	}
	c.replicas = c.replicas[:1]
	refused("an old replica", newer)
	if code, said := run(t, "verify", "--chain", "--store=mongodb", "--mongodb-uri", c.set.URI(), "--mongodb-database", c.database, "--data", string(c.data)); code == exitOK || !strings.Contains(said, newer) {
		t.Errorf("an old writ verify = exit code %d, %s, want %q", code, said, newer)
	}
	l.await(t, between)
	stop()
	l.audit(t)
	l.flip.report()
	_, err = db.Collection("counters").UpdateOne(t.Context(), format, bson.D{{Key: "$set", Value: bson.D{{Key: "least", Value: int64(10)}}}})
	must(t, err) // so that the released binary reads it
	c.proved(t, len(l.sent), 3)
	rows := history(t, next.url, c.token)
	c.stop(t)
	auditAnswers(t, c.data, l.answers, rows)
}
