package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Fault is the way in which an append through [Faulty] fails.
type Fault int

// The faults. FailedAndLost loses the batch, and FailedButPersisted stores the batch. The caller
// sees the same error for both.
const (
	// Works means that the append has no fault.
	Works Fault = iota
	// FailedAndLost fails the append after the seal was made. Nothing is stored.
	FailedAndLost
	// FailedButPersisted fails the append after everything is stored.
	FailedButPersisted
)

// ErrFault is the error of an injected fault.
var ErrFault = fmt.Errorf("injected fault: %w", storage.ErrUnknown)

// Faulty is a storage.Log that injects faults into appends. Log must be set.
type Faulty struct {
	storage.Log

	mu     sync.Mutex
	faults []Fault
}

// Fail sets the faults of the next appends, one fault for each append. Later appends have no fault.
func (f *Faulty) Fail(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults[:0:0], faults...)
}

func (f *Faulty) next() Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.faults) == 0 {
		return Works
	}
	fault := f.faults[0]
	f.faults = f.faults[1:]
	return fault
}

// Append implements storage.Log.
func (f *Faulty) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	fault := f.next()
	if fault == FailedAndLost {
		seal = lose(seal)
	}
	existing, err := f.Log.Append(ctx, batch, seal)
	if err == nil && fault != Works {
		return storage.Batch{}, ErrFault
	}
	return existing, err
}

// lose returns a seal that calls seal and then returns ErrFault.
func lose(seal storage.Seal) storage.Seal {
	return func(tip receipt.Chain, fresh storage.Batch) (storage.Batch, receipt.SignedHead, error) {
		sealed, h, err := seal(tip, fresh)
		return sealed, h, errors.Join(err, ErrFault)
	}
}
