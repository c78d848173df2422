package index

// Rebuild takes keys that are missing from Pebble and moves them there, many at a time.
type Rebuild struct {
	x *Index
	t *memtable
}

// Rebuild returns an empty Rebuild. No key must be added to the index meanwhile.
func (x *Index) Rebuild() *Rebuild { return &Rebuild{x: x, t: newMemtable()} }

// Add takes keys.
func (r *Rebuild) Add(keys *Keys) error {
	if r.t.add(keys, nil); r.t.len() < flushedKeys {
		return nil
	}
	return r.Write()
}

// Has reports whether a key was taken and not written since.
func (r *Rebuild) Has(k []byte) bool {
	r.t.sort()
	_, found := r.t.get(k)
	return found
}

// Write moves to Pebble what was taken.
func (r *Rebuild) Write() error {
	t := r.t
	r.t = newMemtable()
	if t.len() == 0 {
		return nil
	}
	return r.x.ingest(t, nil, nil)
}
