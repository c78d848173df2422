// Command hostile measures what one organization's requests cost another's. A
// victim sends ordinary evaluations on a schedule, alone and then beside each
// attack: an organization of its own that does one dear thing as fast as 16
// connections allow and ignores Retry-After. Last come all attacks at once.
//
// The victim's latency counts from when a request was due (no coordinated
// omission). Each attack prints one line: the victim's p50 and p99 alone and
// beside the attack, whether the second p99 is within three times the first or
// 15 ms, whichever is more, the most resident memory of the server, and what
// the attacker was answered, with the p50 and p99 of its 503s.
//
//	hostile -url http://127.0.0.1:3820 -writ ./writ -data DIR -pid PID
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// What is held, from decisions.md: "Bounds that protect the others".
const (
	heldRatio  = 3
	heldP99    = 15 * time.Millisecond
	heldMemory = 1 << 30
)

// settle is how long requests of an attack that has ended may take to end.
const settle = time.Second

type options struct {
	url, writ, data, only string
	pid, conns            int
	rate                  float64
	alone, duration       time.Duration
	history               int
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:3820", "base URL of the server")
	flag.StringVar(&o.writ, "writ", "writ", "the binary, which mints operator tokens")
	flag.StringVar(&o.data, "data", "./data", "data directory of the server")
	flag.IntVar(&o.pid, "pid", 0, "process id of the server, whose memory is read")
	flag.StringVar(&o.only, "only", "", "attacks to run, separated by commas; all if empty")
	flag.IntVar(&o.conns, "conns", 16, "connections of each attack")
	flag.Float64Var(&o.rate, "rate", 200, "requests a second of the victim")
	flag.DurationVar(&o.alone, "alone", 3*time.Second, "how long the victim is measured alone before each attack")
	flag.DurationVar(&o.duration, "duration", 4*time.Second, "how long an attack lasts")
	flag.IntVar(&o.history, "history", 50_000, "decisions in the history that is searched and exported")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	u, err := url.Parse(o.url)
	if err != nil {
		return err
	}
	s := &server{options: o, host: u.Host}
	v, err := s.newVictim(ctx)
	if err != nil {
		return fmt.Errorf("setting up the victim: %w", err)
	}
	var ready []*attack
	for _, a := range attacks() {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+a.name+",") {
			continue
		}
		switch err := s.prepare(ctx, a); {
		case err == nil:
			ready = append(ready, a)
		case a.refused && isRefusal(err):
			fmt.Printf("%-14s refused when it is created: %v\n", a.name, err)
		default:
			return fmt.Errorf("setting up %s: %w", a.name, err)
		}
	}
	held := true
	for _, a := range ready {
		ok, err := s.measure(ctx, v, a.name, a)
		if err != nil {
			return err
		}
		held = held && ok
	}
	if len(ready) > 1 {
		if _, err := s.measure(ctx, v, "all at once", ready...); err != nil {
			return err
		}
	}
	fmt.Printf("held for each alone: %t\n", held)
	return nil
}

// measure prints a line about the victim alone and beside attacks, and reports
// whether it is within what is held.
func (s *server) measure(ctx context.Context, v *victim, name string, attacks ...*attack) (bool, error) {
	time.Sleep(settle) // the last attack's requests end
	alone, err := v.drive(ctx, s.alone)
	if err != nil {
		return false, fmt.Errorf("the victim alone: %w", err)
	}
	under, stop := context.WithCancel(ctx)
	memory := s.watchMemory(under)
	var reports []<-chan report
	for _, a := range attacks {
		reports = append(reports, s.launch(under, a))
	}
	beside, err := v.drive(ctx, s.duration)
	stop()
	var total report
	for _, r := range reports {
		total.add(<-r)
	}
	most := <-memory
	if err := cmp.Or(err, total.err); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	bound := max(heldRatio*alone.at(.99), heldP99)
	ok := beside.at(.99) <= bound && most <= heldMemory && beside.failed == 0
	fmt.Printf("%-14s alone p50=%s p99=%s beside p50=%s p99=%s ratio=%.1f bound=%s held=%t failed=%d memory=%dMiB | %s\n",
		name, ms(alone.at(.5)), ms(alone.at(.99)), ms(beside.at(.5)), ms(beside.at(.99)),
		float64(beside.at(.99))/float64(alone.at(.99)), ms(bound), ok, beside.failed, most>>20, total.String(s.duration))
	return ok, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1fms", float64(d)/1e6) }
