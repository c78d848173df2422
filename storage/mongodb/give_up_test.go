package mongodb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// TestFence_OfATransactionFromBefore checks that a transaction which a lost handle has begun before it was
// given up stores nothing afterwards, although nobody has ended it.
func TestFence_OfATransactionFromBefore(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b, w := openTest(t, o), openTest(t, o), storagetest.NewWriter()
	mustCommit(t, w, a, w.Record("org"))
	late := w.Record("other") // whose meter cleaning up does not change
	a.log.looks = 1           // so that the transaction is begun before it is sealed
	given := false
	_, err := a.Append(t.Context(), storage.Batch{Records: []*storage.Record{late}},
		func(tip receipt.Chain, batch storage.Batch) (storage.Batch, receipt.SignedHead, error) {
			if !given {
				given = true
				row := takeFrom(t, b, a)
				row.Sessions = nil // so nothing is ended
				settleNow(t, b, row)
			}
			return w.Seal(tip, batch)
		})
	if !given || !errors.Is(err, errLost) {
		t.Errorf("Append from before = %v, want %v", err, errLost)
	}
	if _, err := b.Decided(t.Context(), "other", late.IntentID, ""); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Decided = %v, want %v", err, storage.ErrNotFound)
	}
	c := openTest(t, o)
	if c.slot.chain != a.slot.chain {
		t.Fatal("the chain of the lost handle is not continued")
	}
	mustCommit(t, w, c, late)
	storagetest.Check(t, c, w.Keys(t), "org", "other")
}

// TestFence_AtEachCommand stops an Append at each of its commands, before the server gets the command and before the
// handle gets the answer. Meanwhile the handle is given up, once with the right to end its transactions and once
// without, as with two users of MongoDB. A batch that is not stored when this is done must never be stored, although
// the handle does not read its slot. While its transaction may still be committed, it is not done.
func TestFence_AtEachCommand(t *testing.T) {
	t.Parallel()
	set, messages := mongotest.LateFor(t)
	for _, command := range []string{"find", "insert", "update", "commitTransaction"} {
		for _, answered := range []bool{false, true} {
			for _, ends := range []bool{true, false} {
				name := fmt.Sprintf("%s, answered %t, ends %t", command, answered, ends)
				t.Run(name, func(t *testing.T) {
					o := newDatabase(t, set)
					slow := o
					slow.URI += "&appName=" + messages.App
					a, b, w := openTest(t, slow), openTest(t, o), storagetest.NewWriter()
					mustCommit(t, w, a, w.Record("org"))
					a.silence(t)
					if command == "find" {
						a.log.looks = 1
					}
					stopped, release := make(chan struct{}), make(chan struct{})
					var once, released sync.Once
					messages.At(func(c mongotest.Command, is bool) {
						if c.Name == command && is == answered {
							once.Do(func() { close(stopped); <-release })
						}
					})
					goOn := func() { released.Do(func() { close(release) }) }
					t.Cleanup(goOn)
					late, done := w.Record("org"), make(chan error, 1)
					go func() {
						_, err := w.Commit(context.WithoutCancel(t.Context()), a, late)
						done <- err
					}()
					<-stopped
					row := takeFrom(t, b, a)
					if !ends {
						row.Sessions = nil
					}
					await(t, "cleaning up", func() bool {
						err := b.settleDead(t.Context(), row)
						if errors.Is(err, errOpen) {
							goOn() // otherwise the transaction stays open for a minute
						} else {
							must(t, err)
						}
						return err == nil
					})
					_, then := b.Decided(t.Context(), "org", late.IntentID, "")
					goOn()
					err := <-done
					_, now := b.Decided(t.Context(), "org", late.IntentID, "")
					if (then == nil) != (now == nil) || (err == nil) != (now == nil) {
						t.Errorf("Append = %v; Decided after giving up = %v, at last %v", err, then, now)
					}
					if _, err := w.Commit(t.Context(), a, w.Record("org")); !errors.Is(err, errLost) {
						t.Errorf("Append by who was given up = %v, want %v", err, errLost)
					}
					c := openTest(t, o)
					mustCommit(t, w, c, w.Record("org"))
					storagetest.Check(t, c, w.Keys(t), "org")
				})
			}
		}
	}
}

// hang leaves a transaction of a batch open on the server.
func hang(t *testing.T, set *mongotest.Set, s *Store, app string, w *storagetest.Writer) {
	t.Helper()
	mode := failing(t, set, app, bson.A{"commitTransaction"}, "closeConnection", true)
	if _, err := w.Commit(t.Context(), s, w.Record("org")); !errors.Is(err, storage.ErrUnknown) {
		t.Fatalf("Append whose commit fails = %v, want %v", err, storage.ErrUnknown)
	}
	mode("off")
}

// TestGiveUp_OfAnotherUser checks a handle that dies with an open transaction, while another handle has
// another MongoDB user. Without the privilege to end the transaction, the kill switch must not be answered
// before the transaction is ended: by its owner's handle, or by the server after a while.
func TestGiveUp_OfAnotherUser(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits until a server ends transactions")
	}
	for name, privileged := range map[string]bool{"with the privilege": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			set := mongotest.SecureFor(t)
			must(t, set.Admin(t.Context(), doc("setParameter", 1, "transactionLifetimeLimitSeconds", 15)))
			o := newDatabase(t, set)
			user := func(name string, roles ...any) Options {
				own := doc("role", "readWrite", "db", o.Database)
				must(t, set.Admin(t.Context(), doc("createUser", name, "pwd", mongotest.Password, "roles", append(bson.A{own}, roles...))))
				mine, is := o, url.UserPassword(name, mongotest.Password).String()
				mine.URI = strings.Replace(o.URI, url.UserPassword(mongotest.User, mongotest.Password).String(), is, 1)
				mine.URI = strings.Replace(mine.URI, "timeoutMS=20000", "timeoutMS=2000", 1) + "&appName=" + name
				return mine
			}
			var ends []any
			if privileged {
				must(t, set.Admin(t.Context(), doc("createRole", "ender", "roles", bson.A{}, "privileges", bson.A{
					doc("resource", doc("cluster", true), "actions", bson.A{"killAnySession"}),
				})))
				ends = []any{"ender"}
			}
			old, fresh := user("old"), user("fresh", ends...)
			log := &logged{}
			fresh.Log = log.logger()
			w := storagetest.NewWriter()
			dead := openTest(t, old)
			s := openTest(t, fresh)
			if warned := strings.Contains(log.String(), "killAnySession"); warned == privileged {
				t.Errorf("the log at the start is %q, and the user has the privilege: %t", log, privileged)
			}
			await(t, "the right to give up", s.maySettle)
			dead.stop()
			dead.done.Wait()
			hang(t, set, dead, "old", w)
			updateRule(t, s)
			if privileged {
				must(t, s.Barrier(t.Context()))
				return
			}
			short, cancel := context.WithTimeout(t.Context(), 3*lease)
			defer cancel()
			if err := s.Barrier(short); err == nil {
				t.Error("Barrier beside an open transaction = nil")
			}
			await(t, "the trouble", func() bool { return errors.Is(s.health.trouble(settling), errOpen) })
			must(t, s.Healthy(t.Context()))
			must(t, s.Barrier(t.Context()))
			dead.slot.beaten.Store(dead.age()) // so that it tries
			if _, err := w.Commit(t.Context(), dead, w.Record("org")); !errors.Is(err, storage.ErrConflict) {
				t.Errorf("Append of who was given up = %v, want %v", err, storage.ErrConflict)
			}
			storagetest.Check(t, s, w.Keys(t), "org")
		})
	}
}

// TestGiveUp_ByTheOwnClock checks that a live handle is not given up because the clock of the primary is
// far ahead, and that a silent one is given up although it is behind.
func TestGiveUp_ByTheOwnClock(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	lost := make(chan error, 2)
	o.Lost = func(err error) { lost <- err }
	a, b := openTest(t, o), openTest(t, o)
	await(t, "the right to give up", func() bool { return a.maySettle() && b.maySettle() })
	for range 20 { // as if each renewal was by a clock that is an hour behind
		_, err := a.slots().UpdateMany(t.Context(), doc(), set(slotUntil, time.Now().Add(-time.Hour)))
		must(t, err)
		must(t, errors.Join(a.giveUpSilent(t.Context()), b.giveUpSilent(t.Context())))
		time.Sleep(beatEvery / 2)
	}
	select {
	case err := <-lost:
		t.Fatalf("a live handle was given up: %v", err)
	default:
	}
	b.silence(t)
	_, err := a.slots().UpdateMany(t.Context(), doc(), set(slotUntil, time.Now().Add(time.Hour)))
	must(t, err)
	updateRule(t, a)
	must(t, a.Barrier(t.Context()))
	if n, err := a.slots().CountDocuments(t.Context(), doc(slotHolder, b.slot.holder)); n != 0 || err != nil {
		t.Errorf("%d slots are held by a silent handle, %v", n, err)
	}
}

// TestGiveUp_NotOfANewBeat checks that a handle whose beat has changed since it was read is not given up.
func TestGiveUp_NotOfANewBeat(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	var row slotRow
	must(t, a.slots().FindOne(t.Context(), b.slot.mine()).Decode(&row))
	must(t, b.renew(t.Context()))
	must(t, a.giveUp(t.Context(), &row))
	if row.Dead != "" {
		t.Error("a handle that has written a beat since was given up")
	}
	must(t, b.renew(t.Context()))
}

// TestGiveUp_WhileBeatsFailAtTimes checks that a handle gives up a dead one although its own beats fail now and then, as
// on a busy machine. The dead one has left a transaction open that blocks the meter, and the server ends none.
func TestGiveUp_WhileBeatsFailAtTimes(t *testing.T) {
	t.Parallel()
	set := mongotest.For(t, 1)
	must(t, set.Admin(t.Context(), doc("setParameter", 1, "transactionLifetimeLimitSeconds", 3600)))
	o := newDatabase(t, set)
	s, dead, w := openTest(t, o), openTest(t, o), storagetest.NewWriter()
	mustCommit(t, w, dead, w.Record("org"))
	begun, ended := make(chan error, 1), make(chan struct{})
	t.Cleanup(func() { close(ended) })
	go dead.transaction(context.WithoutCancel(t.Context()), &dead.counts, func(ctx context.Context) error {
		_, err := dead.countHeads(ctx, dead.slot.chain, false)
		begun <- err
		<-ended
		return context.Canceled
	})
	must(t, <-begun)
	dead.silence(t)
	await(t, "the end of the dead handle's transaction", func() bool {
		s.slot.sound.Store(s.age()) // a beat has failed
		n, err := s.slots().CountDocuments(t.Context(), doc("_id", dead.slot.id, slotHolder, "", slotDead, ""))
		return err == nil && n == 1
	})
	n, err := storagetest.Grant(t.Context(), s, "org", storage.MonthOf(w.Record("org").DecidedAt), 100, 10)
	if err != nil || n == 0 {
		t.Errorf("Grant = %d, %v, want places", n, err)
	}
}
