package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// View implements storage.Store. A test can make any read of the function do fail. The fault's name
// is the registry's method that reads.
func (f *faultStore) View(ctx context.Context, do func(storage.Reader) error) error {
	return f.Store.View(ctx, func(r storage.Reader) error { return do(faultReader{r, f, true}) })
}

// Watch implements storage.Store.
func (f *faultStore) Watch(tell func(storage.Change)) (stop func()) {
	f.told = append(f.told, tell)
	return f.Store.Watch(func(c storage.Change) {
		if !f.deaf.Load() {
			tell(c)
		}
	})
}

// FreshFor implements storage.Store.
func (f *faultStore) FreshFor() time.Duration { return time.Duration(f.age.Load()) }

// errProbed aborts a trial run of an update after its first write was recorded.
var errProbed = errors.New("probed")

// Update implements storage.Store. A test can make an update fail before anything is written. The
// fault's name is the first write of the function do.
func (f *faultStore) Update(ctx context.Context, org string, do func(storage.Tx) error) (uint64, error) {
	first := ""
	_, err := f.Store.Update(ctx, org, func(tx storage.Tx) error {
		if err := do(&probe{Tx: tx, faultReader: faultReader{tx, f, false}, first: &first}); err != nil {
			return err
		}
		return errProbed
	})
	if !errors.Is(err, errProbed) {
		return 0, err
	}
	if err := f.fault(first); err != nil {
		return 0, err
	}
	return f.Store.Update(ctx, org, do)
}

// probe records the name of an update's first write.
type probe struct {
	storage.Tx
	faultReader
	first *string
}

func (p *probe) Get(kind storage.Kind, org, id string) (storage.Document, error) {
	return p.faultReader.Get(kind, org, id)
}

func (p *probe) Scan(q storage.Query, each func([]byte, storage.Document) (bool, error)) error {
	return p.faultReader.Scan(q, each)
}

func (p *probe) Put(d storage.Document) error {
	if *p.first == "" {
		*p.first = map[storage.Kind]string{storage.TokenKind: "PutToken", storage.SubscriptionKind: "UpdateSubscription"}[d.Kind]
	}
	return p.Tx.Put(d)
}

// faultReader counts reads. In a View it also injects read faults.
type faultReader struct {
	storage.Reader
	f     *faultStore
	fails bool
}

func (r faultReader) Get(kind storage.Kind, org, id string) (storage.Document, error) {
	name := map[storage.Kind]string{
		storage.TokenKind: "Token", storage.SubscriptionKind: "Subscription", storage.AgentKind: "Agent", storage.CountsKind: "Counts",
	}[kind]
	if err := r.read(name, fmt.Sprintf("Get %c", kind)); err != nil {
		return storage.Document{}, err
	}
	return r.Reader.Get(kind, org, id)
}

func (r faultReader) Scan(q storage.Query, each func([]byte, storage.Document) (bool, error)) error {
	name := map[string]string{
		"p 0": "Policy", "r 0": "AllRules", "a 2": "AgentsNamed", "t 5": "CountTokens",
	}[fmt.Sprintf("%c %d", q.Kind, q.Index)]
	if err := r.read(name, fmt.Sprintf("Scan %c by %d", q.Kind, q.Index)); err != nil {
		return err
	}
	return r.Reader.Scan(q, func(position []byte, d storage.Document) (bool, error) {
		if r.f.corrupt != nil && q.Kind == storage.PolicyKind {
			p, err := storage.Policies.Parse(d)
			if err != nil {
				return false, err
			}
			r.f.corrupt(p)
			if d.Value, err = storage.Policies.Encode(p); err != nil {
				return false, err
			}
		}
		return each(position, d)
	})
}

func (r faultReader) read(name, exactly string) error {
	err := r.f.fault(exactly)
	if name != "" && r.fails {
		err = errors.Join(err, r.f.fault(name))
	}
	return err
}

// Count implements storage.Store.
func (f *faultStore) Count(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	if err := f.fault("Count"); err != nil {
		return storage.Granted{}, err
	}
	return f.Store.Count(ctx, w, ask)
}

// Metered implements storage.Store.
func (f *faultStore) Metered(ctx context.Context, org string, m storage.Month) (int64, error) {
	if err := f.fault("Metered"); err != nil {
		return 0, err
	}
	return f.Store.Metered(ctx, org, m)
}

// Decided implements storage.Store.
func (f *faultStore) Decided(ctx context.Context, org, intentID, approvalID string) (*storage.Record, error) {
	if err := f.fault("Decided"); err != nil {
		return nil, err
	}
	return f.Store.Decided(ctx, org, intentID, approvalID)
}

// Entry implements storage.Store.
func (f *faultStore) Entry(ctx context.Context, org string, kind storage.EntryKind, key string) (*storage.Entry, error) {
	if err := f.fault("Entry"); err != nil {
		return nil, err
	}
	return f.Store.Entry(ctx, org, kind, key)
}

// Append implements storage.Store. The fault "Commit" fails before anything is written. The fault
// "Commit lost answer" fails after everything was written.
func (f *faultStore) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	if err := f.fault("Commit"); err != nil {
		return storage.Batch{}, err
	}
	existing, err := f.Store.Append(ctx, batch, seal)
	if fault := f.fault("Commit lost answer"); fault != nil {
		return storage.Batch{}, fmt.Errorf("%w: %w", storage.ErrUnknown, fault)
	}
	return existing, err
}

// Healthy implements storage.Store.
func (f *faultStore) Healthy(ctx context.Context) error {
	if err := f.fault("Healthy"); err != nil {
		return err
	}
	return f.Store.Healthy(ctx)
}

// Meters implements storage.Store.
func (f *faultStore) Meters(ctx context.Context, m storage.Month, each func(string, int64) error) error {
	if err := f.fault("Meters"); err != nil {
		return err
	}
	return f.Store.Meters(ctx, m, each)
}

// ListRecords implements storage.Store.
func (f *faultStore) Chains(ctx context.Context, each func(receipt.Chain) error) error {
	if err := f.fault("Chains"); err != nil {
		return err
	}
	return f.Store.Chains(ctx, each)
}

func (f *faultStore) ListRecords(ctx context.Context, org string, filter storage.Filter, p storage.Page) ([]*storage.Record, string, error) {
	if err := f.fault("ListRecords"); err != nil {
		return nil, "", err
	}
	return f.Store.ListRecords(ctx, org, filter, p)
}

// Record implements storage.Store.
func (f *faultStore) Record(ctx context.Context, org, id string) (*storage.Record, error) {
	if err := f.fault("Record"); err != nil {
		return nil, err
	}
	return f.Store.Record(ctx, org, id)
}

// during counts the calls of the store while do runs, by name.
func (f *faultStore) during(do func()) map[string]int {
	f.mu.Lock()
	f.calls = make(map[string]int)
	f.mu.Unlock()
	do()
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}
