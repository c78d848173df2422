package mongodb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestStore_RefusesAtOnceWithoutAMajority kills two of three members. The first operation may wait
// until its deadline. After that, the store must refuse every operation at once. When the members
// are back, every operation must succeed again. In a soak test they are gone for two minutes.
func TestStore_RefusesAtOnceWithoutAMajority(t *testing.T) {
	set := sharedThree(t)
	o := newDatabase(t, set)
	o.URI += "&timeoutMS=5000"
	s, w := openTest(t, o), storagetest.NewWriter()
	month := storage.MonthOf(w.Record("org").DecidedAt)
	operations := map[string]func(context.Context) error{
		"Append": func(ctx context.Context) error {
			_, err := w.Commit(ctx, s, w.Record("org"))
			return err
		},
		"Update": func(ctx context.Context) error {
			_, err := s.Update(ctx, "org", putRule)
			return err
		},
		"View":    func(ctx context.Context) error { return s.View(ctx, func(storage.Reader) error { return nil }) },
		"Barrier": s.Barrier,
		"Grant": func(ctx context.Context) error {
			_, err := storagetest.Grant(ctx, s, "org", month, 1000, 1)
			return err
		},
		"Decided": func(ctx context.Context) error {
			if _, err := s.Decided(ctx, "org", storagetest.IntentID(0), ""); !errors.Is(err, storage.ErrNotFound) {
				return err
			}
			return nil
		},
		"Metered": func(ctx context.Context) error {
			_, err := s.Metered(ctx, "org", month)
			return err
		},
	}
	for name, do := range operations {
		if err := do(t.Context()); err != nil {
			t.Fatalf("%s = %v", name, err)
		}
	}
	const held = 50
	if n, err := storagetest.Grant(t.Context(), s, "org", month, 1000, held); n != held || err != nil {
		t.Fatalf("Grant = %d, %v, want %d", n, err, held)
	}
	for _, member := range []int{0, 1} {
		must(t, set.Kill(member))
	}
	began := time.Now()
	for s.available() == nil { // this Append waits until its deadline
		if err := operations["Append"](t.Context()); err == nil {
			t.Fatal("Append without a majority = nil")
		}
	}
	t.Logf("%v after its majority was gone the handle refuses at once", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	for range 20 {
		for name, do := range operations {
			if err := do(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("%s without a majority = %v, want %v", name, err, storage.ErrUnavailable)
			}
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d refusals took %v, want less than one deadline", 20*len(operations), took)
	}
	if os.Getenv("WRIT_SOAK") != "" {
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
			for name, do := range operations {
				if err := do(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("%s without a majority for a while = %v, want %v", name, err, storage.ErrUnavailable)
				}
			}
			time.Sleep(100 * time.Millisecond) // keeps the load small
		}
	}
	for range held / 2 {
		if err := storagetest.Return(t.Context(), s, "org", month, 1); err != nil {
			t.Fatalf("Return without a majority = %v", err)
		}
	}
	for _, member := range []int{0, 1} {
		must(t, set.Restart(member))
	}
	began = time.Now()
	again := func(name string, do func(context.Context) error) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			err := do(t.Context())
			if err == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s with a majority again = %v", name, err)
			}
		}
	}
	const few = 3 // places that Append and Grant took
	again("the places that were returned", func(ctx context.Context) error {
		var row quotaRow
		err := s.quotaRows().FindOne(ctx, doc()).Decode(&row)
		if err == nil && (len(row.Given) != 1 || row.Given[0].N > held/2+few) {
			err = fmt.Errorf("the handle is given %+v, want about %d", row.Given, held/2)
		}
		return err
	})
	for name, do := range operations {
		again(name, do)
	}
	t.Logf("%v after two members were started again everything succeeds", time.Since(began).Round(time.Millisecond))
	storagetest.Check(t, s, w.Keys(t), "org")
}
