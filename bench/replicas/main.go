// Command replicas measures what MongoDB costs beside the embedded store: writ on
// the embedded store, on a replica set of one member and on one of three, each alone
// in turn, in interleaved rounds. Servers, members and driver share all processors of
// this machine, so that the processor time of each is what carries over to others.
//
// It prints, for each store,
//
//   - a closed loop of -conns connections: decisions a second and, for each decision,
//     the processor time of writ, of the members together and of the driver;
//   - an open loop at half of the median of those rates, latency from the schedule;
//
// then, of two replicas on three members, idle and under -load decisions a second,
//
//   - how long PATCHes of a kill switch take;
//   - how long after an update has returned a watcher of another handle hears of it, 0
//     where it did before.
//
// The server comes from where mongotest gets it.
//
//	replicas -writ ./writ
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"writ/bench/load"
	"writ/storage/mongodb/mongotest"
)

type options struct {
	writ     string
	conns    int
	rounds   int
	duration time.Duration
	patches  int
	beside   float64
}

func main() {
	var o options
	flag.StringVar(&o.writ, "writ", "", "binary of writ")
	flag.IntVar(&o.conns, "conns", 256, "connections of the closed loops")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds of the closed loops")
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "how long a run is measured")
	flag.IntVar(&o.patches, "patches", 200, "PATCHes of a kill switch, idle and under load; 0 for none")
	flag.Float64Var(&o.beside, "load", 5000, "decisions a second beside the PATCHes")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "replicas:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &runner{options: o, dir: dir}
	defer b.stop()
	three, err := mongotest.Start(ctx, 3)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, three.Stop()) }()
	if err := b.compare(ctx, three); err != nil {
		return err
	}
	if o.patches == 0 {
		return nil
	}
	if err := b.killSwitch(ctx, three); err != nil {
		return err
	}
	return heard(ctx, three, o.patches)
}

// compare measures decisions on each store.
func (b *runner) compare(ctx context.Context, three *mongotest.Set) (err error) {
	one, err := mongotest.Start(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Stop()) }()
	var servers []*server
	for _, s := range []struct {
		name string
		set  *mongotest.Set
	}{{"embedded", nil}, {"one member", one}, {"three members", three}} {
		started, err := b.serve(ctx, s.name, s.name, s.set)
		if err != nil {
			return err
		}
		servers = append(servers, started)
		defer started.stop()
	}
	var before mongotest.Sizes
	for i := range b.rounds {
		for _, s := range servers {
			if err := b.closed(ctx, s, i); err != nil {
				return err
			}
		}
		if i == 0 { // documents, indexes and first pages are there
			if before, err = one.Sizes(ctx, "writ"); err != nil {
				return err
			}
			servers[1].decided = 0
		}
	}
	for _, s := range servers {
		s.summary(servers[0])
	}
	if err := servers[1].grown(ctx, before); err != nil {
		return err
	}
	for _, s := range servers {
		if _, err := b.load(ctx, s, "half load, "+s.name, load.Options{Conns: b.conns, Rate: median(s.rates) / 2}); err != nil {
			return err
		}
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// percentiles says what the p50, the p99 and the most of durations are.
func percentiles(took []time.Duration) string {
	slices.Sort(took)
	n := len(took)
	return fmt.Sprintf("p50=%v p99=%v max=%v", took[n/2], took[n*99/100], took[n-1])
}
