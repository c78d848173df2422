package mongodb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"writ.example/writ/storage"
)

var _ storage.Store = (*Store)(nil)

// Options configure a Store.
type Options struct {
	// URI is the connection string. Its options set TLS, authentication, pool sizes, connection
	// timeouts and appName. Its option timeoutMS bounds each operation of the store. The
	// default is 5 s, and the least value is 1 s. The URI's read concern, write concern and
	// read preference are ignored, because writ reads majority-committed data from the primary
	// and writes to the journals of a majority.
	URI string
	// Database is the name of writ's own database. Empty means "writ".
	Database string
	// Lost, if not nil, is called when another handle has given up this handle, which then commits
	// nothing more. The argument says what an operator should do.
	Lost func(error)
	// Log gets messages for operators. Nil means slog.Default().
	Log *slog.Logger
	// Metrics is the registry of the store's metrics. Close unregisters them. If Metrics is nil,
	// they are not registered.
	Metrics prometheus.Registerer

	schema, oldest int64 // of another writ, in tests
}

// database is the connection of a handle. Its methods only read.
type database struct {
	client  *mongo.Client
	db      *mongo.Database
	timeout time.Duration
	health  health
	metrics *metrics
	began   time.Time // time of opening; ages are relative to it
	schema  int64     // the schema that this writ uses
	oldest  int64     // the oldest schema that this writ uses
	sharded bool      // the server is a mongos, set once

	// at is the time whose state a [Snapshot] reads. It is zero in a [Store].
	at bson.Timestamp

	slot   slot   // only in a Store
	builds builds // only in a Store
}

// Store keeps all data in a database that other handles may use at the same time.
type Store struct {
	*database
	lost func(error)
	over sync.Once // lost was called

	// sessions are the sessions of this handle's transactions. The slot names them. If another
	// handle gives this handle up, it ends the transactions of these sessions, which could
	// otherwise block others for a minute.
	sessions []*mongo.Session

	turns   turns
	groups  groups              // the updates that wait
	urgent  groups              // those of them that are urgent
	retries groups              // those that run again, each in a transaction of its own
	updates chan *mongo.Session // the free sessions of Update
	counts  transactor          // adds decisions to the meters
	bulk    transactor          // imports and removals

	watchers watchers
	sights   sights

	log    chainLog
	quotas quotas

	background context.Context    // context of background work
	stop       context.CancelFunc // ends background
	done       sync.WaitGroup
}

const (
	// openPatience is how long Open waits for a set without a primary.
	openPatience = 30 * time.Second
	// leastTimeout is the least timeout of an operation. A majority write to members in
	// different regions takes some 100 ms, and an operation may wait for several such writes.
	leastTimeout = time.Second
	// openQuiet is how long Open waits for a primary before it logs that it waits.
	openQuiet = 2 * time.Second
)

// Open returns a handle on the database. It makes missing collections, validators and indexes.
// It refuses a database whose validators or indexes differ from its own.
func Open(ctx context.Context, o Options) (_ *Store, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("MongoDB: %w", redact(whyNot(err, time.Since(began)), o.URI))
		}
	}()
	d, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Store{database: d, lost: o.Lost}
	if err := retry(ctx, s.makeCollections); err != nil {
		return nil, errors.Join(err, s.client.Disconnect(context.WithoutCancel(ctx)))
	}
	if err = s.begin(ctx); err == nil {
		err = s.metrics.register(o.Metrics)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect connects to a server and checks that a store can use it.
func connect(ctx context.Context, o Options) (*database, error) {
	if err := checkUser(o.URI); err != nil {
		return nil, err
	}
	if err := checkOptions(o.URI); err != nil {
		return nil, err
	}
	is, oldest, err := schemas()
	if err != nil {
		return nil, err
	}
	s := &database{timeout: 5 * time.Second, began: time.Now(), metrics: newMetrics(),
		schema: cmp.Or(o.schema, is), oldest: cmp.Or(o.oldest, oldest)}
	s.health = health{log: cmp.Or(o.Log, slog.Default()), troubles: make(map[string]error)}
	s.slot.news, s.slot.silent = make(chan struct{}, 1), make(chan []slotRow)
	majority := writeconcern.Majority()
	majority.Journal = new(true)
	config := options.Client().SetAppName("writ").SetTimeout(s.timeout).ApplyURI(o.URI).
		SetReadConcern(readconcern.Majority()).SetReadPreference(readpref.Primary()).SetWriteConcern(majority).
		SetMonitor(s.metrics.command()).SetPoolMonitor(s.metrics.pool()).
		SetBSONOptions(&options.BSONOptions{BinaryAsSlice: true})
	if s.timeout = *config.Timeout; s.timeout < leastTimeout {
		return nil, fmt.Errorf(
			"the URI has a timeoutMS of %d: want %d or more, or none for 5000", s.timeout.Milliseconds(),
			leastTimeout.Milliseconds(),
		)
	}
	if err := checkName(ctx, config); err != nil {
		return nil, err
	}
	if s.client, err = mongo.Connect(config); err != nil {
		return nil, err
	}
	s.db = s.client.Database(cmp.Or(o.Database, "writ"))
	word := time.AfterFunc(openQuiet, func() {
		s.health.log.Warn("waiting for a primary of the MongoDB replica set", "for_at_most", openPatience)
	})
	defer word.Stop()
	if err := retry(ctx, s.checkServer); err != nil {
		return nil, errors.Join(err, s.client.Disconnect(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// wireOf50 is the wire version of MongoDB 5.0, the first that reads snapshots.
const wireOf50 = 13

// checkServer returns an error if the store can't guarantee its contract with this server.
func (s *database) checkServer(ctx context.Context) error {
	var hello struct {
		SetName string `bson:"setName"`
		Message string `bson:"msg"`
		Wire    int    `bson:"maxWireVersion"`
	}
	if err := s.db.RunCommand(ctx, doc("hello", 1)).Decode(&hello); err != nil {
		return err
	}
	if hello.SetName == "" && hello.Message != "isdbgrid" {
		return errors.New(
			"the server is no member of a replica set, and has no transactions: start it with --replSet and run " +
				"rs.initiate()",
		)
	}
	s.sharded = hello.SetName == ""
	if hello.Wire < wireOf50 {
		return errors.New("the server is older than MongoDB 5.0: upgrade it")
	}
	return nil
}

// begin takes a slot and starts the background work.
func (s *Store) begin(ctx context.Context) (err error) {
	s.background, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	of := []**mongo.Session{&s.log.session, &s.counts.session, &s.bulk.session}
	for range maxUpdates {
		of = append(of, new(*mongo.Session))
	}
	for _, session := range of {
		if *session, err = s.client.StartSession(); err != nil {
			return err
		}
		s.sessions = append(s.sessions, *session)
	}
	s.groups.most, s.groups.size = maxGroups, maxGroup
	s.urgent.most, s.urgent.size = maxUrgent, maxGroup
	s.retries.most, s.retries.size = maxRetries, 1
	s.updates = make(chan *mongo.Session, maxUpdates)
	for _, session := range s.sessions[len(of)-maxUpdates:] {
		s.updates <- session
	}
	s.counts.busy, s.bulk.busy = make(chan struct{}, 1), make(chan struct{}, 1)
	if err := s.slot.take(ctx, s); err != nil {
		return err
	}
	if err := s.beginHearing(ctx); err != nil {
		return err
	}
	if err := s.slot.takeChain(ctx, s); err != nil {
		return err
	}
	if err := s.checkPrivilege(ctx); err != nil {
		return err
	}
	s.slot.wake()
	s.done.Go(func() { s.listen(s.background) })
	s.done.Go(func() { s.beat(s.background) })
	s.done.Go(func() { s.settle(s.background) })
	s.builds.mu.Lock()
	for _, b := range s.builds.all { // those that makeCollections wants
		s.done.Go(func() { s.build(s.background, b) })
	}
	s.builds.mu.Unlock()
	s.done.Go(func() { s.keep(s.background) })
	s.done.Go(func() { s.acknowledge(s.background) })
	return nil
}

// Close implements storage.Store. It gives the slot up, so that another handle can take it at
// once. In a database that was restored it changes nothing.
func (s *Store) Close() error {
	s.metrics.unregister()
	s.stop()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	var err error
	if s.slot.holder != "" && s.slot.foreign.Load() == nil {
		err = s.slot.release(ctx, s)
	}
	for _, session := range s.sessions {
		session.EndSession(ctx)
	}
	return errors.Join(err, s.client.Disconnect(ctx))
}
