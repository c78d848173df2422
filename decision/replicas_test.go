package decision

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/proc"
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
	return onSet(t, mongotest.For(t, 1), n, limit, last)
}

func onSet(t *testing.T, set *mongotest.Set, n, limit int, last prometheus.Registerer) []*Service {
	t.Helper()
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

// TestDecision_IntentAge_OneForAllReplicas checks that the age that one replica sets holds for all, and
// that a raised one counts from then: what was issued before may be forgotten, and stays refused.
func TestDecision_IntentAge_OneForAllReplicas(t *testing.T) {
	all := newReplicas(t, 2, 1<<30)
	set := func(s *Service, most time.Duration) {
		s.cfg.IntentAge = most
		must.Do(t, s.setAge(t.Context()))
		for _, s := range all {
			s.readAge(t.Context())
		}
	}
	decided := func(ago time.Duration, want bool) {
		t.Helper()
		for i, s := range all {
			req := request()
			req.Intent.IssuedAt = time.Now().Add(-ago).Format(time.RFC3339Nano)
			out := s.Decide(t.Context(), caller(), []Request{req})[0]
			if aged := (*AgeError)(nil); errors.As(out.Err, &aged) == want || out.Err != nil && aged == nil {
				t.Errorf("replica %d decides what was issued %v ago: %v, want %v", i, ago, out.Err, want)
			}
		}
	}
	decided(1000*time.Hour, true)
	set(all[0], time.Hour)
	decided(50*time.Minute, true)
	decided(70*time.Minute, false)
	set(all[1], 24*time.Hour)
	decided(110*time.Minute, true)
	decided(3*time.Hour, false) // more than twice the earlier age when it was raised
	set(all[0], 0)
	decided(110*time.Minute, true)
	decided(3*time.Hour, false)
	decided(-1000*time.Hour, true)
}

// TestDecision_IntentAge_ForgetsRemovedIntents checks that a removed intent is forgotten once three times the age and an
// hour have passed, and no earlier. It stays refused when the age is raised, and is remembered without an age.
func TestDecision_IntentAge_ForgetsRemovedIntents(t *testing.T) {
	s := newReplicas(t, 1, 1<<30)[0]
	began := time.Now()
	at := func(later time.Duration) { s.cfg.Now = func() time.Time { return began.Add(later) } }
	forget := func(when string, want int) {
		t.Helper()
		if n, err := s.forget(t.Context(), corpus.Organization, 10); n != want || err != nil {
			t.Errorf("%s %d intents were forgotten, %v, want %d", when, n, err, want)
		}
	}
	set := func(most time.Duration) {
		s.cfg.IntentAge = most
		must.Do(t, s.setAge(t.Context()))
	}
	req := request(func(in *engine.Intent) { in.IssuedAt = began.Add(-3 * time.Hour).Format(time.RFC3339) })
	if out := s.Decide(t.Context(), caller(), []Request{req})[0]; out.Err != nil {
		t.Fatal(out.Err)
	}
	must.Get(s.cfg.Store.RemoveRecords(t.Context(), corpus.Organization, began.Add(24*time.Hour), storage.Expired{Records: 10}))(t)
	at(100 * time.Hour)
	forget("without an age", 0)
	at(-2 * time.Hour) // it was decided an hour after the age was in force
	set(time.Hour)
	at(3*time.Hour + 50*time.Minute)
	forget("too early", 0)
	at(4*time.Hour + 10*time.Minute)
	forget("in time", 1)
	forget("again", 0)
	at(5 * time.Hour)
	set(0)
	if out := s.Decide(t.Context(), caller(), []Request{req})[0]; !errors.As(out.Err, new(*AgeError)) {
		t.Errorf("a forgotten intent is decided without an age: %+v, want that it is refused", out)
	}
}

// commands returns how many commands a store has sent, without those that wait for changes.
func commands(t *testing.T, reg prometheus.Gatherer) (n int) {
	for name, metric := range metricstest.Read(t, reg) {
		if strings.HasPrefix(name, "writ_mongodb_command_duration_seconds") && !strings.Contains(name, " getMore ") {
			n += int(metric.Count)
		}
	}
	return n
}

// TestReplicas_CommandsOfAFirstDecision counts what the first decision of an organization asks the server
// beyond what the next one asks. The beats of the store are counted, too, so the least of several counts.
func TestReplicas_CommandsOfAFirstDecision(t *testing.T) {
	reg := prometheus.NewRegistry()
	all := openReplicas(t, 2, 1<<30, reg)
	decide := func(s *Service, org string) (n int) {
		before := commands(t, reg)
		who := caller()
		who.Organization = org
		outs := s.Decide(t.Context(), who, []Request{request()})
		if outs[0].Err != nil {
			t.Fatal(outs[0].Err)
		}
		return commands(t, reg) - before
	}
	first, registered, next := math.MaxInt, math.MaxInt, math.MaxInt
	for i := range 20 {
		org, of := fmt.Sprint("org-", i), &first
		if i%2 == 1 {
			of = &registered
			must.Get(all[1].Plans.Of(t.Context(), nil, org))(t) // as a registration on this replica does
		}
		policy := corpus.ReferencePolicy()
		policy.OrganizationID = org
		must.Get(all[0].Documents.PutPolicy(t.Context(), policy, 0))(t)
		must.Do(t, all[0].Documents.PutRule(t.Context(), org, &engine.Rule{
			ID: "rule", Name: "rule", IsActive: true, Priority: engine.DefaultPriority, CreatedAt: time.Now(), UpdatedAt: time.Now(),
			Condition: `{"action_type":"email.send"}`, Action: `{"decision":"deny","reason":"no mail"}`,
		}, 0))
		decide(all[0], org) // notes that the rules have decided
		*of = min(*of, decide(all[1], org))
		next = min(next, decide(all[1], org))
	}
	// The time of the state that is read, the organization's documents, the policy and the agents. The fifth
	// asks for places in the meter.
	t.Logf("%d commands of a first decision, %d where the plan is known, %d of the next", first, registered, next)
	if more := max(first, registered) - next; more > 4+1 {
		t.Errorf("a first decision asks the server %d times, the next one %d times: %d more, want 5", max(first, registered),
			next, more)
	}
}

// TestSoak_ManyOrganizations prints the rate of decisions of one organization and of 100 organizations at
// random, and the commands and the processor time that a decision costs this process and the members. It also prints
// them of 100 organizations that decide every two seconds.
func TestSoak_ManyOrganizations(t *testing.T) {
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("SKIPPED without WRIT_SOAK: prints figures")
	}
	reg := prometheus.NewRegistry()
	set := mongotest.For(t, 3)
	s := onSet(t, set, 1, 1<<30, reg)[0]
	var orgs []string
	for i := range 100 {
		orgs = append(orgs, fmt.Sprint("org-", i))
		policy := corpus.ReferencePolicy()
		policy.OrganizationID = orgs[i]
		must.Get(s.Documents.PutPolicy(t.Context(), policy, 0))(t)
	}
	decide := func(org string) {
		who := caller()
		who.Organization = org
		if outs := s.Decide(t.Context(), who, []Request{request()}); outs[0].Err != nil {
			t.Error(outs[0].Err)
		}
	}
	for _, org := range orgs {
		decide(org)
	}
	const lasts = 5 * time.Second
	measure := func(what string, workers int, org func() string, pause time.Duration) {
		sent, own, members, began := commands(t, reg), proc.Spent(os.Getpid()), proc.Spent(set.Processes()...), time.Now()
		var decided atomic.Int64
		var wg sync.WaitGroup
		for range workers {
			wg.Go(func() {
				for time.Since(began) < lasts {
					decide(org())
					decided.Add(1)
					time.Sleep(pause)
				}
			})
		}
		wg.Wait()
		n, took := float64(decided.Load()), time.Since(began)
		each := func(now, before time.Duration) float64 { return float64((now - before).Microseconds()) / n }
		t.Logf("%-34s %7.0f decisions/s; a decision: %5.2f commands, %6.1f µs of processor here and %6.1f of the members", what,
			n/took.Seconds(), float64(commands(t, reg)-sent)/n, each(proc.Spent(os.Getpid()), own), each(proc.Spent(set.Processes()...), members))
	}
	for range 3 {
		measure("64 callers, one organization", 64, func() string { return orgs[0] }, 0)
		measure("64 callers, 100 at random", 64, func() string { return orgs[rand.IntN(len(orgs))] }, 0)
	}
	var next atomic.Int64
	for range 3 {
		measure("100 organizations, each every 2 s", 1, func() string { return orgs[next.Add(1)%100] }, 20*time.Millisecond)
	}
}
