package engine

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"
)

// shared has the compiled values that are in use, by the digest of their source. Organizations whose documents have
// the same text share what they compile to. A value that nobody uses is forgotten.
type shared[T any] struct {
	values sync.Map // [sha256.Size]byte to weak.Pointer[T]
}

// get returns the value of a source. It compiles the source if the value is not in use.
func (s *shared[T]) get(source []byte, compile func() (*T, error)) (*T, error) {
	key := sha256.Sum256(source)
	if known, ok := s.values.Load(key); ok {
		if v := known.(weak.Pointer[T]).Value(); v != nil { //nolint:forcetypeassert // it has no others
			return v, nil
		}
	}
	v, err := compile()
	if err != nil {
		return nil, err
	}
	kept := weak.Make(v)
	s.values.Store(key, kept)
	runtime.AddCleanup(v, func(key [sha256.Size]byte) { s.values.CompareAndDelete(key, kept) }, key)
	return v, nil
}
