package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ/storage"
	"writ/storage/mongodb/mongotest"
	"writ/storage/storagetest"
	"writ/storage/storagetest/protocol"
)

// shared is the set of one member that most tests use, each with a database of its
// own.
var shared struct {
	sync.Once
	set *mongotest.Set
	err error
	dbs atomic.Int64
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.set != nil {
		if err := shared.set.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func sharedSet(t testing.TB) *mongotest.Set {
	t.Helper()
	if _, err := mongotest.Binary(t.Context()); err != nil {
		t.Skipf("SKIPPED: there is no real mongod: %.300q", err)
	}
	shared.Do(func() { shared.set, shared.err = mongotest.Start(context.Background(), 1) })
	if shared.err != nil {
		t.Fatalf("starting a replica set: %v", shared.err)
	}
	return shared.set
}

// logged is a log that goes to a test's, until it ends.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

var errDead = errors.New("dead")

// newDatabase returns options of a database that is not there yet.
func newDatabase(t testing.TB, set *mongotest.Set) Options {
	t.Helper()
	log := &logged{}
	t.Cleanup(func() {
		if t.Failed() && log.String() != "" {
			t.Logf("log:\n%s", log)
		}
	})
	return Options{
		URI: set.URI() + "&timeoutMS=20000", Database: fmt.Sprint("writ", shared.dbs.Add(1)),
		Log: log.logger(),
	}
}

// openTest opens a handle, which is closed when t ends.
func openTest(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	set := sharedSet(t)
	storagetest.Run(t, func(t *testing.T) storage.Store { return openTest(t, newDatabase(t, set)) })
}

// cluster is a storagetest.Cluster.
type cluster struct {
	set     *mongotest.Set
	options Options
	trace   *traced
	names   map[storagetest.Replica]string
}

func (c *cluster) OpenHandle(t *testing.T) storagetest.Replica {
	o := c.options
	name := fmt.Sprint(o.Database, "-", len(c.names))
	o.URI += "&appName=" + name
	r := c.trace.of(openTest(t, o))
	c.names[r] = name
	t.Cleanup(func() { c.failing(r, "off") })
	return r
}

// interrupted is the error that the streams of a handle that is cut end with.
const interrupted = 11601

// failing has the server end the streams of a handle.
func (c *cluster) failing(h storagetest.Replica, mode any) {
	err := c.set.Admin(context.Background(), doc(
		"configureFailPoint", "failCommand", "mode", mode,
		"data", doc(
			"failCommands", bson.A{"aggregate", "getMore"}, "errorCode", interrupted,
			"appName", c.names[h],
		),
	))
	if err != nil {
		panic(err)
	}
}

func (c *cluster) Cut(h storagetest.Replica) {
	c.failing(h, "alwaysOn")
	for h.(*recorded).health.trouble(streaming) == nil {
		time.Sleep(time.Millisecond)
	}
}

// Mend ends a Cut. What the handle has missed is trimmed first, as it is when it was
// signed: without that the handle would read it, and there would be no gap.
func (c *cluster) Mend(h storagetest.Replica) {
	if err := h.Trim(context.Background(), math.MaxUint64); err != nil {
		panic(err)
	}
	c.failing(h, "off")
}

// TakeOver buries a handle that says nothing any more and opens another, which takes
// its slot.
func (c *cluster) TakeOver(t *testing.T, h storagetest.Replica) storagetest.Replica {
	dead := h.(*recorded)
	dead.silence(t)
	if err := dead.bury(t.Context()); err != nil {
		t.Fatal(err)
	}
	dead.handle.Note(protocol.Buried)
	return c.OpenHandle(t)
}

// silence has a handle write no beats any more, as if it had written none for long.
func (s *Store) silence(t *testing.T) {
	t.Helper()
	s.stop()
	s.done.Wait()
	s.slot.until.Store(0)
	_, err := s.slots().UpdateOne(t.Context(), s.slot.mine(), doc("$set", doc("until", time.Unix(0, 0))))
	if err != nil {
		t.Fatal(err)
	}
}

func TestStore_Replicas(t *testing.T) {
	set := sharedSet(t)
	storagetest.RunReplicas(t, func(t *testing.T) storagetest.Cluster {
		return &cluster{set: set, options: newDatabase(t, set), trace: trace(t), names: make(map[storagetest.Replica]string)}
	})
}
