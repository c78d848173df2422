package storage

import "writ/engine"

// Source is a Store as [engine.Sets] loads from it.
type Source struct{ Store }

var _ engine.Source = Source{}
