package mongodb

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ/engine"
	"writ/storage"
)

func TestOpen_CredentialsAreNeverTold(t *testing.T) {
	for _, uri := range []string{
		"mongodb://walter:hunter2@127.0.0.1:1/?replicaSet=rs",
		"mongodb://walter:hunter2@127.0.0.1:1/?replicaSet=rs&authMechanism=hunter2",
		"mongodb://walter:hunter2@/",
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

// unwrapAll returns err and all that it wraps.
func unwrapAll(err error) []error {
	all := []error{err}
	switch e := err.(type) { //nolint:errorlint // that is what it looks at
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
	if err := s.db.RunCommand(t.Context(), bson.D{{Key: "collMod", Value: documentsName}, {Key: "validator", Value: bson.D{}}}).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "collMod") {
		t.Errorf("Open with another validator = %v, want what to do", err)
	}
}

// lose has a handle forget its slot, as if it had been silent, and stops its beats.
func (s *Store) lose(t *testing.T) {
	t.Helper()
	_, err := s.db.Collection(replicasName).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: s.slot.id}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "until", Value: time.Unix(0, 0)}}}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSlot_IsTakenOverWithItsChain(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	if a.slot.chain == b.slot.chain || a.slot.id == b.slot.id {
		t.Errorf("two handles have the slots %d and %d, chains %x and %x", a.slot.id, b.slot.id, a.slot.chain, b.slot.chain)
	}
	a.stop()
	a.done.Wait()
	a.lose(t)
	c := openTest(t, o)
	if c.slot.id != a.slot.id || c.slot.chain != a.slot.chain {
		t.Errorf("the slot that was taken is %d, want %d", c.slot.id, a.slot.id)
	}
	if err := a.slot.renew(t.Context(), a); err == nil {
		t.Error("renewing a slot that another has = nil")
	}
}

func TestSlot_LostIsReplaced(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a := openTest(t, o)
	was := a.slot.holder
	if _, err := a.db.Collection(replicasName).UpdateOne(t.Context(), bson.D{{Key: "_id", Value: a.slot.id}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "holder", Value: "another"}}}}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		a.slot.mu.Lock()
		now := a.slot.holder
		a.slot.mu.Unlock()
		if now != was && a.FreshFor() < time.Second {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no other slot was taken")
		}
	}
}

// TestUpdate_OfADeadHandleIsInNobodysWay holds a transaction of a handle open that
// says nothing any more.
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
			if _, err := storage.Rules.Put(tx, "org", &engine.Rule{ID: "dead"}); err != nil {
				return err
			}
			close(opened)
			<-errs // until b is done
			return nil
		})
		errs <- err
	}()
	<-opened
	if _, err := b.Update(t.Context(), "org", func(tx storage.Tx) error {
		_, err := storage.Rules.Put(tx, "org", &engine.Rule{ID: "r"})
		return err
	}); err != nil {
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
	if _, err := b.Update(t.Context(), "org", func(tx storage.Tx) error {
		_, err := storage.Rules.Put(tx, "org", &engine.Rule{ID: "r"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	a.began = a.began.Add(-time.Hour) // its last proof is as old
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
