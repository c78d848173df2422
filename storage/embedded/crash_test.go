package embedded

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// TestRestart_KeepsEverything checks that all data is still stored after Close and Open. The chain
// and the meters must continue.
func TestRestart_KeepsEverything(t *testing.T) {
	fs := vfs.NewMem()
	w := storagetest.NewWriter()
	var want snapshot
	for run := range 4 {
		s := openTest(t, fs, nil)
		if diff := cmp.Diff(want, look(t, s)); run > 0 && diff != "" {
			t.Errorf("run %d: -before +after\n%s", run, diff)
		}
		fill(t, s, w, int64(run+1))
		storagetest.Check(t, s, w.Keys(t), "a", "b")
		want = look(t, s)
		closeTest(t, s)
	}
	if len(want.Records) != 12 || want.Meter != 12 || len(want.Policies) != 4 || want.Usage.Policies != 1 || want.Usage.Agents.Total != 4 {
		t.Errorf("at the end there are %d records, %d metered, %d versions of %d policies, %d agents; want 12, 12, 4, 1, 4",
			len(want.Records), want.Meter, len(want.Policies), want.Usage.Policies, want.Usage.Agents)
	}
}

// TestCrash_KeepsWhatWasAcknowledged checks that a crash of the machine loses no acknowledged data.
// The crash keeps none, some or all of the unsynced data.
func TestCrash_KeepsWhatWasAcknowledged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, percent := range []int{0, 30, 100} {
		disk := vfs.NewCrashableMem()
		w := storagetest.NewWriter()
		s := openTest(t, disk, nil)
		for run := range int64(8) {
			fill(t, s, w, run+1)
			if run%3 == 2 {
				rotate(t, s)
			}
			want := look(t, s)
			crashed := openTest(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), nil)
			if diff := cmp.Diff(want, look(t, crashed)); diff != "" {
				t.Errorf("%d %% unsynced, run %d: -before +after\n%s", percent, run, diff)
			}
			storagetest.Check(t, crashed, w.Keys(t), "a", "b")
			closeTest(t, crashed)
		}
		closeTest(t, s)
	}
}

// TestCrash_WhileMade crashes before each write of the Open that makes a store. The next Open must make the store.
func TestCrash_WhileMade(t *testing.T) {
	for _, percent := range []int{0, 100} {
		disk := vfs.NewCrashableMem()
		var mu sync.Mutex
		var crashed []*vfs.MemFS
		closeTest(t, openTest(t, failing(disk, func(op errorfs.Op) bool {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				rng := rand.New(rand.NewPCG(7, 8))
				crashed = append(crashed, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}))
			}
			return false
		}), nil))
		if len(crashed) < 20 {
			t.Errorf("%d writes, want those of a store that is made", len(crashed))
		}
		for n, disk := range crashed {
			if s, err := openQuietly(Options{FS: disk}); err != nil {
				t.Errorf("%d %% unsynced, before write %d: Open = %v", percent, n, err)
			} else {
				w := storagetest.NewWriter()
				commit(t, s, w, w.Record("a"))
				closeTest(t, s)
			}
		}
	}
}

// TestCrash_DuringCommits checks that a crash at any moment loses no acknowledged record. A batch
// must be stored as a whole or not at all.
func TestCrash_DuringCommits(t *testing.T) {
	disk := vfs.NewCrashableMem()
	w := storagetest.NewWriter()
	s := openWith(t, Options{FS: disk, segmentSize: 4000}) // many segments get tables of intents meanwhile
	rng := rand.New(rand.NewPCG(3, 4))
	acknowledged := make(chan *storage.Record, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 90 {
			batch := []*storage.Record{w.Record("a"), w.Record("b"), w.Record("b")}
			if _, err := w.Commit(t.Context(), s, batch...); err != nil {
				t.Errorf("Commit = %v", err)
				return
			}
			for _, r := range batch {
				acknowledged <- r
			}
		}
	}()
	var before []*storage.Record
	for range 8 {
		for range 30 {
			before = append(before, <-acknowledged)
		}
		crashed := disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
		wantAcknowledged(t, "crashed", crashed, storagetest.NewWriterFrom(w), before)
	}
	<-done
}

// TestCrash_DuringRetention checks that after a crash each removal is either complete or undone. An
// acknowledged removal must be complete. The intents of removed rows must still count as decided.
func TestCrash_DuringRetention(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, percent := range []int{0, 50, 100} {
		disk := vfs.NewCrashableMem()
		w := storagetest.NewWriter()
		s := openTest(t, disk, nil)
		all := make([]*storage.Record, 40)
		for i := range all {
			all[i] = w.Record("a")
		}
		commit(t, s, w, all...)
		for removed := 0; removed < len(all); removed += 8 {
			if removed == 16 {
				rotate(t, s)
			}
			removeRows(t, s, "a", all[0].DecidedAt.AddDate(1, 0, 0), 8)
			crashed := openTest(t, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), nil)
			for _, f := range []storage.Filter{{}, {Decision: all[39].Decision}} {
				want := 0
				for _, r := range all[removed+8:] {
					if f.Selects(r) {
						want++
					}
				}
				got, _, err := crashed.ListRecords(t.Context(), "a", f, storage.Page{Limit: 100})
				if len(got) != want || err != nil {
					t.Errorf("%d %% unsynced: after %d removals %d records, %v, want %d", percent, removed+8, len(got), err, want)
				}
			}
			existing, err := w.Commit(t.Context(), crashed, w.Again(all[removed]), w.Again(all[len(all)-1]))
			if err != nil || existing[0] == nil || !existing[0].Removed() || existing[1] == nil {
				t.Errorf("%d %% unsynced: Commit of a removed intent = %v, %v, want what is left of it", percent, existing, err)
			}
			if n, err := crashed.Metered(t.Context(), "a", 202611); n != 40 || err != nil {
				t.Errorf("%d %% unsynced: Metered = %d, %v, want 40", percent, n, err)
			}
			closeTest(t, crashed)
		}
		closeTest(t, s)
	}
}

// fill stores data of every kind. n selects the data.
func fill(t *testing.T, s *Store, w *storagetest.Writer, n int64) {
	t.Helper()
	at := time.Date(2026, 11, 21, 0, 0, int(n), 0, time.UTC)
	id := string(rune('a' + n))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("filling the store: %v", err)
		}
	}
	ctx, docs := t.Context(), registry.New(s)
	_, err := docs.PutPolicy(ctx, &engine.ActionPolicy{OrganizationID: "a", PolicyID: "p", Version: n, UpdatedAt: at}, 1)
	must(err)
	must(docs.PutRule(ctx, "a", &engine.Rule{ID: id, Priority: n}, 0))
	must(docs.PutAgent(ctx, "a", &engine.Agent{ID: id, ExternalID: "x" + id, CreatedAt: at}, int(n)))
	must(docs.PutToken(ctx, &storage.Token{ID: id, OrganizationID: "a", CreatedAt: at}, 0))
	must(storagetest.PutSubscription(ctx, docs, &storage.Subscription{OrganizationID: "a", Plan: id}))
	_, err = w.Commit(ctx, s, w.Record("a"), w.Record("b"), w.Record("a"), w.Record("a"))
	must(err)
}

// snapshot is all data that fill stores, except the records of organization b.
type snapshot struct {
	Policies     []*engine.ActionPolicy
	Rules        []engine.Rule
	Agents       []*engine.Agent
	Tokens       []*storage.Token
	Records      []*storage.Record
	Subscription *storage.Subscription
	Meter        int64
	Meters       map[string]int64
	Usage        registry.Usage
	Changes      []storage.Change
}

func look(t *testing.T, s *Store) snapshot {
	t.Helper()
	v, err := lookAt(t.Context(), s)
	if err != nil {
		t.Fatalf("reading the store: %v", err)
	}
	return v
}

func lookAt(ctx context.Context, s *Store) (v snapshot, err error) {
	var errs [10]error
	page, docs := storage.Page{Limit: 1000}, registry.New(s)
	v.Policies, _, errs[0] = docs.ListPolicies(ctx, "a", page)
	v.Rules, _, errs[1] = docs.AllRules(ctx, "a")
	v.Agents, _, errs[2] = docs.ListAgents(ctx, "a", page)
	v.Tokens, _, errs[3] = docs.ListTokens(ctx, "a", page)
	v.Records, _, errs[4] = s.ListRecords(ctx, "a", storage.Filter{}, page)
	v.Meter, errs[5] = s.Metered(ctx, "a", 202611)
	if v.Subscription, errs[6] = docs.Subscription(ctx, "a"); len(v.Policies) == 0 {
		errs[6] = nil
	}
	v.Meters = make(map[string]int64)
	errs[7] = s.Meters(ctx, 202611, func(org string, n int64) error { v.Meters[org] = n; return nil })
	v.Usage, errs[8] = docs.Usage(ctx, "a", time.Unix(0, 0))
	v.Changes, errs[9] = s.Changes(ctx, storage.Change{}, math.MaxInt)
	return v, errors.Join(errs[:]...)
}
