package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/bench/load"
	"writ.example/writ/storage"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/mongodb/mongotest"
)

var replicas struct {
	writ             string
	rounds, conns    int
	patches          int
	duration         time.Duration
	besideEachSecond float64
}

func init() {
	flag.StringVar(&replicas.writ, "replicas", "", "binary of writ: measure it on MongoDB")
	flag.IntVar(&replicas.rounds, "rounds", 5, "rounds that are measured")
	flag.IntVar(&replicas.conns, "conns", 256, "connections")
	flag.IntVar(&replicas.patches, "patches", 200, "PATCHes of a kill switch, idle and under load")
	flag.DurationVar(&replicas.duration, "duration", 5*time.Second, "how long a run is measured")
	flag.Float64Var(&replicas.besideEachSecond, "load", 5000, "decisions a second beside the PATCHes")
}

// TestReplicas measures what MongoDB costs in comparison with the embedded store. It measures
// writ on the embedded store, on a replica set of one member and on a replica set of three.
// Servers, members and driver share all processors of this machine, so the processor time of
// each is the figure that carries over to other machines. Then TestReplicas starts two replicas
// on three members. It measures them without load and beside decisions. It measures how long
// PATCHes of a kill switch take, and how long after an update has returned a watcher of another
// handle hears of the update.
func TestReplicas(t *testing.T) {
	if replicas.writ == "" {
		t.Skip("bench/run.sh replicas measures")
	}
	three := startSet(t, 3)
	compareStores(t, three)
	killSwitch(t, three)
	heard(t, three)
}

func startSet(t *testing.T, members int) *mongotest.Set {
	t.Helper()
	set, err := mongotest.Start(t.Context(), members)
	must(t, err)
	t.Cleanup(func() {
		if err := set.Stop(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// serve starts a writ on a replica set. If set is nil, writ uses the embedded store.
func serve(t *testing.T, name, dir string, set *mongotest.Set) (s *Subject, stop func()) {
	t.Helper()
	p := Program{Name: name, Binary: replicas.writ, Dir: dir, Args: []string{"--queue-deadline", "2s"}} // throughput is asked for, not refusal
	if set != nil {
		p.Args, p.Beside = append(p.Args, "--store=mongodb", "--mongodb-uri", set.URI()), set.Processes()
	}
	s, err := p.Start(t.Context(), Work{Organization: "bench", Organizations: 1, Policies: 1})
	must(t, err)
	return s, func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// compareStores measures decisions on each store.
func compareStores(t *testing.T, three *mongotest.Set) {
	one := startSet(t, 1)
	b := &Bench{
		Header: Header{Rounds: replicas.rounds}, Loads: []Load{{}, {Share: .5}}, Conns: replicas.conns, OpenConns: replicas.conns,
		Duration: replicas.duration, Patience: time.Second, Raw: io.Discard, Say: say, // no warm-up
	}
	for _, s := range []struct {
		name string
		set  *mongotest.Set
	}{{"embedded", nil}, {"one member", one}, {"three members", three}} {
		started, stop := serve(t, s.name, t.TempDir(), s.set)
		defer stop()
		b.Subjects = append(b.Subjects, started)
	}
	before, err := one.Sizes(t.Context(), "writ")
	must(t, err)
	decided := 0
	b.measure = func(ctx context.Context, s *Subject, l Load, offered float64) (*Run, error) {
		r, err := b.once(ctx, s, l, offered)
		if err == nil && s.Name == "one member" {
			decided += r.Accepted
		}
		return r, err
	}
	d, err := b.Run(t.Context())
	must(t, err)
	must(t, d.Summarize().Print(t.Output()))
	for _, s := range b.Subjects {
		var members, drivers []float64
		for _, r := range d.Runs {
			if r.Subject == s.Name && r.Load == "closed" {
				members, drivers = append(members, 1e6*r.BesideSeconds/float64(r.Accepted)), append(drivers, 1e6*r.DriverSeconds/float64(r.Accepted))
			}
		}
		say("%-14s µs of processor a decision: members=%.1f driver=%.1f", s.Name, median(members), median(drivers))
	}
	after, err := one.Sizes(t.Context(), "writ")
	must(t, err)
	each := func(after, before int64) float64 { return float64(after-before) / float64(decided) }
	say("one member: bytes a decision: data=%.0f, on the disk=%.0f and its indexes=%.0f; oplog=%.0f", each(after.Data, before.Data),
		each(after.Storage, before.Storage), each(after.Indexes, before.Indexes), each(after.Oplog, before.Oplog))
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// killSwitch measures PATCHes of a kill switch. It sends them to the two replicas in turn.
func killSwitch(t *testing.T, set *mongotest.Set) {
	dir := t.TempDir() // the replicas share the keys in it
	var subjects []*Subject
	var clients []workspace.Client
	for _, name := range []string{"first replica", "second replica"} {
		s, stop := serve(t, name, dir, set)
		defer stop()
		bearer, err := OperatorTokens(filepath.Join(s.data, "operator-secret"))
		must(t, err)
		token, err := bearer("bench")
		must(t, err)
		subjects, clients = append(subjects, s), append(clients, clientAt(s.target.URL, token))
	}
	var agent struct {
		ID string `json:"id"`
	}
	must(t, clients[0].Do(t.Context(), http.MethodPost, "/v1/agents", map[string]any{"name": "Bot", "externalId": uuid.NewString()}, &agent))
	patches(t, clients, agent.ID, "idle")
	var loads sync.WaitGroup
	for _, s := range subjects {
		loads.Go(func() {
			o := load.Options{Conns: 64, Rate: replicas.besideEachSecond / 2, Duration: 20 * time.Second, Patience: time.Second}
			r, err := measureAfresh(t.Context(), s, o, nil)
			if err != nil {
				t.Error(err)
				return
			}
			say("%s", r)
		})
	}
	time.Sleep(3 * time.Second)
	patches(t, clients, agent.ID, fmt.Sprintf("beside %.0f decisions/s", replicas.besideEachSecond))
	loads.Wait()
}

// patches disables an agent and makes it active again, many times. There are pauses in between,
// so that no PATCH waits for the one before.
func patches(t *testing.T, clients []workspace.Client, agent, name string) {
	t.Helper()
	var took []time.Duration
	for i := range replicas.patches {
		body := map[string]any{"status": []string{"disabled", "active"}[i%2]}
		began := time.Now()
		must(t, clients[i/2%2].Do(t.Context(), http.MethodPatch, "/v1/agents/"+agent+"/status", body, nil))
		took = append(took, time.Since(began))
		time.Sleep(20 * time.Millisecond)
	}
	say("PATCH of a kill switch, %s: %s", name, percentiles(took))
}

// heard measures how long it takes until a watcher of one handle hears of the updates of
// another handle.
func heard(t *testing.T, set *mongotest.Set) {
	var handles [2]*mongodb.Store
	for i := range handles {
		var err error
		if handles[i], err = mongodb.Open(t.Context(), mongodb.Options{URI: set.URI(), Database: "heard"}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = handles[i].Close() }() // the error does not matter in a measurement
	}
	changes := make(chan time.Time, 1)
	defer handles[1].Watch(func(storage.Change) { changes <- time.Now() })()
	var took, updates []time.Duration
	for i := range replicas.patches {
		began := time.Now()
		_, err := handles[0].Update(t.Context(), "bench", func(tx storage.Tx) error {
			return storage.Subscriptions.Put(tx, "bench", &storage.Subscription{OrganizationID: "bench", Plan: fmt.Sprint(i)})
		})
		must(t, err)
		returned := time.Now()
		took, updates = append(took, max(0, (<-changes).Sub(returned))), append(updates, returned.Sub(began))
		time.Sleep(5 * time.Millisecond)
	}
	say("an update: %s; heard by another handle after it returned, 0 where it did before: %s", percentiles(updates), percentiles(took))
}

// percentiles returns the p50, the p99 and the maximum of durations as a text.
func percentiles(took []time.Duration) string {
	slices.Sort(took)
	n := len(took)
	return fmt.Sprintf("p50=%v p99=%v max=%v", took[n/2], took[n*99/100], took[n-1])
}
