package mongotest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Backup has the documents of a database.
type Backup struct {
	set      *Set
	database string
	rows     map[string][]bson.Raw
}

// BackUp reads all documents of a database.
func (s *Set) BackUp(ctx context.Context, database string) (*Backup, error) {
	b := &Backup{set: s, database: database, rows: make(map[string][]bson.Raw)}
	return b, b.with(ctx, func(ctx context.Context, db *mongo.Database) error {
		names, err := db.ListCollectionNames(ctx, bson.D{})
		if err != nil {
			return err
		}
		for _, name := range names {
			cursor, err := db.Collection(name).Find(ctx, bson.D{})
			if err != nil {
				return err
			}
			var rows []bson.Raw
			if err := cursor.All(ctx, &rows); err != nil {
				return err
			}
			b.rows[name] = rows
		}
		return nil
	})
}

// Restore drops the collections with these names, or all without a name, makes them again without their
// indexes and inserts what they had. A drop waits for the transactions that use a collection.
func (b *Backup) Restore(ctx context.Context, names ...string) error {
	return b.with(ctx, func(ctx context.Context, db *mongo.Database) error {
		if len(names) == 0 {
			names = slices.Collect(maps.Keys(b.rows))
		}
		slices.Sort(names)
		// A replica that has not noticed the restore adds no row once heads are gone: so they go first.
		if i := slices.Index(names, "heads"); i >= 0 {
			names = append(slices.Delete(names, i, i+1), "heads")
		}
		for _, name := range slices.Backward(names) {
			specs, err := db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: name}})
			if err != nil || len(specs) != 1 {
				return fmt.Errorf("%d collections %s: %w", len(specs), name, err)
			}
			validator := specs[0].Options.Lookup("validator").Document()
			if err := db.Collection(name).Drop(ctx); err != nil {
				return err
			}
			if err := db.CreateCollection(ctx, name, options.CreateCollection().SetValidator(validator)); err != nil {
				return err
			}
		}
		for _, name := range names {
			if len(b.rows[name]) == 0 {
				continue
			}
			if _, err := db.Collection(name).InsertMany(ctx, b.rows[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (b *Backup) with(ctx context.Context, f func(context.Context, *mongo.Database) error) error {
	client, err := mongo.Connect(options.Client().ApplyURI(b.set.URI()).SetServerSelectionTimeout(patience))
	if err != nil {
		return err
	}
	err = f(ctx, client.Database(b.database))
	return errors.Join(err, client.Disconnect(context.WithoutCancel(ctx)))
}
