package mongodb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"writ/storage"
	"writ/storage/mongodb/mongotest"
	"writ/storage/storagetest"
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
		URI: set.URI(), Database: fmt.Sprint("writ", shared.dbs.Add(1)), Timeout: 20 * time.Second,
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

func TestStore_Documents(t *testing.T) {
	set := sharedSet(t)
	storagetest.RunDocuments(t, func(t *testing.T) storage.Documents { return openTest(t, newDatabase(t, set)) })
}
