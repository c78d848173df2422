package mongodb

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"

	"writ.example/writ/storage"
)

// Indexes of collections that have rows are built in the background. Meanwhile the operations that need an
// index of the collection return an error, and all others go on.

const (
	// fewRows is the number of rows up to which Open waits for an index.
	fewRows = 10_000
	// buildPatience is how long a build may take.
	buildPatience = 7 * 24 * time.Hour
	// progressEvery is how often a build logs its progress, and how long it rests after an error.
	progressEvery = 10 * time.Second
)

// builds are the indexes that are being built.
type builds struct {
	mu  sync.Mutex
	all []*building
}

type building struct {
	collection string
	index      mongo.IndexModel
	began      time.Time
	progress   string // what the server says; empty if it says nothing
}

func (b *building) String() string {
	text := fmt.Sprintf("the index %s of the collection %s is being built, for %v", nameOf(b.index), b.collection,
		time.Since(b.began).Round(time.Second))
	if b.progress != "" {
		text += ": " + b.progress
	}
	return text
}

// indexed returns an error while an index of a collection is being built.
func (s *database) indexed(collection string) error {
	s.builds.mu.Lock()
	defer s.builds.mu.Unlock()
	for _, b := range s.builds.all {
		if b.collection == collection {
			return fmt.Errorf("%w: %v", storage.ErrUnavailable, b)
		}
	}
	return nil
}

// Building says which indexes are being built. It returns an empty text if none is.
func (s *Store) Building() string {
	s.builds.mu.Lock()
	defer s.builds.mu.Unlock()
	all := make([]string, len(s.builds.all))
	for i, b := range s.builds.all {
		all[i] = b.String()
	}
	return strings.Join(all, "\n")
}

// wants adds an index to those that are being built, unless it is one of them.
func (d *builds) wants(collection string, index mongo.IndexModel) (b *building, isNew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range d.all {
		if b.collection == collection && nameOf(b.index) == nameOf(index) {
			return b, false
		}
	}
	b = &building{collection: collection, index: index, began: time.Now()}
	d.all = append(d.all, b)
	return b, true
}

func (d *builds) remove(b *building) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.DeleteFunc(d.all, func(c *building) bool { return c == b })
}

// build builds an index until it is there or ctx ends. The server joins the builds of several handles.
func (s *Store) build(ctx context.Context, b *building) {
	s.health.log.Warn("an index is missing and is built in the background", "collection", b.collection,
		"index", nameOf(b.index))
	done := make(chan error, 1)
	for {
		long, cancel := context.WithTimeout(ctx, buildPatience)
		go func() {
			_, err := s.db.Collection(b.collection).Indexes().CreateOne(long, b.index)
			done <- err
		}()
		err := s.awaitBuild(ctx, b, done)
		if cancel(); ctx.Err() != nil {
			return
		}
		if s.health.report(indexing, err); err == nil {
			s.builds.remove(b)
			s.health.log.Info("an index was built", "collection", b.collection, "index", nameOf(b.index),
				"took", time.Since(b.began).Round(time.Millisecond))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(progressEvery):
		}
	}
}

// awaitBuild asks for the progress of a build every second until it is done, and logs it regularly.
func (s *Store) awaitBuild(ctx context.Context, b *building, done <-chan error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var logged time.Time
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		progress := s.progressOf(ctx, b.collection)
		s.builds.mu.Lock()
		b.progress = cmp.Or(progress, b.progress)
		text := b.String()
		s.builds.mu.Unlock()
		if time.Since(logged) >= progressEvery {
			logged = time.Now()
			s.health.log.Info(text)
		}
	}
}

// progressOf returns the server's account of the builds of a collection's indexes. It tells it only to a
// user with the privilege inprog.
func (s *Store) progressOf(ctx context.Context, collection string) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	admin := s.client.Database("admin", options.Database().SetReadConcern(readconcern.Local()))
	cursor, err := admin.Aggregate(ctx, mongo.Pipeline{
		doc("$currentOp", doc("allUsers", true, "idleConnections", false)),
		doc("$match", doc("ns", s.db.Name()+"."+collection, "progress", doc("$exists", true),
			"msg", bson.Regex{Pattern: "^Index Build"})),
	})
	var rows []struct {
		Progress struct {
			Done  int64 `bson:"done"`
			Total int64 `bson:"total"`
		} `bson:"progress"`
	}
	if err == nil {
		err = cursor.All(ctx, &rows)
	}
	if err != nil || len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d rows", rows[0].Progress.Done, rows[0].Progress.Total)
}

// indexesOf returns the names of the indexes of a collection, those that are whole and those that are being built.
func (s *Store) indexesOf(ctx context.Context, collection string) (whole, pending []string, err error) {
	cursor, err := s.db.RunCommandCursor(ctx, doc("listIndexes", collection, "includeBuildUUIDs", true))
	if err != nil {
		return nil, nil, err
	}
	var rows []struct {
		Name string `bson:"name"`
		Spec struct {
			Name string `bson:"name"`
		} `bson:"spec"` // of an index that is being built
	}
	err = cursor.All(ctx, &rows)
	for _, row := range rows {
		if row.Name != "" {
			whole = append(whole, row.Name)
		} else {
			pending = append(pending, row.Spec.Name)
		}
	}
	return whole, pending, err
}

// makeIndexes compares the whole indexes of a collection that was there before. It makes those that are missing:
// at once in a collection with few rows, otherwise in the background. It waits for no build of another handle.
func (s *Store) makeIndexes(ctx context.Context, shape *shape) error {
	c := s.db.Collection(shape.name)
	whole, pending, err := s.indexesOf(ctx, shape.name)
	if err != nil {
		return err
	}
	rows, err := c.EstimatedDocumentCount(ctx)
	if err != nil {
		return err
	}
	var now []mongo.IndexModel
	for _, index := range shape.indexes {
		name := nameOf(index)
		if slices.Contains(whole, name) || rows <= fewRows && !slices.Contains(pending, name) {
			now = append(now, index)
		} else {
			s.builds.wants(shape.name, index)
		}
	}
	if len(now) == 0 {
		return nil
	}
	_, err = c.Indexes().CreateMany(ctx, now)
	return err
}
