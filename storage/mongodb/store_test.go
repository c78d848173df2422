package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/storagetest"
	"writ.example/writ/storage/storagetest/protocol"
)

// databases numbers the databases of tests.
var databases atomic.Int64

func TestMain(m *testing.M) { mongotest.Main(m) }

func sharedSet(t testing.TB) *mongotest.Set {
	t.Helper()
	return mongotest.Shared(t, 1)
}

// sharedThree returns the set of three members that tests share.
func sharedThree(t testing.TB) *mongotest.Set {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: takes members from a set of three")
	}
	return mongotest.Shared(t, 3)
}

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustCommit appends records. It ends the test if that fails.
func mustCommit(t testing.TB, w *storagetest.Writer, s storage.Log, records ...*storage.Record) {
	t.Helper()
	_, err := w.Commit(t.Context(), s, records...)
	must(t, err)
}

// await waits until is returns true, for at most a minute.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no sign of %s within a minute", what)
		}
	}
}

// failing makes commands of the application app fail. The returned function sets the mode of the
// server's fail point.
func failing(t testing.TB, set *mongotest.Set, app string, commands bson.A, how ...any) (mode func(any)) {
	data := append(doc("failCommands", commands, "appName", app), doc(how...)...)
	mode = func(mode any) {
		t.Helper()
		must(t, set.Admin(context.Background(), doc("configureFailPoint", "failCommand", "mode", mode, "data", data)))
	}
	mode("alwaysOn")
	t.Cleanup(func() { mode("off") })
	return mode
}

// logged is a log whose lines also go to the test's log until the test ends.
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

// newDatabase returns the options for a new database.
func newDatabase(t testing.TB, set *mongotest.Set) Options {
	t.Helper()
	log := &logged{}
	t.Cleanup(func() {
		if t.Failed() && log.String() != "" {
			t.Logf("log:\n%s", log)
		}
	})
	return Options{
		URI: set.URI() + "&timeoutMS=20000", Database: fmt.Sprint("writ", databases.Add(1)),
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

// cluster implements storagetest.Cluster.
type cluster struct {
	set     *mongotest.Set
	options Options
	trace   *traced
	names   map[storagetest.Replica]string
	cuts    map[storagetest.Replica]func(mode any)
}

func newCluster(t *testing.T) *cluster {
	return &cluster{
		set: sharedSet(t), options: newDatabase(t, sharedSet(t)), trace: trace(t),
		names: make(map[storagetest.Replica]string), cuts: make(map[storagetest.Replica]func(any)),
	}
}

func (c *cluster) OpenHandle(t *testing.T) storagetest.Replica {
	o := c.options
	name := fmt.Sprint(o.Database, "-", len(c.names))
	o.URI += "&appName=" + name
	r := c.trace.of(openTest(t, o))
	c.names[r] = name
	return r
}

func (c *cluster) Cut(h storagetest.Replica) {
	r := h.(*recorded)
	c.cuts[h] = failing(r.t, c.set, c.names[h], bson.A{"aggregate", "getMore"}, "errorCode", historyLost)
	await(r.t, "the stream's end", func() bool { return r.health.trouble(streaming) != nil })
}

func (c *cluster) Mend(h storagetest.Replica) { c.cuts[h]("off") }

// TakeOver gives up a silent handle and opens a new handle, which takes the slot.
func (c *cluster) TakeOver(t *testing.T, h storagetest.Replica) storagetest.Replica {
	dead := h.(*recorded)
	giveUpNow(t, dead.Store, dead.Store)
	dead.handle.Note(protocol.SlotLost)
	return c.OpenHandle(t)
}

// silence stops the heartbeats of a handle.
func (s *Store) silence(t *testing.T) {
	t.Helper()
	s.stop()
	s.done.Wait()
	s.slot.until.Store(0)
}

// giveUpNow silences a handle and gives it up without waiting for a lease.
func giveUpNow(t *testing.T, by, dead *Store) {
	t.Helper()
	dead.silence(t)
	settleNow(t, by, takeFrom(t, by, dead))
}

// settleNow cleans up after a holder that was given up.
func settleNow(t *testing.T, by *Store, row *slotRow) {
	t.Helper()
	await(t, "cleaning up", func() bool {
		err := by.settleDead(t.Context(), row)
		if !errors.Is(err, errOpen) { // the machine may be busy
			must(t, err)
		}
		return err == nil
	})
}

// takeFrom takes the slot of a handle away. It does not clean up after the handle.
func takeFrom(t *testing.T, by, dead *Store) *slotRow {
	t.Helper()
	row := new(slotRow)
	await(t, "taking a slot", func() bool { // the handle may beat in between
		must(t, by.slots().FindOne(t.Context(), doc("_id", dead.slot.id)).Decode(row))
		must(t, by.giveUp(t.Context(), row))
		return row.Dead != ""
	})
	return row
}

func TestStore_Replicas(t *testing.T) {
	storagetest.RunReplicas(t, func(t *testing.T) storagetest.Cluster { return newCluster(t) })
}
