package index

// Rebuild collects keys that are missing from Pebble and writes them to Pebble, many at a time. It
// leaves out meters and counts.
type Rebuild struct {
	x *Index
	t *memtable
}

// Rebuild returns an empty Rebuild. Add of the index must not be called while the Rebuild is used.
func (x *Index) Rebuild() *Rebuild { return &Rebuild{x: x, t: newMemtable()} }

// Add collects keys. Once there are many, it calls Write.
func (r *Rebuild) Add(keys *Keys) error {
	if r.t.add(keys); r.t.len() < flushedKeys {
		return nil
	}
	return r.Write()
}

// Has reports whether a key was added after the last Write.
func (r *Rebuild) Has(k []byte) bool {
	r.t.sort()
	_, found := r.t.get(k)
	return found
}

// Write writes the collected keys to Pebble.
func (r *Rebuild) Write() error {
	t := r.t
	r.t = newMemtable()
	if t.len() == 0 {
		return nil
	}
	return r.x.ingest(t, nil, nil)
}
