package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded/index"
	"writ.example/writ/storage/embedded/segment"
)

// An intent is decided once. What stands for it is found in this order:
//
//   - A key of kindIntent in Pebble says that its row was removed: see retention.go.
//   - The newest item of the log that is of the intent is its row, or says that its row was abandoned. index.Intents
//     finds the frame of that item by a hash of the intent's id without the approval, so that all decisions of an
//     intent are found together.
//
// If neither is there, the intent is new.

// intent identifies an intent. Each intent is decided once. id is [storage.Record.IntentKey].
type intent struct{ org, id string }

// secretKey is the key of the secret with which intents are hashed.
var secretKey = append(key{byte(kindFormat)}, "secret"...)

// newIntents sets s.intents, with a new secret if none is stored.
func (s *Store) newIntents(fs vfs.FS) error {
	c := index.IntentsConfig{FS: fs, Dir: s.health.dir, Segments: s.log, Hashes: s.hashes, Health: s.health,
		Log: s.health.log, ReadOnly: s.options.ReadOnly}
	v, err := s.index.Get(secretKey)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		rand.Read(s.secret[:]) // never fails: an error would crash the process
	case err != nil:
		return err
	case copy(s.secret[:], v) != len(v) || len(v) != len(s.secret):
		return fmt.Errorf("%w: the secret of the intents has %d bytes", errCorrupt, len(v))
	}
	c.Secret = s.secret
	s.intents = index.NewIntents(c)
	return nil
}

// keepSecret stores the secret again if Pebble has lost it. All tables of intents were made again then.
func (s *Store) keepSecret() error {
	if _, err := s.index.Get(secretKey); !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	b := s.newBatch()
	b.set(secretKey, s.secret[:])
	return s.apply(b)
}

func (s *Store) loadIntents() error {
	var p *progress
	defer func() {
		if p != nil {
			p.end()
		}
	}()
	return s.intents.Load(func(frame uint64) {
		if p == nil {
			p = s.health.begin("making tables of intents", s.log.Last())
		}
		p.tell(frame)
	})
}

// removedIntents calls add with the hashes of the intents of removed rows.
func (s *Store) removedIntents(add func(hash uint64)) error {
	return s.scanKind(context.Background(), kindIntent, func(org string, name, _ []byte) error {
		add(s.hashOf(org, string(name)))
		return nil
	})
}

// hashOf returns the hash of the intent with this [storage.IntentKey].
func (s *Store) hashOf(org, intentKey string) uint64 {
	intentID, _ := storage.CutIntentKey(intentKey)
	return s.intents.Hash(org, intentID)
}

// hashes calls add with the hash of each item that is of an intent.
func (s *Store) hashes(f segment.Frame, add func(hash uint64)) error {
	for _, b := range f.Items {
		it, err := parseItem(b)
		if err == nil && it.hasIntent() {
			var intentID string
			intentID, err = it.intentID()
			add(s.intents.Hash(it.org, intentID))
		}
		if err != nil {
			return broken(it.org, it.id, "%w", err)
		}
	}
	return nil
}

// hasIntent reports whether an item is of an intent.
func (it *item) hasIntent() bool {
	return it.kind == recordItem || it.kind == tombstoneItem || it.kind == abandonedItem
}

// intentID returns the id of the intent of an item that has one. It reads only the start of a row.
func (it *item) intentID() (string, error) {
	if it.kind != recordItem {
		id, _ := storage.CutIntentKey(it.intent)
		return id, nil
	}
	var r storage.Record
	c := codec{reads: true, rest: it.body}
	c.filtered(&r)
	c.text(&r.IntentID)
	return r.IntentID, c.err
}

// intentKey returns the [storage.IntentKey] of an item that has an intent.
func (it *item) intentKey() (string, error) {
	if it.kind != recordItem {
		return it.intent, nil
	}
	r, err := parseRecord(it.org, it.id, []byte(it.body), nil)
	if err != nil {
		return "", err
	}
	return r.IntentKey(), nil
}

// eachOf calls f for the items of an organization that are of the intent, under any approval or none. It begins with
// the newest item, and ends when f returns stop.
func (s *Store) eachOf(org, intentID string, f func(it *item) (stop bool, err error)) error {
	return s.intents.Find(s.intents.Hash(org, intentID), func(number uint64) (stop bool, err error) {
		in, err := s.frame(number)
		if err != nil {
			return true, err
		}
		for i := len(in.items) - 1; i >= 0 && !stop && err == nil; i-- {
			var it item
			if it, err = parseItem(in.items[i]); err != nil || it.org != org || !it.hasIntent() {
				continue
			}
			var id string
			if id, err = it.intentID(); err == nil && id == intentID {
				stop, err = f(&it)
			}
		}
		return stop, err
	})
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
	if s.intents.Lacks(s.hashOf(of.org, of.id)) {
		return nil, nil
	}
	s.keys = s.keys[:0].org(kindIntent, of.org).text(of.id)
	v, err := s.index.Get(s.keys)
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
