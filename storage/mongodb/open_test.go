package mongodb

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/storagetest"
)

func TestOpen_CredentialsAreNeverTold(t *testing.T) {
	for _, uri := range []string{
		"mongodb://walter:hunter2@127.0.0.1:1/?replicaSet=rs",
		"mongodb://walter:hunter2@127.0.0.1:1/?replicaSet=rs&authMechanism=hunter2",
		"mongodb://walter:hunter2@/",
		"mongodb://walter:x@hunter2@127.0.0.1:1/?replicaSet=rs",
		"mongodb://walter:x@hunter2@/?appName=a@b",
		"mongodb://walter:hunter2@127.0.0.1:1/?appName=a@b&replicaSet=rs",
		"mongodb://walter:x#hunter2@127.0.0.1:1/?replicaSet=rs",
		"mongodb://walter:x?hunter2@127.0.0.1:1/?replicaSet=rs",
		"mongodb://walter:hunter2%ZZ@127.0.0.1:1/",
		"mongodb://walter:hunter2/x@127.0.0.1:1/",
		"mongodb://walter:%68unter2@[::1/",
		"mongodb://walter:hunter2@127.0.0.1:99999/",
		"mongodb+srv://walter:hunter2@localhost:1/",
		"mongodb+srv://walter:hunter2@no-such-host.invalid/",
		"mongo://walter:hunter2@127.0.0.1/",
		"walter:hunter2@127.0.0.1",
		"mongodb://walter:hunter2@127.0.0.1:1/?tls=true&tlsCertificateKeyFile=/none&tlsCertificateKeyFilePassword=hunter2",
		"mongodb://walter@127.0.0.1:1/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:hunter2",
	} {
		log := &logged{}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := Open(ctx, Options{URI: uri, Log: log.logger()})
		cancel()
		if err == nil {
			t.Errorf("Open(%q) = nil", uri)
			continue
		}
		for _, e := range unwrapAll(err) {
			if strings.Contains(e.Error()+log.String(), "hunter2") {
				t.Errorf("Open(%q) = %v, log %q: want no password", uri, e, log)
			}
		}
	}
}

func TestOpen_TimeoutOfTheURI(t *testing.T) {
	set := sharedSet(t)
	for query, want := range map[string]time.Duration{"": 5 * time.Second, "&timeoutMS=1000": time.Second, "&timeoutMS=7500": 7500 * time.Millisecond} {
		o := newDatabase(t, set)
		o.URI = set.URI() + query
		if s := openTest(t, o); s.timeout != want {
			t.Errorf("with %q the timeout is %v, want %v", query, s.timeout, want)
		}
	}
	for _, ms := range []string{"0", "999"} {
		if _, err := Open(t.Context(), Options{URI: "mongodb://127.0.0.1:1/?timeoutMS=" + ms}); err == nil || !strings.Contains(err.Error(), "timeoutMS of "+ms+": want 1000 or more") {
			t.Errorf("with timeoutMS=%s: %v", ms, err)
		}
	}
}

// TestOpen_RefusesAWrongURI checks that a URI with which a store can't work is refused at once, by the name
// of what is wrong.
func TestOpen_RefusesAWrongURI(t *testing.T) {
	set := sharedSet(t)
	good := set.URI()
	for uri, want := range map[string]string{
		strings.Replace(good, "replicaSet=writ", "replicaSet=other", 1): "the URI has replicaSet=other, and the replica set there is writ: correct the URI",
		good + "&maxPoolSise=3":         `the URI has the option "maxpoolsise", which is none`,
		good + "&directConnection=true": "the URI has directConnection=true",
		strings.Replace(good, "mongodb://", "mongodb://walter:pass@word@", 1):            "the password in the URI has an unescaped @: write it as %40",
		strings.Replace(good, "mongodb://", "mongodb://walter@example.com:password@", 1): "the user in the URI has an unescaped @: write it as %40",
		strings.Replace(good, "mongodb://", "mongodb://walter:pass/word@", 1):            "the password in the URI has an unescaped /: write it as %2F",
	} {
		began := time.Now()
		_, err := Open(t.Context(), Options{URI: uri, Database: "none"})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "word@") {
			t.Errorf("Open(%q) = %v, want %q", uri, err, want)
		}
		if took := time.Since(began); took > openPatience/2 {
			t.Errorf("Open(%q) took %v", uri, took)
		}
	}
	o := newDatabase(t, set) // one member does not answer
	o.URI = strings.Replace(o.URI, "mongodb://", "mongodb://127.0.0.1:1,", 1)
	openTest(t, o)
}

// unwrapAll returns err and all errors that err wraps.
func unwrapAll(err error) []error {
	all := []error{err}
	switch e := err.(type) { //nolint:errorlint // the two interfaces of Unwrap
	case interface{ Unwrap() error }:
		if e := e.Unwrap(); e != nil {
			all = append(all, unwrapAll(e)...)
		}
	case interface{ Unwrap() []error }:
		for _, e := range e.Unwrap() {
			all = append(all, unwrapAll(e)...)
		}
	}
	return all
}

func TestOpen_RefusesAForeignCollection(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s := openTest(t, o)
	must(t, s.db.RunCommand(t.Context(), doc("collMod", documentsName, "validator", doc())).Err())
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "collMod") {
		t.Errorf("Open with another validator = %v, want what to do", err)
	}
}

func TestSlot_LostIsFinal(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	if a.slot.chain == b.slot.chain || a.slot.id == b.slot.id {
		t.Errorf("two handles have the slots %d and %d, chains %x and %x", a.slot.id, b.slot.id, a.slot.chain, b.slot.chain)
	}
	settleNow(t, b, takeFrom(t, b, a))
	await(t, "trouble of a handle that was given up", func() bool { return a.Healthy(t.Context()) != nil })
	w := storagetest.NewWriter()
	if _, err := w.Commit(t.Context(), a, w.Record("org")); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("Append of a handle that was given up = %v, want %v", err, storage.ErrConflict)
	}
	if c := openTest(t, o); c.slot.id != a.slot.id || c.slot.chain != a.slot.chain {
		t.Errorf("the slot that was taken is %d, want %d", c.slot.id, a.slot.id)
	}
}

// TestSlot_OfTwoAtOnce checks that two new handles never take the same slot. Each round gives up a
// handle and opens two handles at the same time. One new handle must continue the chain of the lost
// handle, and the other must get another chain. Both append the same intent, and only one decision
// may be first.
func TestSlot_OfTwoAtOnce(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	keeper, w := openTest(t, o), storagetest.NewWriter()
	l := &load{T: t, writer: w, acknowledged: make(map[string]*storage.Record)}
	rounds := 5
	if os.Getenv("WRIT_SOAK") != "" {
		rounds = 20
	}
	for round := range rounds {
		dead := openTest(t, o)
		mustCommit(t, w, dead, w.Record("org-0"))
		giveUpNow(t, keeper, dead)
		var two [2]*Store
		var errs [2]error
		first := make(chan *storage.Record, len(two))
		intent := w.Record("org-0")
		begin, all := make(chan struct{}), new(sync.WaitGroup)
		for i := range two {
			all.Go(func() {
				<-begin
				if two[i], errs[i] = Open(t.Context(), o); errs[i] != nil {
					return
				}
				own := w.Again(intent)
				existing, err := w.Commit(t.Context(), two[i], own)
				if errs[i] = err; err == nil && existing[0] == nil {
					first <- own
				}
			})
		}
		close(begin)
		all.Wait()
		must(t, errors.Join(errs[:]...))
		if len(first) != 1 {
			t.Fatalf("round %d: %d of two decisions of one intent are first", round, len(first))
		}
		l.acknowledged[intent.IntentID] = <-first
		a, b := &two[0].slot, &two[1].slot
		if heirs := btoi(a.chain == dead.slot.chain) + btoi(b.chain == dead.slot.chain); heirs != 1 || a.id == b.id || a.chain == b.chain {
			t.Errorf("round %d: slots %d and %d with chains %x and %x, of which %d are that of slot %d, want two and one",
				round, a.id, b.id, a.chain, b.chain, heirs, dead.slot.id)
		}
		must(t, errors.Join(two[0].Close(), two[1].Close()))
	}
	l.check(keeper)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestUpdate_OfADeadHandleIsInNobodysWay checks that another handle can update although a
// silent handle holds a transaction open.
func TestUpdate_OfADeadHandleIsInNobodysWay(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	a.stop()
	a.done.Wait()
	errs := make(chan error)
	opened := make(chan struct{})
	go func() {
		first := true
		_, err := a.Update(context.WithoutCancel(t.Context()), "org", func(tx storage.Tx) error {
			if !first {
				return errDead
			}
			first = false
			if err := storage.Rules.Put(tx, "org", &engine.Rule{ID: "dead"}); err != nil {
				return err
			}
			close(opened)
			<-errs // b has ended
			return nil
		})
		errs <- err
	}()
	<-opened
	if _, err := b.Update(t.Context(), "org", putRule); err != nil {
		t.Errorf("Update beside a dead handle = %v", err)
	}
	errs <- nil
	if err := <-errs; err == nil {
		t.Error("the update of the dead handle was committed")
	}
}

func TestView_ReadsThroughWhereChangesMayBeMissing(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	a.stop()
	a.done.Wait()
	if _, err := b.Update(t.Context(), "org", putRule); err != nil {
		t.Fatal(err)
	}
	a.began = a.began.Add(-time.Hour) // so its last proof of freshness is an hour old too
	a.slot.beaten.Store(a.age())
	if age := a.FreshFor(); age < time.Hour {
		t.Fatalf("FreshFor = %v", age)
	}
	err := a.View(t.Context(), func(r storage.Reader) error {
		_, err := r.Get(storage.RuleKind, "org", "r")
		return err
	})
	if err != nil {
		t.Errorf("View = %v", err)
	}
}

// TestOpen_RefusesAnotherSchema checks databases that this version would misread. Open must refuse such
// a database, also for a reader. The error must name both schemas.
func TestOpen_RefusesAnotherSchema(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s := openTest(t, o)
	counters := s.db.Collection(countersName)
	row := func(fields ...any) func() error {
		return func() error {
			_, err := counters.ReplaceOne(t.Context(), doc("_id", schemaCounter), doc(fields...), options.Replace().SetUpsert(true))
			return err
		}
	}
	remove := func(id string) func() error {
		return func() error {
			_, err := counters.DeleteOne(t.Context(), doc("_id", id))
			return err
		}
	}
	for _, test := range []struct {
		want   string
		change func() error
	}{
		{"its schema is 1, and this writ uses schema 10", remove(schemaCounter)},
		{"its schema is 2, and this writ uses schema 10: start the writ that wrote it, or export", row(counterN, int64(2))},
		{"its schema is 4, and this writ uses schema 10", row(counterN, int64(4))}, // the last one without the least one
		{"its schema is 9, and this writ uses schema 10: start the writ that wrote it, or export", row(counterN, int64(9), counterLeast, int64(9))},
		{"its schema is 12, which a writ of schema 11 or later uses, and this writ is of schema 10: start a newer writ", row(counterN, int64(12), counterLeast, int64(11))},
		{"", row(counterN, int64(11), counterLeast, int64(10))},
		{"has data in replicas and no counter of revisions", remove(epochCounter)},
		{"has data in replicas and no counter of revisions", remove(schemaCounter)},
	} {
		must(t, test.change())
		for _, open := range []func() error{
			func() error {
				s, err := Open(t.Context(), o)
				if err == nil {
					err = s.Close()
				}
				return err
			},
			func() error {
				r, err := OpenSnapshot(t.Context(), o)
				if err == nil {
					err = r.Close()
				}
				return err
			},
		} {
			if err := open(); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("opening = %v, want %q", err, test.want)
			}
		}
	}
}

func TestOpen_RefusesAnotherIndex(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s := openTest(t, o)
	s.silence(t) // so that it does not make the index again
	const name = "o_1_d_-1"
	must(t, s.records().Indexes().DropOne(t.Context(), name))
	if _, err := s.records().Indexes().CreateOne(t.Context(), by("o", 1, "d", -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "drop that index") {
		t.Errorf("Open with another index = %v, want what to do", err)
	}
	must(t, s.records().Indexes().DropOne(t.Context(), name))
	openTest(t, o)
}

// TestOpen_WithTLSAndAUser checks that Open works on a set that requires TLS and a user. The
// user may only read and write its own database. Without TLS or the user Open fails, and its
// error has no password.
func TestOpen_WithTLSAndAUser(t *testing.T) {
	set := mongotest.SecureFor(t)
	o := newDatabase(t, set)
	const user = "replica"
	err := set.Admin(t.Context(), doc("createUser", user, "pwd", mongotest.Password, "roles", bson.A{
		doc("role", "readWrite", "db", o.Database),
	}))
	must(t, err)
	encoded := url.UserPassword(user, mongotest.Password).String()
	o.URI = strings.Replace(o.URI, url.UserPassword(mongotest.User, mongotest.Password).String(), encoded, 1)
	dead, s, w := openTest(t, o), openTest(t, o), storagetest.NewWriter()
	giveUpNow(t, s, dead)
	mustCommit(t, w, s, w.Record("org"))
	storagetest.Check(t, s, w.Keys(t), "org")
	plain, _, _ := strings.Cut(o.URI, "&tls=true")
	unknown, _, _ := strings.Cut(o.URI, "&tlsCAFile")
	for name, uri := range map[string]string{
		"another password": strings.Replace(o.URI, encoded, user+":hunter2", 1),
		"another user":     strings.Replace(o.URI, encoded, url.UserPassword("walter", mongotest.Password).String(), 1),
		"no user":          strings.Replace(o.URI, encoded+"@", "", 1),
		"no TLS":           plain,
		"no authority":     unknown,
	} {
		log := &logged{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := Open(ctx, Options{URI: uri, Database: o.Database, Log: log.logger()})
		cancel()
		if err == nil {
			t.Errorf("Open with %s = nil", name)
			continue
		}
		t.Logf("%s: %v", name, err)
		for _, secret := range []string{"hunter2", mongotest.Password, url.QueryEscape(mongotest.Password)} {
			if strings.Contains(err.Error()+log.String(), secret) {
				t.Errorf("Open with %s = %v, log %s: want no password", name, err, log)
			}
		}
	}
}
