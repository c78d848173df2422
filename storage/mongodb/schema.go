package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ/storage"
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

// A section below a collection: its name, the fields that queries name, which have no
// meaning in other collections, and the type of its documents. A row of records is in
// row.go.

// documents
const documentValue = "v"

// documentRow is a document.
type documentRow struct {
	Key      string `bson:"_id"`
	Org      string `bson:"o"`
	Revision int64  `bson:"r"`
	Value    string `bson:"v"`
}

// index
const indexDocument = "d"

// indexRow is an entry of an index, with its document if that was looked up.
type indexRow struct {
	Key       string        `bson:"_id"`
	Document  string        `bson:"d"`
	Documents []documentRow `bson:"docs"`
}

// changes

// changeRow lists the changes of an update. Every revision has one, even an update
// without changes to tell, so that a gap means a missing row.
type changeRow struct {
	Revision int64    `bson:"_id"`
	Changes  []change `bson:"c"`
}

// change is a storage.Change. Its revision is the row's.
type change struct {
	Revision uint64       `bson:"-"`
	Kind     storage.Kind `bson:"k"`
	Org      string       `bson:"o"`
	ID       string       `bson:"i"`
	Alias    string       `bson:"l,omitempty"`
	Digest   [32]byte     `bson:"d"`
	Actor    string       `bson:"a,omitempty"`
}

// counters
const counterN = "n"

type counterRow struct {
	N int64 `bson:"n"`
}

// replicas
const (
	slotHolder   = "holder"
	slotDead     = "dead"
	slotUntil    = "until"
	slotBeat     = "beat"
	slotHeard    = "heard"
	slotSessions = "sessions"
)

// slotRow is the slot of a live handle, until a time of the server's clock, with the chain
// of heads that its holder writes. A slot without a holder can be taken.
type slotRow struct {
	ID     int64  `bson:"_id"`
	Chain  []byte `bson:"chain"`
	Holder string `bson:"holder"`
	// Dead is a holder that was given up and may not be settled yet.
	Dead string `bson:"dead"`
	// Beat is the holder and the age of its handle at this beat.
	Beat     string          `bson:"beat"`
	Until    time.Time       `bson:"until"` // when it expires
	Heard    int64           `bson:"heard"`
	Sessions []bson.RawValue `bson:"sessions"` // in which the holder has transactions
}

// records
const (
	recordOrg        = "o"
	recordID         = "d"
	recordDecision   = "k"
	recordAgent      = "a"
	recordPolicy     = "p"
	recordType       = "t"
	recordAt         = "at"
	recordNanos      = "ns"
	recordReceipt    = "s"
	recordSettlement = "st"
	recordRemoved    = "g"
	recordLeaves     = "l"
)

// tombstone is the remainder of a removed row: its leaves.
type tombstone struct {
	Intent   []byte    `bson:"_id"`
	Removed  []byte    `bson:"g"`
	Left     []leafRow `bson:"l"`
	Imported bool      `bson:"f,omitempty"`
}

// leafRow is the leaf of a removed row.
type leafRow struct {
	Chain []byte `bson:"c"`
	Seq   int64  `bson:"s"`
	Index int64  `bson:"n"`
	Hash  []byte `bson:"h"`
}

// entries
const (
	entryOrg  = "o"
	entryKind = "k"
	entryAt   = "at"
	entryBody = "b"
)

// entryRow is an entry that is no settlement, as it is stored.
type entryRow struct {
	Key   []byte `bson:"_id"`
	Org   string `bson:"o"`
	Kind  string `bson:"k"`
	At    []byte `bson:"at"` // a UUIDv7 of when it was sealed
	Body  []byte `bson:"b"`
	Sig   string `bson:"s"`
	KeyID string `bson:"kid"`
}

// heads
const (
	headSigned = "h"
	headHolder = "w"
	headMeters = "m"
)

// headRow is a stored head with its batch's decisions by meter.
type headRow struct {
	ID     headID      `bson:"_id"`
	Head   []byte      `bson:"h"`
	Holder string      `bson:"w"`
	Meters []meterTick `bson:"m"`
}

type headID struct {
	Chain []byte `bson:"c"`
	Seq   int64  `bson:"s"`
}

// meter names a meter.
type meter struct {
	Org   string        `bson:"o"`
	Month storage.Month `bson:"m"`
}

// meterTick is the number of a batch's decisions in a meter.
type meterTick struct {
	Meter meter `bson:",inline"`
	N     int64 `bson:"n"`
}

// quotas
const (
	quotaOrg     = "o"
	quotaMonth   = "m"
	quotaCounted = "n"
	quotaGiven   = "g"
	quotaLast    = "last"
	placesHolder = "h"
)

// quotaRow is the meter of an organization in a month: the number of counted decisions,
// and the places of each handle. A handle's places are the held ones and those used for
// decisions that are not counted yet. The sum of all is the number of decisions and held
// places: a decision uses a place, and counting only moves it.
type quotaRow struct {
	Key   []byte      `bson:"_id"` // text(org) month
	Meter meter       `bson:",inline"`
	N     int64       `bson:"n"`
	Given []placesRow `bson:"g"`
	// Last is how many places the last Count granted, or lapsed.
	Last int64 `bson:"last,omitempty"`
}

type placesRow struct {
	Holder string `bson:"h"`
	N      int64  `bson:"n"`
}

// windows
const (
	windowBegun = "u"
	windowParts = "p"
	windowUntil = "until"
	windowLast  = "last"
	windowAt    = "at"
	partAt      = "a"
)

// windowRow is a window. It has no holders: what is granted is counted until it is given
// back or has left the window, so nothing is to be done when a handle is lost.
type windowRow struct {
	Key   []byte    `bson:"_id"` // text(org) text(counter) text(of)
	Begun string    `bson:"u"`
	Parts []partRow `bson:"p"`
	// Until is when the window is removed, by an index: all that was counted has left it.
	Until time.Time `bson:"until"`
	// Last is what was granted last, and At the part in which that was counted.
	Last int64 `bson:"last"`
	At   int64 `bson:"at"`
}

type partRow struct {
	At int64 `bson:"a"`
	N  int64 `bson:"n"`
}

// placesN is the number of a placesRow and of a partRow.
const placesN = "n"

// shape is how a collection must be: the BSON types of the fields that each document
// must have, or may have, and its indexes.
type shape struct {
	name      string
	must, may bson.D
	indexes   []mongo.IndexModel
}

// shapes returns the shape of each collection. Each call makes new ones: the driver
// writes into the models of indexes that it gets.
func shapes() []shape {
	return []shape{
		{name: documentsName, must: doc("_id", "string", "o", "string", "r", "long", documentValue, "string")},
		{name: indexName, must: doc("_id", "string", indexDocument, "string")},
		{name: changesName, must: doc("_id", "long", "c", "array")},
		{name: countersName, must: doc("_id", "string", counterN, "long")},
		{name: replicasName, must: doc("_id", "long", "chain", "binData", slotHolder, "string", slotDead, "string",
			slotUntil, "date", slotBeat, "string", slotHeard, "long", slotSessions, "array")},
		{
			name: recordsName, must: doc("_id", "binData"),
			may: doc(recordOrg, "string", recordID, "binData", recordDecision, "int", recordAgent, "string",
				recordPolicy, "string",
				recordType, "string", recordAt, "date", recordNanos, "int", recordReceipt, "object", recordSettlement,
				"object",
				recordRemoved, "binData", recordLeaves, "array"),
			indexes: []mongo.IndexModel{
				rowsBy(recordOrg, 1, recordID, -1), rowsBy(recordOrg, 1, recordAgent, 1, recordID, -1),
				rowsBy(recordOrg, 1, recordDecision, 1, recordID, -1),
				partly(recordRemoved, "_id", 1, recordRemoved, 1),
			},
		},
		{
			name: entriesName,
			must: doc("_id", "binData", entryOrg, "string", entryKind, "string", entryAt, "binData", entryBody,
				"binData"),
			indexes: []mongo.IndexModel{by(entryOrg, 1, entryKind, 1, entryAt, -1)},
		},
		{name: headsName, must: doc("_id", "object", headSigned, "binData", headHolder, "string", headMeters, "array")},
		{
			name: quotasName,
			must: doc("_id", "binData", quotaOrg, "string", quotaMonth, "int", quotaCounted, "long", quotaGiven,
				"array"),
			indexes: []mongo.IndexModel{by(quotaMonth, 1, quotaOrg, 1), by(quotaGiven+"."+placesHolder, 1)},
		},
		{
			name: windowsName,
			must: doc("_id", "binData", windowBegun, "string", windowParts, "array", windowUntil, "date",
				windowLast, "long", windowAt, "long"),
			indexes: []mongo.IndexModel{{Keys: doc(windowUntil, 1), Options: options.Index().SetExpireAfterSeconds(0)}},
		},
	}
}

// doc is a document of names and values in turn.
func doc(pairs ...any) bson.D {
	d := make(bson.D, len(pairs)/2)
	for i := range d {
		d[i] = bson.E{Key: pairs[2*i].(string), Value: pairs[2*i+1]}
	}
	return d
}

// set is a stage or an update that sets fields.
func set(pairs ...any) bson.D { return doc("$set", doc(pairs...)) }

func expr(name string, args ...any) bson.D { return doc(name, bson.A(args)) }

func literal(v any) bson.D { return doc("$literal", v) }

func orElse(field string, v any) bson.D { return expr("$ifNull", "$"+field, v) }

// later is the server's time after so many milliseconds.
func later(ms int64) bson.D {
	return doc("$dateAdd", doc("startDate", "$$NOW", "unit", "millisecond", "amount", ms))
}

func anyOf(field string, values any) bson.D { return doc(field, doc("$in", values)) }

func by(keys ...any) mongo.IndexModel { return mongo.IndexModel{Keys: doc(keys...)} }

// partly is an index of the documents that have a field.
func partly(field string, keys ...any) mongo.IndexModel {
	index := by(keys...)
	index.Options = options.Index().SetPartialFilterExpression(doc(field, doc("$exists", true)))
	return index
}

// rowsBy is an index of rows without removed ones.
func rowsBy(keys ...any) mongo.IndexModel { return partly(recordOrg, keys...) }

// after returns options of FindOneAndUpdate that return the changed document.
func after() *options.FindOneAndUpdateOptionsBuilder {
	return options.FindOneAndUpdate().SetReturnDocument(options.After)
}

// notNew returns err, unless another handle has inserted the same document first.
func notNew(err error) error {
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

func (s *shape) validator() bson.D {
	required, properties := bson.A{}, bson.D{}
	for i, f := range slices.Concat(s.must, s.may) {
		if i < len(s.must) {
			required = append(required, f.Key)
		}
		properties = append(properties, doc(f.Key, doc("bsonType", f.Value))...)
	}
	return doc("$jsonSchema", doc("bsonType", "object", "required", required, "properties", properties))
}

// makeCollections makes missing collections and refuses different ones.
func (s *Store) makeCollections(ctx context.Context) error {
	for _, shape := range shapes() {
		if err := s.makeCollection(ctx, &shape); err != nil {
			return err
		}
	}
	_, err := s.db.Collection(countersName).UpdateOne(ctx, doc("_id", revisionCounter),
		doc("$setOnInsert", doc(counterN, int64(0))), options.UpdateOne().SetUpsert(true))
	return notNew(err)
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
		return fmt.Errorf("an index of the collection %s.%s is not as writ makes it: drop that index and start "+
			"again, which makes it: %w",
			s.db.Name(), shape.name, err)
	}
	return err
}

func (s *Store) checkValidator(ctx context.Context, name string, want bson.Raw) error {
	specs, err := s.db.ListCollectionSpecifications(ctx, doc("name", name))
	if err != nil {
		return err
	}
	for _, spec := range specs {
		if got, ok := spec.Options.Lookup("validator").DocumentOK(); !ok || !bytes.Equal(got, want) {
			return fmt.Errorf("the collection %s.%s has not the validator that writ gives it: give writ a database "+
				"of its own, "+
				"or set the validator with collMod to %s", s.db.Name(), name, want)
		}
	}
	return nil
}

func hasCode(err error, code int) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(code)
}
