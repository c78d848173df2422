package storagetest

import (
	"testing"

	"writ/storage"
)

func TestMemory(t *testing.T) {
	RunDocuments(t, func(*testing.T) storage.Documents { return NewMemory().Open() })
	RunReplicas(t, func(*testing.T) Cluster { return NewMemory() })
}

// TestTwice holds that the tests of documents bear functions that run twice.
func TestTwice(t *testing.T) {
	RunDocuments(t, func(*testing.T) storage.Documents { return Twice{NewMemory().Open()} })
	RunReplicas(t, func(*testing.T) Cluster { return twice{NewMemory()} })
}

// twice has every update of its handles run twice.
type twice struct{ *Memory }

func (m twice) OpenHandle(*testing.T) storage.Documents { return Twice{m.Open()} }
func (m twice) Cut(h storage.Documents)                 { m.Memory.Cut(h.(Twice).Documents) }
func (m twice) Mend(h storage.Documents)                { m.Memory.Mend(h.(Twice).Documents) }
