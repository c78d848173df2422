package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/storage"
)

// The names of the collections. The package comment describes the collections.
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
	countsName    = "counts"
	forgottenName = "forgotten"
)

// Below is a section for each collection. It has the type of the documents, and the names of the
// fields that queries use. The same field name can mean something else in another collection. Rows
// of records are in row.go.

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

// indexRow is an entry of an index. Documents has the entry's document if the query has looked it
// up.
type indexRow struct {
	Key       string        `bson:"_id"`
	Document  string        `bson:"d"`
	Documents []documentRow `bson:"docs"`
}

// changes
const changeID = "u"

// changeRow lists the changes of an update. An update without changes has no row. A row of revision 0 is a
// mark: see [Store.Barrier].
//
// ID is random. A database that was restored has other rows under the same revisions. Left is how many rows of the
// same transaction come after this one in the change stream, all with the same time.
type changeRow struct {
	Key     changeKey `bson:"_id"`
	ID      []byte    `bson:"u"`
	Changes []change  `bson:"c"`
	Left    int64     `bson:"n,omitempty"`
}

type changeKey struct {
	Org      string `bson:"o"`
	Revision int64  `bson:"r"`
}

// change is a storage.Change whose revision is in its row.
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
const (
	counterN      = "n"
	counterEpoch  = "e"
	counterLeast  = "least"
	counterCounts = "c"
)

// counterRow is a counter. Epoch is in the counter epochCounter: it is random and was made with the
// counter. Least is in the counter of the schema. Counts is in the counter of a chain: it has counts of counted heads
// that the rows do not have.
type counterRow struct {
	ID     string `bson:"_id,omitempty"`
	N      int64  `bson:"n"`
	Epoch  []byte `bson:"e,omitempty"`
	Least  int64  `bson:"least,omitempty"`
	Counts []byte `bson:"c,omitempty"`
}

// replicas
const (
	slotHolder   = "holder"
	slotDead     = "dead"
	slotUntil    = "until"
	slotBeat     = "beat"
	slotTold     = "told"
	slotLast     = "last"
	slotSessions = "sessions"
	slotKeys     = "keys"
)

// slotRow is a slot, with the chain of heads that its holder writes. A handle holds the slot until
// a time of the server's clock. If a slot has no holder, a handle can take it.
type slotRow struct {
	ID     int64  `bson:"_id"`
	Chain  []byte `bson:"chain"`
	Holder string `bson:"holder"`
	// Dead is a holder that was given up and for which settleDead may not have finished. Otherwise
	// it is empty.
	Dead string `bson:"dead"`
	// Beat is the text of the last beat: the holder's id and the age of its handle.
	Beat  string    `bson:"beat"`
	Until time.Time `bson:"until"` // when the slot expires
	// Told is the time in the change stream up to which the holder's watchers were told. Last is the last row
	// of changes that it has heard.
	Told     bson.Timestamp `bson:"told"`
	Last     *lastRow       `bson:"last,omitempty"`
	Sessions []sessionID    `bson:"sessions"` // sessions of the holder's transactions
	Keys     *keyDigests    `bson:"keys,omitempty"`
}

// lastRow names a row of changes.
type lastRow struct {
	Key changeKey `bson:",inline"`
	ID  []byte    `bson:"u"`
}

func (row *heardRow) stored() lastRow { return lastRow{row.key, []byte(row.id)} }

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

	tombstoneImported = "f"
)

// tombstone is the remainder of a removed row. It has the leaves of the row. In a forgottenRow it has no intent.
type tombstone struct {
	Intent   []byte    `bson:"_id,omitempty"`
	Removed  []byte    `bson:"g"`
	Left     []leafRow `bson:"l"`
	Imported bool      `bson:"f,omitempty"`
}

type leafRow struct {
	Chain []byte `bson:"c"`
	Seq   int64  `bson:"s"`
	Index int64  `bson:"n"`
	Hash  []byte `bson:"h"`
}

// forgotten
const forgottenLeft = "t"

// forgottenRow has tombstones whose intents were forgotten.
type forgottenRow struct {
	Key  forgottenKey `bson:"_id"`
	At   time.Time    `bson:"at"`
	Left []tombstone  `bson:"t"`
}

// forgottenKey has the decision id of the row's first tombstone.
type forgottenKey struct {
	Org   string `bson:"o"`
	First []byte `bson:"d"`
}

// entries
const (
	entryOrg  = "o"
	entryKind = "k"
	entryAt   = "at"
	entryBody = "b"
)

// entryRow is a stored entry. Settlements are stored in the rows of their decisions instead.
type entryRow struct {
	Key   []byte `bson:"_id"`
	Org   string `bson:"o"`
	Kind  string `bson:"k"`
	At    []byte `bson:"at"` // a UUIDv7 with the time of the signature
	Body  []byte `bson:"b"`
	Sig   string `bson:"s"`
	KeyID string `bson:"kid"`
}

// heads
const (
	headSigned  = "h"
	headHolder  = "w"
	headMeters  = "m"
	headDecided = "d"
	headCounts  = "n"
	headLast    = "p"
)

// headRow is a stored head. Meters says how many decisions its batch has in each meter. Decisions
// has the decisions of the batch in their order. Counts has the counts of the batch until the head is
// counted. The row with the sequence [writerSeq] is no head: it says who may add heads.
type headRow struct {
	ID        headID          `bson:"_id"`
	Head      []byte          `bson:"h"`
	Holder    string          `bson:"w"`
	Meters    []meterTick     `bson:"m"`
	Decisions []headDecisions `bson:"d,omitempty"`
	Counts    []byte          `bson:"n,omitempty"`
}

// headDecisions are consecutive decisions of one organization in a batch. IDs has 16 bytes for each.
type headDecisions struct {
	Org string `bson:"o"`
	IDs []byte `bson:"d"`
}

type headID struct {
	Chain []byte `bson:"c"`
	Seq   int64  `bson:"s"`
}

// meter identifies a meter.
type meter struct {
	Org   string        `bson:"o"`
	Month storage.Month `bson:"m"`
}

// meterTick says that a batch has N decisions in a meter.
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
	quotaScarce  = "scarce"
	quotaAt      = "at"
	placesHolder = "h"
)

// quotaRow is the meter of an organization in a month. It has the number N of counted decisions and
// the places of each handle. These are unused places and places of decisions that are not counted
// yet. A decision uses a place, and counting moves the place to N. So the sum of N and all places
// is the number of decisions and unused places.
type quotaRow struct {
	Key   []byte      `bson:"_id"` // text(org) month
	Meter meter       `bson:",inline"`
	N     int64       `bson:"n"`
	Given []placesRow `bson:"g"`
	// Last is the number of places that the last Count granted, or the constant lapsed.
	Last int64 `bson:"last,omitempty"`
	// Scarce is since when places are scarce. It is zero if they are ample. At is the time of the last
	// Count with a limit. Both are of the server's clock.
	Scarce time.Time `bson:"scarce,omitempty"`
	At     time.Time `bson:"at,omitempty"`
}

type placesRow struct {
	Holder string `bson:"h"`
	N      int64  `bson:"n"`
}

// windows
const (
	windowNames = "n"
	windowBegun = "u"
	windowParts = "p"
	windowUntil = "until"
	windowLast  = "last"
	windowAt    = "at"
	partAt      = "a"
)

// windowRow is a window. Granted places are counted until they are given back or have left the
// window. If a handle is lost, nothing has to be done. So the row does not name handles.
type windowRow struct {
	Key []byte `bson:"_id"` // one of Names
	// Names are text(org) text(counter) text(of), for each name of the window. No two windows have a
	// name in common.
	Names [][]byte  `bson:"n"`
	Begun string    `bson:"u"`
	Parts []partRow `bson:"p"`
	// Until is when the server removes the window. All counted places have left it by then.
	Until time.Time `bson:"until"`
	// Last is the number of places that the last Count granted. They count in the part At.
	Last int64 `bson:"last"`
	At   int64 `bson:"at"`
}

type partRow struct {
	At int64 `bson:"a"`
	N  int64 `bson:"n"`
}

// counts
const countHours = "h"

// countRow has the counts of a value on a day, by hour, as far as the handle of one chain has moved
// them here. An hour without a count is missing.
type countRow struct {
	ID    countID          `bson:"_id"`
	Hours map[string]int64 `bson:"h"`
}

// countID is compared field by field.
type countID struct {
	Org   string      `bson:"o"`
	By    int32       `bson:"b"`
	Day   storage.Day `bson:"d"`
	Value string      `bson:"v"`
	Chain []byte      `bson:"c"`
}

// placesN is the count field of a placesRow and of a partRow.
const placesN = "n"

// shape describes a collection. must has the BSON types of required fields, and may has the types
// of optional fields.
type shape struct {
	name      string
	must, may bson.D
	indexes   []mongo.IndexModel
}

// shapes returns the shape of each collection in a schema. Each call returns new shapes, because the driver
// modifies the index models that it gets.
func shapes(of int64) []shape {
	replicasMay := doc(slotKeys, "object", slotTold, "timestamp", slotLast, "object")
	if of > schema { // only in tests: see linked
		replicasMay = append(replicasMay, doc("next", "string")...)
	}
	return []shape{
		{name: documentsName, must: doc("_id", "string", "o", "string", "r", "long", documentValue, "string")},
		{name: indexName, must: doc("_id", "string", indexDocument, "string")},
		{name: changesName, must: doc("_id", "object", changeID, "binData", "c", "array")},
		{name: countersName, must: doc("_id", "string", counterN, "long")},
		{name: replicasName, must: doc("_id", "long", "chain", "binData", slotHolder, "string", slotDead, "string",
			slotUntil, "date", slotBeat, "string", slotSessions, "array"), may: replicasMay},
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
			must: doc("_id", "binData", windowNames, "array", windowBegun, "string", windowParts, "array",
				windowUntil, "date", windowLast, "long", windowAt, "long"),
			indexes: []mongo.IndexModel{
				{Keys: doc(windowUntil, 1), Options: options.Index().SetExpireAfterSeconds(0)},
				{Keys: doc(windowNames, 1), Options: options.Index().SetUnique(true)},
			},
		},
		{name: countsName, must: doc("_id", "object", countHours, "object")},
		{name: forgottenName, must: doc("_id", "object", "at", "date", forgottenLeft, "array")},
	}
}

// doc returns a document. pairs are its names and values in turn.
func doc(pairs ...any) bson.D {
	d := make(bson.D, len(pairs)/2)
	for i := range d {
		d[i] = bson.E{Key: pairs[2*i].(string), Value: pairs[2*i+1]}
	}
	return d
}

// set returns a stage or an update that sets fields.
func set(pairs ...any) bson.D { return doc("$set", doc(pairs...)) }

func expr(name string, args ...any) bson.D { return doc(name, bson.A(args)) }

func literal(v any) bson.D { return doc("$literal", v) }

func orElse(field string, v any) bson.D { return expr("$ifNull", "$"+field, v) }

// later returns an expression for the server's current time plus ms milliseconds.
func later(ms int64) bson.D {
	return doc("$dateAdd", doc("startDate", "$$NOW", "unit", "millisecond", "amount", ms))
}

func anyOf(field string, values any) bson.D { return doc(field, doc("$in", values)) }

func by(keys ...any) mongo.IndexModel { return mongo.IndexModel{Keys: doc(keys...)} }

// partly returns an index that contains only documents with a certain field.
func partly(field string, keys ...any) mongo.IndexModel {
	index := by(keys...)
	index.Options = options.Index().SetPartialFilterExpression(doc(field, doc("$exists", true)))
	return index
}

func rowsBy(keys ...any) mongo.IndexModel { return partly(recordOrg, keys...) }

// after returns options with which FindOneAndUpdate returns the changed document.
func after() *options.FindOneAndUpdateOptionsBuilder {
	return options.FindOneAndUpdate().SetReturnDocument(options.After)
}

// notNew returns err, or nil if another handle has inserted the same document first.
func notNew(err error) error {
	if mongo.IsDuplicateKeyError(err) {
		return nil
	}
	return err
}

func (s *shape) validator() bson.Raw {
	required, properties := bson.A{}, bson.D{}
	for i, f := range slices.Concat(s.must, s.may) {
		if i < len(s.must) {
			required = append(required, f.Key)
		}
		properties = append(properties, doc(f.Key, doc("bsonType", f.Value))...)
	}
	schema := doc("$jsonSchema", doc("bsonType", "object", "required", required, "properties", properties))
	raw, err := bson.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("a validator of constants: %v", err))
	}
	return raw
}

// makeCollections makes missing collections. It returns an error if an existing collection differs
// from its shape in every schema that this writ knows. The collections of a newer schema are not compared.
func (s *Store) makeCollections(ctx context.Context) error {
	of, err := s.checkSchema(ctx)
	if err != nil {
		return err
	}
	if of != nil && of.N > s.schema {
		return nil
	}
	for _, shape := range shapes(s.schema) {
		if err := s.makeCollection(ctx, &shape); err != nil {
			return err
		}
	}
	// The schema comes first: a database with an epoch and no schema is an older one.
	epoch := uuid.New()
	return errors.Join(s.makeCounter(ctx, schemaCounter, counterN, s.schema, counterLeast, s.oldest),
		s.makeCounter(ctx, epochCounter, counterN, int64(0), counterEpoch, epoch[:]))
}

func (s *Store) makeCounter(ctx context.Context, id string, fields ...any) error {
	_, err := s.db.Collection(countersName).UpdateOne(ctx, doc("_id", id),
		doc("$setOnInsert", doc(fields...)), options.UpdateOne().SetUpsert(true))
	return notNew(err)
}

// The counter schemaCounter has the number of the database's schema, and the least schema that a writ
// must know to use it. A store refuses a database that it would misread: one whose least schema is newer than this
// writ, and one of a schema before oldestSchema. A later schema that older writs can work beside keeps oldestSchema,
// which is also the least schema of a new database. Then the leader migrates a database of an older schema.
//
// Schema 10 has packed counts in heads and in the counters of chains.
const (
	schema        = 10
	oldestSchema  = 10
	schemaCounter = "format"
)

// linked makes this writ one of the next schema, for tests of two binaries. The linker sets it to the oldest schema
// that this writ then uses: "10" is a schema that older writs can work beside. It is empty otherwise.
var linked string

// schemas returns the schema of this writ and the oldest one that it uses.
func schemas() (is, oldest int64, err error) {
	if linked == "" {
		return schema, oldestSchema, nil
	}
	oldest, err = strconv.ParseInt(linked, 10, 64)
	return schema + 1, oldest, err
}

// checkSchema returns an error if this writ can't use the database. Otherwise it returns the counter of the
// schema. A new database has no counters and nothing else.
func (d *database) checkSchema(ctx context.Context) (of *counterRow, err error) {
	var epoch *counterRow
	for _, c := range []struct {
		id  string
		row **counterRow
	}{{epochCounter, &epoch}, {schemaCounter, &of}} { // the one that is made last is read first
		row := new(counterRow)
		err := d.db.Collection(countersName).FindOne(ctx, doc("_id", c.id)).Decode(row)
		if err == nil {
			*c.row = row
		} else if err := ifAny(err); err != nil {
			return nil, err
		}
	}
	switch {
	case of == nil && epoch != nil:
		of = &counterRow{N: 1} // schema 1 has no such counter
	case epoch == nil:
		if err := d.checkEmpty(ctx); err != nil || of == nil {
			return nil, err
		}
	}
	return of, d.checkVersion(of)
}

func (d *database) checkVersion(of *counterRow) error {
	const how = "start the writ that wrote it, or export its organizations with that writ and import them into an " +
		"empty database"
	switch {
	case of.N < d.oldest:
		return fmt.Errorf("the database %s is older than this writ: its schema is %d, and this writ uses schema %d: %s",
			d.db.Name(), of.N, d.schema, how)
	case of.Least > d.schema:
		return fmt.Errorf("the database %s is newer than this writ: its schema is %d, which a writ of schema %d or "+
			"later uses, and this writ is of schema %d: start a newer writ", d.db.Name(), of.N, of.Least, d.schema)
	}
	return nil
}

// checkEmpty returns an error if the database has data, but its epoch is still missing
// after the data was found. Open makes the counter before any data.
func (d *database) checkEmpty(ctx context.Context) error {
	for _, shape := range shapes(d.schema) {
		if shape.name == countersName {
			continue
		}
		err := d.db.Collection(shape.name).FindOne(ctx, doc(), options.FindOne().SetProjection(doc("_id", 1))).Err()
		if err == nil {
			err = d.db.Collection(countersName).FindOne(ctx, doc("_id", epochCounter)).Err()
			if errors.Is(err, mongo.ErrNoDocuments) {
				return fmt.Errorf("the database %s has data in %s and no counter of revisions: a part of it was lost, "+
					"or it was restored in part: restore the whole database", d.db.Name(), shape.name)
			}
			return err
		}
		if err := ifAny(err); err != nil {
			return err
		}
	}
	return nil
}

const (
	namespaceExists       = 48
	indexOptionsConflict  = 85
	indexKeySpecsConflict = 86
)

func (s *Store) makeCollection(ctx context.Context, shape *shape) error {
	validator := shape.validator()
	err := s.db.CreateCollection(ctx, shape.name, options.CreateCollection().SetValidator(validator))
	switch there := hasCode(err, namespaceExists); {
	case there:
		if err = s.checkValidator(ctx, shape.name, validator); err == nil && len(shape.indexes) > 0 {
			err = s.makeIndexes(ctx, shape)
		}
	case err == nil && len(shape.indexes) > 0:
		_, err = s.db.Collection(shape.name).Indexes().CreateMany(ctx, shape.indexes)
	}
	if hasCode(err, indexOptionsConflict) || hasCode(err, indexKeySpecsConflict) {
		return fmt.Errorf("an index of the collection %s.%s is not as writ makes it: drop that index and start "+
			"again, which makes it: %w",
			s.db.Name(), shape.name, err)
	}
	return err
}

// checkValidator returns an error if a collection has the validator of no schema that this writ knows.
func (s *Store) checkValidator(ctx context.Context, name string, want bson.Raw) error {
	got, err := s.validators(ctx, name)
	if err != nil {
		return err
	}
	for of := s.oldest; of <= s.schema; of++ {
		for _, shape := range shapes(of) {
			if shape.name == name && bytes.Equal(got[name], shape.validator()) {
				return nil
			}
		}
	}
	return fmt.Errorf("the collection %s.%s has not the validator that writ gives it: give writ a database of its "+
		"own, or set the validator with collMod to %s", s.db.Name(), name, want)
}

// validators returns the validators of the named collections, or of all without a name.
func (s *Store) validators(ctx context.Context, name ...string) (map[string]bson.Raw, error) {
	selected := doc()
	if len(name) > 0 {
		selected = anyOf("name", name)
	}
	specs, err := s.db.ListCollectionSpecifications(ctx, selected)
	all := make(map[string]bson.Raw, len(specs))
	for _, spec := range specs {
		all[spec.Name], _ = spec.Options.Lookup("validator").DocumentOK()
	}
	return all, err
}

func hasCode(err error, code int) bool {
	var e mongo.ServerError
	return errors.As(err, &e) && e.HasErrorCode(code)
}
