package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// heldUpdates makes updates wait for a transaction until the returned function has let them run.
func heldUpdates(t *testing.T, s *Store) (release func()) {
	t.Helper()
	var sessions []*mongo.Session
	for range maxUpdates {
		sessions = append(sessions, <-s.updates)
	}
	return func() {
		for _, session := range sessions {
			s.updates <- session
		}
	}
}

// waitingUpdates waits until n updates wait.
func waitingUpdates(t *testing.T, s *Store, n int) {
	t.Helper()
	await(t, "waiting updates", func() bool {
		s.groups.mu.Lock()
		defer s.groups.mu.Unlock()
		return len(s.groups.waiting) == n
	})
}

// TestUpdate_Group checks updates of several organizations that share a transaction. An update that fails, panics or
// leaves changes nothing for the others, and what the others write is told once, before Barrier returns.
func TestUpdate_Group(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	s, other := openTest(t, o), openTest(t, o)
	var mu sync.Mutex
	heard := make(map[string][]string)
	defer other.Watch(func(c storage.Change) {
		mu.Lock()
		defer mu.Unlock()
		heard[c.Org] = append(heard[c.Org], fmt.Sprintf("%c %s %d", c.Kind, c.Actor, c.Revision))
	})()
	rule := func(org string) func(storage.Tx) error {
		return func(tx storage.Tx) error { return storage.Rules.Put(tx, org, &engine.Rule{ID: "r"}) }
	}
	scanned := func(org string) func(storage.Tx) error {
		return func(tx storage.Tx) error {
			if err := rule(org)(tx); err != nil {
				return err
			}
			return storage.Rules.Scan(tx, storage.Query{Org: org}, func([]byte, *engine.Rule) (bool, error) { return true, nil })
		}
	}
	errOwn := errors.New("no")
	for name, test := range map[string]struct {
		odd  func(storage.Tx) error // the function of the last update
		want error
		ends bool // the context of the last update ends while it waits
	}{
		"all write":                          {odd: rule("odd")},
		"one reads what it wrote":            {odd: scanned("odd")},
		"one writes nothing":                 {odd: func(storage.Tx) error { return nil }},
		"one fails":                          {odd: func(storage.Tx) error { return errOwn }, want: errOwn},
		"one fails after a write":            {odd: func(tx storage.Tx) error { return errors.Join(rule("odd")(tx), errOwn) }, want: errOwn},
		"one fails after its write was sent": {odd: func(tx storage.Tx) error { return errors.Join(scanned("odd")(tx), errOwn) }, want: errOwn},
		"one panics":                         {odd: func(storage.Tx) error { panic(errOwn) }, want: errOwn},
		"one panics after its write was sent": {odd: func(tx storage.Tx) error {
			if err := scanned("odd")(tx); err != nil {
				return err
			}
			panic(errOwn)
		}, want: errOwn},
		"one leaves": {odd: rule("odd"), want: context.Canceled, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			mu.Lock()
			clear(heard)
			mu.Unlock()
			const orgs = 5
			release := heldUpdates(t, s)
			revisions, errs := make([]uint64, orgs), make([]error, orgs)
			var all sync.WaitGroup
			for i := range orgs {
				org := fmt.Sprint("org-", i)
				ctx := storage.WithActor(t.Context(), org)
				all.Go(func() { revisions[i], errs[i] = s.Update(ctx, org, rule(org)) })
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var odd error
			all.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						odd, _ = p.(error)
					}
				}()
				_, odd = s.Update(ctx, "odd", test.odd)
			})
			waitingUpdates(t, s, orgs+1)
			if test.ends {
				cancel()
				waitingUpdates(t, s, orgs)
			}
			release()
			all.Wait()
			must(t, errors.Join(errs...))
			if !errors.Is(odd, test.want) || (odd == nil) != (test.want == nil) {
				t.Errorf("the odd update = %v, want %v", odd, test.want)
			}
			must(t, s.Barrier(t.Context()))
			mu.Lock()
			defer mu.Unlock()
			for i, revision := range revisions {
				org := fmt.Sprint("org-", i)
				if want := []string{fmt.Sprintf("r %s %d", org, revision)}; !slices.Equal(heard[org], want) {
					t.Errorf("the changes of %s that another handle has heard are %v, want %v", org, heard[org], want)
				}
			}
			if got := heard["odd"]; test.want != nil && len(got) > 0 {
				t.Errorf("changes of an update that failed: %v", got)
			}
		})
	}
}

// TestUpdate_Urgent checks that an urgent update does not wait for the groups before it.
func TestUpdate_Urgent(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	began, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for i := range maxGroups + 1 {
		org := fmt.Sprint("org-", i)
		all.Go(func() {
			_, err := s.Update(t.Context(), org, func(tx storage.Tx) error {
				if i < maxGroups {
					began <- struct{}{}
					<-release
				}
				return storage.Rules.Put(tx, org, &engine.Rule{ID: "r"})
			})
			if err != nil {
				t.Errorf("Update = %v", err)
			}
		})
		if i < maxGroups {
			<-began
		}
	}
	waitingUpdates(t, s, 1)
	_, err := s.Update(storage.WithUrgency(t.Context()), "org", putRule)
	must(t, err)
	waitingUpdates(t, s, 1)
	close(release)
	all.Wait()
}

// TestUpdate_GroupOfOneDocument checks that of two updates in a transaction that put the same global document one
// conflicts.
func TestUpdate_GroupOfOneDocument(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	release := heldUpdates(t, s)
	errs := make([]error, 2)
	var all sync.WaitGroup
	for i := range errs {
		org := fmt.Sprint("org-", i)
		all.Go(func() {
			_, errs[i] = s.Update(t.Context(), org, func(tx storage.Tx) error {
				return storage.Tokens.Put(tx, org, &storage.Token{ID: "one", OrganizationID: org})
			})
		})
	}
	waitingUpdates(t, s, len(errs))
	release()
	all.Wait()
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(errors.Join(errs...), storage.ErrConflict) {
		t.Errorf("two updates that put one document = %v, want one conflict", errs)
	}
}

// TestUpdate_GroupsOfTwoHandles checks that no update is lost while handles conflict.
func TestUpdate_GroupsOfTwoHandles(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	handles := []*Store{openTest(t, o), openTest(t, o)}
	const orgs, each = 8, 5
	var all sync.WaitGroup
	for _, s := range handles {
		for i := range orgs {
			org := fmt.Sprint("org-", i)
			all.Go(func() {
				for range each {
					_, err := s.Update(t.Context(), org, func(tx storage.Tx) error {
						r, err := storage.Rules.Get(tx, org, "r")
						if errors.Is(err, storage.ErrNotFound) {
							r, err = &engine.Rule{ID: "r"}, nil
						}
						if err != nil {
							return err
						}
						r.Priority++
						return storage.Rules.Put(tx, org, r)
					})
					if err != nil {
						t.Errorf("Update = %v", err)
					}
				}
			})
		}
	}
	all.Wait()
	must(t, handles[0].View(t.Context(), func(tx storage.Reader) error {
		for i := range orgs {
			r, err := storage.Rules.Get(tx, fmt.Sprint("org-", i), "r")
			if err != nil || r.Priority != 2*each {
				t.Errorf("a rule after %d updates = %+v, %v", 2*each, r, err)
			}
		}
		return nil
	}))
}

// TestHandle_PartOfATransaction checks that a handle acknowledges the time of a transaction once it was told all its
// rows, also if the stream ends between them and brings the first ones again.
func TestHandle_PartOfATransaction(t *testing.T) {
	s := openTest(t, newDatabase(t, sharedSet(t)))
	s.stop()
	s.done.Wait() // nothing comes from the real stream
	heard := watchRevisions(t, s)
	at := s.watchers.at
	at.T += 100
	var events []*streamEvent
	for i := range 3 {
		row := newChangeRow(fmt.Sprint("org-", i), 7+uint64(i), []storage.Change{{Kind: storage.RuleKind, ID: "r"}})
		row.Left = 2 - int64(i)
		e := &streamEvent{At: at, Change: &row}
		e.NS.Coll = changesName
		events = append(events, e)
	}
	for i, e := range append(events[:2:2], events...) {
		must(t, s.handle(e))
		if told := !s.slot.last.Load().at.Before(at); told != (i == 4) {
			t.Errorf("after %d events the time is acknowledged: %t", i+1, told)
		}
	}
	if got := heard.list(); !slices.Equal(got, []uint64{7, 8, 9}) {
		t.Errorf("heard of the revisions %v, want each once", got)
	}
	again := *events[0]
	again.At = bson.Timestamp{T: at.T + 1}
	if err := s.handle(&again); !errors.Is(err, errRestored) {
		t.Errorf("a row that comes again at a later time = %v, want errRestored", err)
	}
}
