package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// keepEvery is how often a handle looks whether the database still has its collections and indexes.
const keepEvery = 20 * time.Second

// keep looks after the collections regularly until ctx ends.
func (s *Store) keep(ctx context.Context) {
	for {
		if s.available() == nil {
			bounded, cancel := context.WithTimeout(ctx, s.timeout)
			err := s.keepOnce(bounded)
			if cancel(); ctx.Err() == nil {
				s.health.report(keeping, err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(keepEvery):
		}
	}
}

// keepOnce ends this handle if a collection was dropped, and makes an index again that was. The leader
// migrates a database of an older schema and removes slots that are free for long. In a database of a newer
// schema, only collections are looked for.
func (s *Store) keepOnce(ctx context.Context) error {
	got, err := s.validators(ctx)
	if err != nil {
		return err
	}
	for _, shape := range shapes(s.schema) {
		if _, ok := got[shape.name]; !ok {
			return s.abandon(restored("the collection %s was dropped", shape.name))
		}
	}
	var of counterRow
	err = s.db.Collection(countersName).FindOne(ctx, doc("_id", schemaCounter)).Decode(&of)
	if err != nil || of.N > s.schema {
		return err
	}
	for _, shape := range shapes(s.schema) {
		if err := s.keepIndexes(ctx, &shape); err != nil {
			return err
		}
	}
	if !s.Leads() {
		return nil
	}
	if err := s.migrate(ctx, of.N, got); err != nil {
		return err
	}
	return s.removeSlots(ctx)
}

// keepIndexes begins to build the indexes that a collection does not have. It joins the builds of other handles.
func (s *Store) keepIndexes(ctx context.Context, shape *shape) error {
	if len(shape.indexes) == 0 {
		return nil
	}
	whole, _, err := s.indexesOf(ctx, shape.name)
	if err != nil {
		return err
	}
	for _, index := range shape.indexes {
		if slices.Contains(whole, nameOf(index)) {
			continue
		}
		if b, isNew := s.builds.wants(shape.name, index); isNew {
			s.done.Go(func() { s.build(s.background, b) })
		}
	}
	return nil
}

// nameOf returns the name that the driver gives an index.
func nameOf(index mongo.IndexModel) string {
	var parts []string
	for _, e := range index.Keys.(bson.D) {
		parts = append(parts, fmt.Sprintf("%s_%v", e.Key, e.Value))
	}
	return strings.Join(parts, "_")
}

// migrate gives the collections the validators of this writ's schema. Writs of the older schema keep working:
// the number of the schema is written first, and for a writ that is older than the number the collections are
// not compared.
func (s *Store) migrate(ctx context.Context, from int64, validators map[string]bson.Raw) error {
	if from < s.schema {
		s.health.log.Info("the database is migrated", "from_schema", from, "to_schema", s.schema)
		_, err := s.db.Collection(countersName).UpdateOne(ctx, doc("_id", schemaCounter, counterN, from),
			set(counterN, s.schema))
		if err != nil {
			return err
		}
	}
	for _, shape := range shapes(s.schema) {
		if want := shape.validator(); !bytes.Equal(validators[shape.name], want) {
			err := s.db.RunCommand(ctx, doc("collMod", shape.name, "validator", want)).Err()
			if hasCode(err, unauthorized) {
				err = errors.Join(errors.New("to migrate the database, the MongoDB user of the replica that leads "+
					"needs the privilege collMod, which the role dbAdmin has"), err)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
