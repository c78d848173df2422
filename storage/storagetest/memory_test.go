package storagetest

import (
	"testing"

	"writ.example/writ/storage"
)

func TestMemory(t *testing.T) {
	RunDocuments(t, func(*testing.T) storage.Documents { return NewMemory().Open() })
	RunReplicas(t, func(*testing.T) Cluster { return NewMemory() })
}

// TestTwice checks that the tests of documents pass on a store that calls the function of every
// update twice.
func TestTwice(t *testing.T) {
	RunDocuments(t, func(*testing.T) storage.Documents { return Twice{NewMemory().Open()} })
	RunReplicas(t, func(*testing.T) Cluster { return twice{NewMemory()} })
}

// twice is a Memory. Its handles call the function of every update twice.
type twice struct{ *Memory }

// twiceHandle is a handle of twice.
type twiceHandle struct {
	Twice
	storage.Log
	storage.Counter
	storage.Quotas
}

func (m twice) OpenHandle(*testing.T) Replica {
	h := m.Open()
	return twiceHandle{Twice{h}, h, h, h}
}

func (m twice) TakeOver(t *testing.T, h Replica) Replica { return m.Memory.TakeOver(t, plain(h)) }
func (m twice) Cut(h Replica)                            { m.Memory.Cut(plain(h)) }
func (m twice) Mend(h Replica)                           { m.Memory.Mend(plain(h)) }

func plain(h Replica) Replica { return h.(twiceHandle).Documents.(*Handle) }
