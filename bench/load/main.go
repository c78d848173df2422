// Command load drives one HTTP endpoint as hard as a fixed number of
// connections allow and reports requests per second and latency percentiles.
//
// By default the arrival model is closed: each connection sends its next request
// when the last one is answered, so latencies are those at saturation and a
// slow server is asked less. A 503 ends the run, unless -honour has the
// connection wait for as long as its Retry-After says.
//
// With -rate it is open: requests arrive on a schedule whatever the answers are,
// each is sent by the first connection that is free, and its latency counts
// from its place in the schedule (no coordinated omission). An arrival that
// finds no connection within -patience is given up and counted as unsent.
//
// Every request carries an intent id of its own, so nothing is answered from an
// earlier decision.
//
//	load -url http://127.0.0.1:3820/v1/policy/evaluate -operator TOKEN -org bench -conns 64 -duration 10s
//	load -url http://127.0.0.1:3820/v1/policy/evaluate -operator TOKEN -org bench -conns 1024 -rate 45000 -duration 10s
//	load -url http://127.0.0.1:3820/v1/policy/evaluate -orgs 1000 -secret data/operator-secret -conns 64 -duration 10s
//	load -url http://127.0.0.1:3830/ -conns 64 -duration 10s
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"writ/bench/proc"
)

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:3820/v1/policy/evaluate", "endpoint to drive")
	flag.StringVar(&o.operator, "operator", "", "operator token; with it the reference policy and rules are registered and an API key is minted first")
	flag.StringVar(&o.org, "org", "bench", "organization of the operator token")
	flag.IntVar(&o.orgs, "orgs", 0, "organizations org-0, org-1, ... to set up in place of -org and -operator, each with the policy, the rules and a key of its own; requests go to them at random")
	flag.StringVar(&o.secret, "secret", "", "file of the secret of operator tokens, for -orgs")
	flag.IntVar(&o.rules, "rules", 0, "active rules to register with the policy")
	flag.IntVar(&o.rego, "rego", 0, "active rules with a Rego condition to register, too: each makes a decision dearer")
	flag.IntVar(&o.batch, "batch", 0, "intents of a request to the batch endpoint, which -url must then name; 0 is one of the evaluate endpoint")
	flag.IntVar(&o.conns, "conns", 64, "connections")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to measure")
	flag.DurationVar(&o.warmup, "warmup", 2*time.Second, "how long to run before measuring")
	flag.Float64Var(&o.rate, "rate", 0, "requests/s that arrive whatever the answers are; 0 is a closed loop")
	flag.DurationVar(&o.patience, "patience", time.Second, "how long an arrival of an open run waits for a free connection")
	flag.BoolVar(&o.honour, "honour", false, "closed loop: wait for Retry-After after a 503")
	flag.IntVar(&o.pid, "pid", 0, "process of the server: its processor time is given for each request that was measured")
	flag.StringVar(&o.label, "label", "", "name of the run in the output")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

type options struct {
	url, operator, org, label string
	orgs                      int
	secret                    string
	pid                       int
	rules, rego, batch, conns int
	duration, warmup          time.Duration

	rate     float64 // open loop if positive
	patience time.Duration
	honour   bool
}

func run(ctx context.Context, o options) error {
	u, err := url.Parse(o.url)
	if err != nil {
		return err
	}
	keys := []string{""}
	if o.orgs > 0 || o.operator != "" {
		if keys, err = setup(ctx, u, o); err != nil {
			return fmt.Errorf("setting up: %w", err)
		}
	}
	body, err := evaluateBody(o.batch)
	if err != nil {
		return err
	}
	if o.warmup > 0 {
		if _, err := drive(ctx, u, keys, body, o, o.warmup); err != nil {
			return err
		}
	}
	before := proc.Spent(o.pid)
	res, err := drive(ctx, u, keys, body, o, o.duration)
	if err != nil {
		return err
	}
	res.server = proc.Spent(o.pid) - before
	res.print(o)
	return nil
}

// drive runs o's arrival model for d.
func drive(ctx context.Context, u *url.URL, keys []string, body []byte, o options, d time.Duration) (*result, error) {
	loop := closedLoop(o.honour)
	if o.rate > 0 {
		loop = openLoop(o.rate, o.patience)
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		total result
		fail  error
	)
	conns := make([]*conn, o.conns)
	for n := range conns {
		conns[n] = newConn(u, keys, body, n)
		if err := conns[n].dial(ctx); err != nil {
			return nil, err
		}
		defer conns[n].close()
	}
	start := time.Now()
	for _, c := range conns {
		wg.Go(func() {
			var r result
			err := loop(c, start, start.Add(d), &r)
			mu.Lock()
			defer mu.Unlock()
			total.add(&r)
			fail = cmp.Or(fail, err)
		})
	}
	wg.Wait()
	total.elapsed = time.Since(start)
	if fail == nil && len(total.accepted) == 0 {
		fail = fmt.Errorf("no request was answered with 200")
	}
	return &total, fail
}
