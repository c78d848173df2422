package decision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
)

// threadTime returns the processor time of the calling thread.
func threadTime(b *testing.B) time.Duration {
	const thisThread = 1 // RUSAGE_THREAD
	var used syscall.Rusage
	must.Do(b, syscall.Getrusage(thisThread, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// crowdSource is the store of many organizations.
type crowdSource struct{}

func (crowdSource) Policy(_ context.Context, org, _ string) (*engine.ActionPolicy, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(org, "org-"))
	return corpus.Policy(n), err
}

func (crowdSource) RulesAndLibraries(context.Context, string) ([]engine.Rule, []engine.Library, int64, error) {
	return nil, nil, 0, nil
}

func (crowdSource) AgentsNamed(_ context.Context, _, name string) ([]*engine.Agent, error) {
	return []*engine.Agent{{ID: name, Status: engine.AgentActive}}, nil
}

func (crowdSource) Lists(context.Context, string, []string) ([]engine.List, int64, error) {
	return nil, 0, nil
}

func (crowdSource) Stopped(context.Context, string) (*storage.Stop, error) { return nil, nil }

func (crowdSource) Session(context.Context, string, string) (*engine.Session, error) {
	return nil, errors.New("there is none")
}

// BenchmarkLoadCold is BenchmarkEvaluateCold of package engine with the look-ups of each
// organization's policy, rules and agent.
func BenchmarkLoadCold(b *testing.B) {
	sets := newSets(setsConfig{source: crowdSource{}, maxBytes: 1 << 30})
	orgs := make([]string, 10_000)
	for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(len(orgs)) {
		orgs[i] = fmt.Sprint("org-", n)
		if _, err := sets.Load(b.Context(), nil, orgs[i], corpus.PolicyID, corpus.Agent); err != nil {
			b.Fatal(err)
		}
	}
	for _, n := range []int{1, 1000, 10_000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			in := &engine.Input{Intent: corpus.AllowedIntent(), Agent: engine.AgentActive}
			b.ReportAllocs()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start := threadTime(b)
			for i := 0; b.Loop(); i++ {
				set := must.Get(sets.Load(b.Context(), nil, orgs[i%n], corpus.PolicyID, corpus.Agent))(b)
				if got := engine.Evaluate(set.Policy, set.Rules, in); got.Decision != engine.Allow {
					b.Fatalf("Evaluate = %v, want allow", got)
				}
			}
			b.ReportMetric(float64(threadTime(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// BenchmarkLoadMissed is the time of a policy that the cache does not have: it is read from a store of 10,000
// policies, no two alike, decoded and compiled.
func BenchmarkLoadMissed(b *testing.B) {
	store := must.Get(embedded.Open("db", embedded.Options{FS: vfs.NewMem(), Log: slog.New(slog.DiscardHandler)}))(b)
	b.Cleanup(func() { must.Do(b, store.Close()) })
	docs := registry.New(store)
	ids := make([]string, 10_000)
	for i, n := range rand.New(rand.NewPCG(1, 2)).Perm(len(ids)) {
		p := corpus.Policy(n)
		ids[i] = p.PolicyID
		if _, err := docs.PutPolicy(b.Context(), p, 0); err != nil {
			b.Fatal(err)
		}
	}
	sets := newSets(setsConfig{source: docs, maxBytes: 1})
	b.ReportAllocs()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime(b)
	for i := 0; b.Loop(); i++ {
		if _, err := sets.Policy(b.Context(), nil, corpus.Organization, ids[i%len(ids)]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(threadTime(b)-start)/float64(b.N), "cpu-ns/op")
}
