package registry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// faultyDocs is a store whose FreshFor returns age. If err is not nil, its reads fail.
type faultyDocs struct {
	storage.Documents
	age time.Duration
	err error
}

func (f *faultyDocs) FreshFor() time.Duration { return f.age }

func (f *faultyDocs) View(ctx context.Context, do func(storage.Reader) error) error {
	if f.err != nil {
		return f.err
	}
	return f.Documents.View(ctx, do)
}

func TestFresh_TwoSeconds(t *testing.T) {
	docs := &faultyDocs{Documents: storagetest.NewMemory().Open()}
	r, down := registry.New(docs), errors.New("down")
	for age, fresh := range map[time.Duration]bool{0: true, 2 * time.Second: true, 2*time.Second + 1: false, 3 * time.Second: false} {
		if docs.age = age; r.Fresh() != fresh {
			t.Errorf("Fresh() of a store that was heard of %v ago = %t", age, !fresh)
		}
		docs.err = nil
		if _, err := r.Token(t.Context(), "t"); !errors.Is(err, storage.ErrNotFound) || errors.Is(err, registry.ErrStale) {
			t.Errorf("%v: Token that is not there = %v, want ErrNotFound", age, err)
		}
		docs.err = down
		for name, read := range map[string]func() error{
			"Token":        func() error { _, err := r.Token(t.Context(), "t"); return err },
			"Policy":       func() error { _, err := r.Policy(t.Context(), "org", "p"); return err },
			"AllRules":     func() error { _, _, err := r.AllRules(t.Context(), "org"); return err },
			"AgentsNamed":  func() error { _, err := r.AgentsNamed(t.Context(), "org", "a"); return err },
			"Subscription": func() error { _, err := r.Subscription(t.Context(), "org"); return err },
		} {
			if err := read(); !errors.Is(err, down) || errors.Is(err, registry.ErrStale) == fresh {
				t.Errorf("%v: %s of a store that is down = %v, want ErrStale: %t", age, name, err, !fresh)
			}
		}
	}
}

// TestSetAgentStatus_WaitsUntilEveryReplicaHasHeard checks that SetAgentStatus does not return
// before the new status applies on every replica.
func TestSetAgentStatus_WaitsUntilEveryReplicaHasHeard(t *testing.T) {
	m := storagetest.NewMemory()
	here, there := m.Open(), m.Open()
	r := registry.New(here)
	if err := r.PutAgent(t.Context(), "org", agent("a", ""), 0); err != nil {
		t.Fatal(err)
	}
	set := func(ctx context.Context, s engine.AgentStatus) error {
		_, err := r.SetAgentStatus(ctx, "org", "a", s, noon, 0)
		return err
	}
	if err := set(t.Context(), engine.AgentDisabled); err != nil {
		t.Errorf("SetAgentStatus = %v", err)
	}
	there.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := set(ctx, engine.AgentActive); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("SetAgentStatus while a replica has not heard = %v, want %v", err, context.DeadlineExceeded)
	}
	done := make(chan error, 1)
	go func() { done <- set(t.Context(), engine.AgentDisabled) }()
	there.Mend()
	if err := <-done; err != nil {
		t.Errorf("SetAgentStatus once it has heard = %v", err)
	}
}
