package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
)

// An intent is decided once. What stands for it is found in this order:
//
//   - A key of kindIntent in Pebble says that its row was removed: see retention.go.
//   - The newest item of the log that is of the intent is its row, or says that its row was abandoned. index.Tables
//     find that item by a hash of the intent's id without the approval, so that all decisions of an intent are found
//     together.
//
// If neither is there, the intent is new.

// intent identifies an intent. Each intent is decided once. id is [storage.Record.IntentKey].
type intent struct{ org, id string }

// secretKey is the key of the secret with which intents are hashed.
var secretKey = append(key{byte(kindFormat)}, "secret"...)

// newTables sets s.tables, with a new secret if none is stored.
func (s *Store) newTables(fs vfs.FS) error {
	c := index.Config{FS: fs, Dir: s.health.dir, Segments: s.log, Derive: s.derive, Health: s.health,
		Log: s.health.log, ReadOnly: s.options.ReadOnly}
	v, err := s.get(secretKey)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		rand.Read(s.secret[:]) // never fails: an error would crash the process
	case err != nil:
		return err
	case copy(s.secret[:], v) != len(v) || len(v) != len(s.secret):
		return fmt.Errorf("%w: the secret of the tables has %d bytes", errCorrupt, len(v))
	}
	c.Secret = s.secret
	s.tables = index.New(c)
	return nil
}

// keepSecret stores the secret if Pebble has none: the store is new, or Pebble has lost it. All tables were made
// again then.
func (s *Store) keepSecret() error {
	if _, err := s.get(secretKey); !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	b := s.newBatch()
	b.set(secretKey, s.secret[:])
	return s.apply(b)
}

func (s *Store) loadTables() error {
	var p *progress
	defer func() {
		if p != nil {
			p.end()
		}
	}()
	return s.tables.Load(func(frame uint64) {
		if p == nil {
			p = s.health.begin("making tables of the history", s.log.Last())
		}
		p.tell(frame)
	})
}

// removedIntents calls add with the names of the intents of removed rows.
func (s *Store) removedIntents(add func(index.Name)) error {
	return s.scanKind(context.Background(), kindIntent, func(org string, key, _ []byte) error {
		add(s.nameOf(org, string(key)))
		return nil
	})
}

// nameOf returns the name of the intent with this [storage.IntentKey].
func (s *Store) nameOf(org, intentKey string) index.Name {
	intentID, _ := storage.CutIntentKey(intentKey)
	return s.tables.Hash(org, intentID)
}

// hasIntent reports whether an item is of an intent.
func (it *item) hasIntent() bool {
	return it.kind == recordItem || it.kind == tombstoneItem || it.kind == abandonedItem
}

// start returns the decision and the id of the intent of an item that has one. It reads only the start of a row.
// Other items have no decision.
func (it *item) start() (engine.Decision, string, error) {
	if it.kind != recordItem {
		id, _ := storage.CutIntentKey(it.intent)
		return 0, id, nil
	}
	var r storage.Record
	c := codec{reads: true, rest: it.body}
	c.filtered(&r)
	c.text(&r.IntentID)
	return r.Decision, r.IntentID, c.err
}

// intentKey returns the [storage.IntentKey] of an item that has an intent.
func (it *item) intentKey() (string, error) {
	if it.kind != recordItem {
		return it.intent, nil
	}
	r, err := parseRecord(it.org, it.id, it.body, nil)
	if err != nil {
		return "", err
	}
	return r.IntentKey(), nil
}

// eachOf calls f for the items of an organization that are of the intent, under any approval or none. It begins with
// the newest item, and ends when f returns stop.
func (s *Store) eachOf(org, intentID string, f func(it *item) (stop bool, err error)) error {
	c := s.tables.Cursor(s.tables.Hash(org, intentID), true, 0, 0)
	c.Seek(0)
	for {
		e, ok, err := c.Next()
		if !ok || err != nil {
			return err
		}
		_, it, err := s.at(location{e.Frame, e.Item})
		if err != nil {
			return err
		}
		if it.org != org || !it.hasIntent() {
			continue
		}
		_, id, err := it.start()
		if err != nil {
			return err
		}
		if id != intentID {
			continue
		}
		if stop, err := f(&it); stop || err != nil {
			return err
		}
	}
}

// standing returns the last item that is of the intent. Its kind is 0 if there is none, or if that item says that the
// row was abandoned.
func (s *Store) standing(of intent) (last item, err error) {
	intentID, _ := storage.CutIntentKey(of.id)
	err = s.eachOf(of.org, intentID, func(it *item) (bool, error) {
		k, err := it.intentKey()
		if err != nil || k != of.id {
			return false, err
		}
		if it.kind != abandonedItem {
			last = *it
		}
		return true, nil
	})
	return last, err
}

// decided returns the record of an intent, or nil. The caller holds s.commits.
func (s *Store) decided(of intent) (*storage.Record, error) {
	if s.tables.Lacks(s.nameOf(of.org, of.id)) {
		return nil, nil
	}
	s.keys = s.keys[:0].org(kindIntent, of.org).text(of.id)
	v, err := s.get(s.keys)
	if err == nil {
		id, _, _, err := parseIntent(v, s.tip.ID)
		return of.removed(id), err
	}
	if !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	it, err := s.standing(of)
	if it.kind == 0 || err != nil {
		return nil, err
	}
	r, err := s.record(of.org, it.id)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("%w: decision %s is missing", errCorrupt, it.id)
	}
	return r, err
}

// decisionsOf returns the ids of the decisions of an intent, without an approval and under each.
func (s *Store) decisionsOf(org, intentID string) (ids []uuid.UUID, err error) {
	return ids, s.eachOf(org, intentID, func(it *item) (bool, error) {
		if it.kind == recordItem {
			ids = append(ids, it.id)
		}
		return false, nil
	})
}
