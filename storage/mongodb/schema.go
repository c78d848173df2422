package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The collections. The package documentation describes each.
const (
	documentsName = "documents"
	indexName     = "index"
	changesName   = "changes"
	countersName  = "counters"
	replicasName  = "replicas"
	recordsName   = "records"
	entriesName   = "entries"
	headsName     = "heads"
	quotasName    = "quotas"
	windowsName   = "windows"
)

// shape is how a collection must be: the BSON types of the fields that each
// document must have, or may have, and its indexes.
type shape struct {
	name      string
	must, may bson.D
	indexes   []mongo.IndexModel
}

func field(name, bsonType string) bson.E { return bson.E{Key: name, Value: bsonType} }

// shapes returns the shape of each collection. Each call makes new ones: the driver
// writes into the models of indexes that it gets.
func shapes() []shape {
	return []shape{
		{name: documentsName, must: bson.D{field("_id", "string"), field("o", "string"), field("r", "long"), field("v", "string")}},
		{name: indexName, must: bson.D{field("_id", "string"), field("d", "string")}},
		{name: changesName, must: bson.D{field("_id", "long"), field("c", "array")}},
		{name: countersName, must: bson.D{field("_id", "string"), field("n", "long")}},
		{name: replicasName, must: bson.D{
			field("_id", "long"), field("chain", "binData"), field("holder", "string"), field("dead", "string"), field("until", "date"),
			field("beat", "string"), field("heard", "long"), field("sessions", "array"),
		}},
		{
			name: recordsName, must: bson.D{field("_id", "binData")},
			may: bson.D{
				field("o", "string"), field("d", "binData"), field("k", "int"), field("a", "string"), field("p", "string"), field("t", "string"),
				field("at", "date"), field("ns", "int"), field("s", "object"), field("st", "object"), field("g", "binData"), field("l", "array"),
			},
			indexes: []mongo.IndexModel{rowsBy(descending("d")), rowsBy(ascending("a"), descending("d")), rowsBy(ascending("k"), descending("d"))},
		},
		{
			name: entriesName,
			must: bson.D{
				field("_id", "binData"), field("o", "string"), field("k", "string"), field("at", "binData"), field("b", "binData"),
			},
			indexes: []mongo.IndexModel{by(ascending("o"), ascending("k"), descending("at"))},
		},
		{name: headsName, must: bson.D{field("_id", "object"), field("h", "binData"), field("w", "string"), field("m", "array")}},
		{
			name:    quotasName,
			must:    bson.D{field("_id", "binData"), field("o", "string"), field("m", "int"), field("n", "long"), field("g", "array")},
			indexes: []mongo.IndexModel{by(ascending("m"), ascending("o")), by(ascending("g.h"))},
		},
		{
			name: windowsName,
			must: bson.D{
				field("_id", "binData"), field("u", "string"), field("p", "array"), field("until", "date"), field("last", "long"), field("at", "long"),
			},
			indexes: []mongo.IndexModel{{Keys: bson.D{ascending("until")}, Options: options.Index().SetExpireAfterSeconds(0)}},
		},
	}
}

func ascending(field string) bson.E  { return bson.E{Key: field, Value: 1} }
func descending(field string) bson.E { return bson.E{Key: field, Value: -1} }

func by(keys ...bson.E) mongo.IndexModel { return mongo.IndexModel{Keys: bson.D(keys)} }

// rowsBy is an index of an organization's rows without removed ones.
func rowsBy(keys ...bson.E) mongo.IndexModel {
	index := by(append([]bson.E{ascending("o")}, keys...)...)
	index.Options = options.Index().SetPartialFilterExpression(bson.D{{Key: "o", Value: bson.D{{Key: "$exists", Value: true}}}})
	return index
}

func (s *shape) validator() bson.D {
	required, properties := bson.A{}, bson.D{}
	for i, f := range append(append(bson.D{}, s.must...), s.may...) {
		if i < len(s.must) {
			required = append(required, f.Key)
		}
		properties = append(properties, bson.E{Key: f.Key, Value: bson.D{{Key: "bsonType", Value: f.Value}}})
	}
	return bson.D{{Key: "$jsonSchema", Value: bson.D{
		{Key: "bsonType", Value: "object"}, {Key: "required", Value: required}, {Key: "properties", Value: properties},
	}}}
}

// makeCollections makes missing collections and refuses different ones.
func (s *Store) makeCollections(ctx context.Context) error {
	for _, shape := range shapes() {
		if err := s.makeCollection(ctx, &shape); err != nil {
			return err
		}
	}
	_, err := s.db.Collection(countersName).UpdateOne(ctx, bson.D{{Key: "_id", Value: revisionCounter}},
		bson.D{{Key: "$setOnInsert", Value: bson.D{{Key: "n", Value: int64(0)}}}}, options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		err = nil // another handle was faster
	}
	return err
}

const (
	namespaceExists       = 48
	indexOptionsConflict  = 85
	indexKeySpecsConflict = 86
)

func (s *Store) makeCollection(ctx context.Context, shape *shape) error {
	validator, err := bson.Marshal(shape.validator())
	if err != nil {
		return err
	}
	err = s.db.CreateCollection(ctx, shape.name, options.CreateCollection().SetValidator(validator))
	if hasCode(err, namespaceExists) {
		err = s.checkValidator(ctx, shape.name, validator)
	}
	if err != nil || len(shape.indexes) == 0 {
		return err
	}
	_, err = s.db.Collection(shape.name).Indexes().CreateMany(ctx, shape.indexes)
	if hasCode(err, indexOptionsConflict) || hasCode(err, indexKeySpecsConflict) {
		return fmt.Errorf("an index of the collection %s.%s is not as writ makes it: drop that index and start again, which makes it: %w",
			s.db.Name(), shape.name, err)
	}
	return err
}

func (s *Store) checkValidator(ctx context.Context, name string, want bson.Raw) error {
	specs, err := s.db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: name}})
	if err != nil {
		return err
	}
	for _, spec := range specs {
		if got, ok := spec.Options.Lookup("validator").DocumentOK(); !ok || !bytes.Equal(got, want) {
			return fmt.Errorf("the collection %s.%s has not the validator that writ gives it: give writ a database of its own, "+
				"or set the validator with collMod to %s", s.db.Name(), name, want)
		}
	}
	return nil
}

func hasCode(err error, code int) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(code)
}
