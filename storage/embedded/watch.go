package embedded

import (
	"sync"

	"writ/storage"
)

// watchers are the functions to call for changes.
type watchers struct {
	mu   sync.RWMutex
	next int
	by   map[int]func(storage.Change)
}

// Watch implements storage.Store.
func (s *Store) Watch(f func(storage.Change)) (stop func()) {
	w := &s.watchers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[int]func(storage.Change))
	}
	id := w.next
	w.next++
	w.by[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by, id)
	}
}

// tell calls every watcher. Store.writes is held, so changes are told in the
// order in which they were made.
func (w *watchers) tell(c storage.Change) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, f := range w.by {
		f(c)
	}
}
