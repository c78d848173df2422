package decision

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/decision/budget"
	"writ.example/writ/engine"
	"writ.example/writ/internal/metricstest"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// newReplicas returns pipelines, each with its own handle on the same database. An agent may do
// an allowed action limit times an hour.
func newReplicas(t *testing.T, n, limit int) []*Service {
	t.Helper()
	return openReplicas(t, n, limit, nil)
}

// openReplicas is newReplicas with a registry for the metrics of the last replica's store.
func openReplicas(t *testing.T, n, limit int, last prometheus.Registerer) []*Service {
	t.Helper()
	set := mongotest.For(t, 1)
	var all []*Service
	for i := range n {
		var reg prometheus.Registerer
		if i == n-1 {
			reg = last
		}
		store := must.Get(mongodb.Open(t.Context(), mongodb.Options{URI: set.URI() + "&timeoutMS=20000", Database: "writ", Log: slog.New(slog.DiscardHandler), Metrics: reg}))(t)
		docs := registry.New(store)
		if len(all) == 0 {
			must.Get(docs.PutPolicy(t.Context(), corpus.ReferencePolicy(), 0))(t)
			must.Do(t, docs.PutRule(t.Context(), corpus.Organization, limiting(limit), 0))
		}
		l, err := ledger.Open(t.Context(), ledger.Config{
			Store: store, Scrub: open{}, Signer: receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))),
		})
		must.Do(t, err)
		t.Cleanup(func() { must.Do(t, errors.Join(l.Close(context.Background()), store.Close())) })
		s := must.Get(newService(config(store, l, 1<<40)))(t)
		all = append(all, s)
	}
	return all
}

// decideOn sends n intents at once to the pipelines in turn. It returns how many are allowed,
// and the record of one of them.
func decideOn(t *testing.T, n int, pipelines ...*Service) (count int, last *storage.Record) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			outs := pipelines[i%len(pipelines)].Decide(context.Background(), caller(), []Request{request()})
			mu.Lock()
			defer mu.Unlock()
			if outs[0].Err != nil {
				t.Error(outs[0].Err)
			} else if allowed(outs) > 0 {
				count, last = count+1, outs[0].Record
			}
		})
	}
	wg.Wait()
	return count, last
}

// TestReplicas_LimitsOverTime checks that three replicas on one database allow as many intents
// as one replica.
func TestReplicas_LimitsOverTime(t *testing.T) {
	all := newReplicas(t, 3, 20)
	count, last := decideOn(t, 200, all...)
	if count != 20 {
		t.Fatalf("%d of 200 were allowed, want 20", count)
	}
	// A failed action gives its place back, whichever replica receives the settlement.
	_, first, err := all[1].Settle(t.Context(), corpus.Organization, last.DecisionID, Settler{Credential: "another"}, storage.Settlement{Outcome: "failed", RecordedAt: time.Now()})
	if err != nil || !first {
		t.Fatalf("Settle = %v, %v", first, err)
	}
	count = 0
	for end := time.Now().Add(5 * time.Minute); count == 0 && time.Now().Before(end); {
		count, _ = decideOn(t, 1, all[0])
	}
	if count != 1 {
		t.Error("none is allowed after one has failed")
	}
	if count, _ = decideOn(t, 30, all...); count != 0 {
		t.Errorf("%d more were allowed", count)
	}
}

// TestReplicas_LimitsOverTimeOutliveAReplica checks that the decisions of a lost replica count.
// The places that it held count too.
func TestReplicas_LimitsOverTimeOutliveAReplica(t *testing.T) {
	const limit = 300
	all := newReplicas(t, 3, limit)
	count, _ := decideOn(t, 100, all[0])
	more, _ := decideOn(t, 2*limit, all[1:]...) // the first is silent
	if count += more; count > limit || count < limit-limit/8 {
		t.Errorf("%d were allowed, want %d, less what replicas held: a sixteenth each at most", count, limit)
	}
	restarted := budget.New(budget.Config{History: all[0].Store, Windows: all[0].Store.Windows()})
	all[0].counters = restarted
	more, _ = decideOn(t, limit, all...)
	if count += more; count > limit {
		t.Errorf("%d were allowed once the first was there again, want %d", count, limit)
	}
}

// TestReplicas_CommandsOfAFirstDecision counts what the first decision of an organization asks the server
// beyond what the next one asks. The beats of the store are counted, too, so the least of several counts.
func TestReplicas_CommandsOfAFirstDecision(t *testing.T) {
	reg := prometheus.NewRegistry()
	all := openReplicas(t, 2, 1<<30, reg)
	decide := func(s *Service, org string) (n int) {
		commands := func() (n int) {
			for name, metric := range metricstest.Read(t, reg) {
				if strings.HasPrefix(name, "writ_mongodb_command_duration_seconds") && !strings.Contains(name, " getMore ") {
					n += int(metric.Count)
				}
			}
			return n
		}
		before := commands()
		who := caller()
		who.Organization = org
		outs := s.Decide(t.Context(), who, []Request{request()})
		if outs[0].Err != nil {
			t.Fatal(outs[0].Err)
		}
		return commands() - before
	}
	first, next := math.MaxInt, math.MaxInt
	for i := range 10 {
		org := fmt.Sprint("org-", i)
		policy := corpus.ReferencePolicy()
		policy.OrganizationID = org
		must.Get(all[0].Documents.PutPolicy(t.Context(), policy, 0))(t)
		must.Do(t, all[0].Documents.PutRule(t.Context(), org, &engine.Rule{
			ID: "rule", Name: "rule", IsActive: true, Priority: engine.DefaultPriority, CreatedAt: time.Now(), UpdatedAt: time.Now(),
			Condition: `{"action_type":"email.send"}`, Action: `{"decision":"deny","reason":"no mail"}`,
		}, 0))
		decide(all[0], org) // notes that the rules have decided
		first = min(first, decide(all[1], org))
		next = min(next, decide(all[1], org))
	}
	// The time of the state that is read, the organization's documents, the policy and the agents. The fifth
	// asks for places in the meter.
	t.Logf("%d commands of a first decision, %d of the next", first, next)
	if more := first - next; more > 4+1 {
		t.Errorf("a first decision asks the server %d times, the next one %d times: %d more, want 5", first, next, more)
	}
}
