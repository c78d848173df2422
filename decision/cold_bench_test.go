package decision

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
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
